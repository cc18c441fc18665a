//! Reliable request and reply: the client repeats a request that is not answered in time. `cargo run --example lazy_pirate`
//!
//! With `relaxed`, a new request can be sent before the old one is answered. With `correlate`, a late reply to the old request is
//! recognised and dropped. So the client can keep its socket.

use std::thread;
use std::time::Duration;

use tautline::{Context, Error, Rep, Req, Result};

const PATIENCE: Duration = Duration::from_millis(100);
const TRIES: usize = 50;

/// Sends the request up to `TRIES` times.
fn ask(client: &mut Req, question: &str) -> Result<String> {
    for attempt in 1..=TRIES {
        client.send(question)?;
        match client.recv() {
            Err(Error::TimedOut) => println!("no answer to {question:?} (attempt {attempt})"),
            answer => return Ok(answer?.to_string_lossy().into_owned()),
        }
    }
    Err(Error::TimedOut)
}

fn main() -> Result<()> {
    let context = Context::new();
    let mut service = Rep::builder(&context).linger(Duration::ZERO).build()?;
    let endpoint = service.bind("tcp://127.0.0.1:*")?;

    // The first server takes a request and exits; the second one works.
    let server = {
        let (context, endpoint) = (context.clone(), endpoint.clone());
        thread::spawn(move || -> Result<()> {
            service.recv()?;
            drop(service);
            let mut service = Rep::builder(&context).build()?;
            while let Err(error) = service.bind(&endpoint) {
                // The system may need a moment to release the port.
                assert!(matches!(error, Error::AddressInUse(_)), "{error}");
                thread::yield_now();
            }
            // The server may get several copies of a request. The client takes the reply to its last copy.
            loop {
                let question = match service.recv() {
                    Err(Error::Terminated) => return Ok(()),
                    question => question?,
                };
                service.send(format!("{}: yes", question.to_string_lossy()))?;
            }
        })
    };

    let mut client = Req::builder(&context)
        .relaxed(true)
        .correlate(true)
        .receive_timeout(PATIENCE)
        .linger(Duration::ZERO)
        .connect(&endpoint)?;
    let answer = ask(&mut client, "are you there?")?;
    println!("{answer}");
    assert_eq!(answer, "are you there?: yes");
    drop(client);
    context.terminate()?;
    server.join().expect("the server does not panic")
}
