//! Helpers for the tests of whole sockets.

#![allow(dead_code, reason = "each test uses some of it")]

use std::time::Duration;

use tautline_core::{Context, Flags, Message, Socket, SocketType};
use tautline_testkit::with_watchdog;

const LAST_ENDPOINT: i32 = 32;

/// Runs a test in a separate context, which must terminate.
pub fn test(name: &str, body: impl FnOnce(&Context) + Send + 'static) {
    with_watchdog(Duration::from_secs(120), name, move || {
        let context = Context::new();
        body(&context);
        context.terminate().unwrap();
    });
}

/// Sets an option that is an int.
pub fn set(socket: &mut Socket, option: i32, value: i32) {
    socket.set_option(option, &value.to_ne_bytes()).unwrap();
}

/// Receives one part.
pub fn recv(socket: &mut Socket) -> Vec<u8> {
    let mut message = Message::new();
    socket.recv_message(&mut message, Flags::NONE).unwrap();
    message.as_slice().to_vec()
}

/// Returns the endpoint that the socket was last bound or connected to.
pub fn last_endpoint(socket: &mut Socket) -> String {
    let mut buffer = [0; 256];
    let n = socket.option(LAST_ENDPOINT, &mut buffer).unwrap();
    String::from_utf8(buffer[..n - 1].to_vec()).unwrap()
}

/// Binds. Returns the complete endpoint.
pub fn bind(socket: &mut Socket, endpoint: &str) -> String {
    socket.bind(endpoint).unwrap();
    last_endpoint(socket)
}

/// Returns a bound socket, and its endpoint.
pub fn bound(context: &Context, socket_type: SocketType, endpoint: &str) -> (Socket, String) {
    let mut socket = context.socket(socket_type).unwrap();
    let endpoint = bind(&mut socket, endpoint);
    (socket, endpoint)
}

/// Returns a connected socket.
pub fn connected(context: &Context, socket_type: SocketType, endpoint: &str) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    socket.connect(endpoint).unwrap();
    socket
}

/// Returns the bytes that a client of this type sends for the handshake.
pub fn handshake(socket_type: &str) -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
    bytes.extend_from_slice(b"NULL");
    bytes.resize(64, 0);
    let property = [b"\x0bSocket-Type\0\0\0", &[socket_type.len() as u8][..], socket_type.as_bytes()];
    let ready = [b"\x05READY", &property.concat()[..]].concat();
    bytes.extend_from_slice(&[4, ready.len() as u8]);
    bytes.extend_from_slice(&ready);
    bytes
}
