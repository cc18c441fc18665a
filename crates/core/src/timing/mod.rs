//! When: to write, to look after what was left. Pure rules: the time comes in as ticks of the clock, decisions go out.

pub(crate) mod bursts;
pub(crate) mod crowd;
pub(crate) mod flush;
mod saturation;
pub(crate) mod watch;

#[cfg(test)]
mod sim;
