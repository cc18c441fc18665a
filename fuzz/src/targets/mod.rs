//! The targets, one file each.

pub mod admission;
pub mod command;
pub mod connection;
pub mod curve;
pub mod datagram;
pub mod descriptors;
pub mod dialer;
pub mod endpoint;
pub mod frame;
pub mod greeting;
mod handshake;
pub mod keys;
pub mod memory;
pub mod messages;
pub mod null;
pub mod older;
pub mod options;
pub mod peers;
pub mod plain;
pub mod publisher;
pub mod socks;
pub mod subscriptions;
pub mod websocket;
pub mod wss;
pub mod zap;
