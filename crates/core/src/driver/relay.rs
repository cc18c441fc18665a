//! Asking a SOCKS proxy for a stream to the peer: the I/O between the stream and `proto::socks`.
//!
//! Runs on the I/O thread for a dialer that has reached the proxy but not yet the peer.

use std::io::ErrorKind;

use tautline_io::errno;
use tautline_io::net::Stream;
use tautline_io::reactor::Interest;
use tautline_proto::socks::{Socks, SocksError};

/// Continues as far as the stream allows. Returns the event to wait for, or `None` when the stream
/// leads to the peer. Returns the errno if the proxy refuses or the stream fails.
pub(super) fn advance(socks: &mut Socks, stream: &Stream) -> Result<Option<Interest>, i32> {
    loop {
        while !socks.output().is_empty() {
            match stream.write(socks.output()) {
                Ok(n) => socks.advance_output(n),
                Err(error) => return wait(&error, Interest::WRITE),
            }
        }
        // Read only as many bytes as the proxy's answer has: the next byte may be the peer's.
        let mut answer = [0; 512];
        let wanted = socks.missing().min(answer.len());
        if wanted == 0 {
            return Ok(None);
        }
        match stream.read(&mut answer[..wanted]) {
            Ok(0) => return Err(errno::ECONNRESET),
            Ok(n) => {
                socks.input(&answer[..n]).map_err(reason)?;
            }
            Err(error) => return wait(&error, Interest::READ),
        };
    }
}

fn wait(error: &std::io::Error, interest: Interest) -> Result<Option<Interest>, i32> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Some(interest)),
        _ => Err(errno::of(error).unwrap_or(errno::EIO)),
    }
}

fn reason(refusal: SocksError) -> i32 {
    match refusal {
        SocksError::NotSocks => errno::EPROTO,
        SocksError::Method | SocksError::Login | SocksError::Reply(2) => errno::EACCES,
        SocksError::Reply(3) => errno::ENETUNREACH,
        SocksError::Reply(4 | 6) => errno::EHOSTUNREACH,
        SocksError::Reply(5) => errno::ECONNREFUSED,
        SocksError::Reply(7) => errno::EPROTONOSUPPORT,
        SocksError::Reply(8) => errno::EAFNOSUPPORT,
        SocksError::Reply(_) => errno::ECONNABORTED,
    }
}
