//! Sends a request and waits for the answer, one at a time.

use languages_rust_tautline::{Arguments, report_rounds};
use std::time::Instant;
use tautline::{Context, Req, Result};

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = secure(Req::builder(&context)).build()?;
    socket.connect(&arguments.endpoint)?;
    let mut request = vec![0; arguments.size];
    let mut times = Vec::with_capacity(arguments.count as usize);
    let (mut begin, mut last) = (Instant::now(), Instant::now());
    for number in 0..arguments.warm_up + arguments.count {
        if number == arguments.warm_up {
            begin = Instant::now();
            last = begin;
        }
        request[..8].copy_from_slice(&number.to_le_bytes());
        socket.send(&request)?;
        let answer = socket.recv()?;
        arguments.check(&answer, number);
        if number >= arguments.warm_up {
            let now = Instant::now();
            times.push((now - last).as_nanos() as u64);
            last = now;
        }
    }
    report_rounds(&arguments, (last - begin).as_nanos() as u64, &mut times);
    drop(socket);
    context.terminate()
}
