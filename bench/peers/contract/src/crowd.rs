//! Connections where only one end is the library's. The other end speaks the part of ZMTP 3.0 that a PUSH
//! needs, without security, over plain sockets.

use std::io::{Read, Write};
use std::net::TcpStream;

/// Version 3.0, mechanism NULL.
fn greeting() -> [u8; 64] {
    let mut greeting = [0; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// Connects, completes the handshake and sends `body` (of less than 256 bytes) as one message.
pub(crate) fn connect(address: &str, body: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.write_all(&greeting())?;
    stream.read_exact(&mut [0; 64])?;
    stream.write_all(b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH")?;
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let mut ready = vec![0; usize::from(head[1])];
    stream.read_exact(&mut ready)?;
    if head[0] != 4 || !ready.starts_with(b"\x05READY") {
        return Err(std::io::Error::other("not a short READY command"));
    }
    stream.write_all(&[0, body.len().min(255) as u8])?;
    stream.write_all(body)?;
    Ok(stream)
}
