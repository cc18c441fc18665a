//! Internal functions for the fuzzer; see `fuzz/` at the root of the repository. Not part of the
//! crate's interface.

use std::net::SocketAddr;

use crate::dns;

/// Reads the records of an answer from a DNS server. Returns their number, or `None` if the answer
/// is malformed or does not belong to `question`.
pub fn dns_answer(message: &[u8], question: &[u8]) -> Option<usize> {
    dns::count_records(message, question)
}

/// Reads the text of `/etc/resolv.conf`.
pub fn resolv_conf(text: &str) -> Vec<SocketAddr> {
    dns::of_system(text)
}
