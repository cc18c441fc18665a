//! Request and reply: a client sends a request, a service replies. `cargo run --example hello_world`

use std::thread;

use tautline::{Context, Rep, Req, Result};

fn main() -> Result<()> {
    let context = Context::new();
    let mut service = Rep::new(&context)?;
    let endpoint = service.bind("tcp://127.0.0.1:*")?;

    let server = thread::spawn(move || -> Result<()> {
        for _ in 0..3 {
            let name = service.recv()?;
            service.send(format!("Hello, {}!", name.to_string_lossy()))?;
        }
        Ok(())
    });

    let mut client = Req::builder(&context).connect(&endpoint)?;
    for name in ["World", "ZeroMQ", "Rust"] {
        client.send(name)?;
        println!("{}", client.recv()?.to_string_lossy());
    }
    server.join().expect("the server does not panic")
}
