//! Runs the real `taut` binary like a user: against itself, against raw sockets, in a
//! pseudo-terminal, and against libzmq if `tests/tools/cli/run.sh` provides it.

mod answers;
mod audit;
mod captured;
mod ends;
mod halted;
mod inputs;
mod libzmq;
mod limits;
mod messages;
mod observed;
mod others;
mod page;
mod peers;
mod policy;
mod replayed;
mod run;
mod secrets;
mod support;
mod tapped;
mod terminal;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod tools;
mod top;
mod topics;
