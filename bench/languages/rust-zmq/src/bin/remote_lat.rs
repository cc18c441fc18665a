//! Sends a request and waits for the answer, one at a time.

use languages_rust_zmq::{Arguments, report_rounds};
use std::time::Instant;

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<(), zmq::Error> {
    let arguments = Arguments::read();
    let context = zmq::Context::new();
    let socket = context.socket(zmq::REQ)?;
    secure(&socket)?;
    socket.connect(&arguments.endpoint)?;
    let mut request = vec![0; arguments.size];
    let mut answer = zmq::Message::new();
    let mut times = Vec::with_capacity(arguments.count as usize);
    let (mut begin, mut last) = (Instant::now(), Instant::now());
    for number in 0..arguments.warm_up + arguments.count {
        if number == arguments.warm_up {
            begin = Instant::now();
            last = begin;
        }
        request[..8].copy_from_slice(&number.to_le_bytes());
        socket.send(&request, 0)?;
        socket.recv(&mut answer, 0)?;
        arguments.check(&answer, number);
        if number >= arguments.warm_up {
            let now = Instant::now();
            times.push((now - last).as_nanos() as u64);
            last = now;
        }
    }
    report_rounds(&arguments, (last - begin).as_nanos() as u64, &mut times);
    Ok(())
}
