//! What is known about the peer that a message came from: `zmq_msg_gets` and ZMQ_SRCFD.
//!
//! One object per connection, made after its handshake and shared by all messages received over it; never changed.

use std::ffi::{CStr, CString};

/// The properties of a peer, by name: those of its READY command, and `Peer-Address` and its like.
#[derive(Debug, Default)]
pub struct Metadata {
    properties: Vec<(String, CString)>,
    source_fd: Option<i32>,
}

impl Metadata {
    /// Collects the properties; the first one of a name counts. A value ends at its first NUL, as a C caller sees it.
    pub fn new<N, V>(properties: impl IntoIterator<Item = (N, V)>, source_fd: Option<i32>) -> Self
    where
        N: Into<String>,
        V: AsRef<[u8]>,
    {
        let properties = properties.into_iter().map(|(name, value)| {
            let value = value.as_ref();
            let len = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
            (name.into(), CString::new(&value[..len]).unwrap_or_default())
        });
        Metadata { properties: properties.collect(), source_fd }
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&CStr> {
        self.properties.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_c_str())
    }

    /// All properties, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CStr)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value.as_c_str()))
    }

    /// The descriptor of the connection (ZMQ_SRCFD), as it was when the message arrived.
    pub fn source_fd(&self) -> Option<i32> {
        self.source_fd
    }
}
