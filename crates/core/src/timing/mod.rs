//! When: to write, to look after what was left. Pure rules: the time comes in as ticks of the
//! clock, decisions go out.
//!
//! The principle: *writing may take a share of a thread's time*. The first message of a lull and an
//! answer go at once; a known burst goes whole; everything else waits for others until the share
//! allows the next write.

pub(crate) mod bursts;
pub(crate) mod crowd;
pub(crate) mod flush;
pub(crate) mod idle;
mod pace;
pub(crate) mod rounds;
mod spent;
pub(crate) mod watch;

#[cfg(test)]
mod sim;
