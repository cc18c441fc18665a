//! Windows has no fork.

pub(super) fn call_in_child(_handler: extern "C" fn()) {}
