//! An encrypted service for listed clients: CURVE keys, an allow-list that changes at run time, and the user id of each client.
//! `cargo run --example curve_server`

use std::thread;

use tautline::curve::KeyPair;
use tautline::monitor::{EventKind, HandshakeError};
use tautline::zap::AllowList;
use tautline::{Context, Error, Rep, Req, Result};

fn main() -> Result<()> {
    // All clients know the server's public key. The server received each client's public key by hand.
    let (server, alice, mallory) = (KeyPair::generate()?, KeyPair::generate()?, KeyPair::generate()?);
    println!("the server's key is {}", server.public);

    let context = Context::new();
    let list = AllowList::new().key(alice.public, "alice");
    context.authenticate(list.clone())?;
    let mut service = Rep::builder(&context).curve_server(&server.secret).build()?;
    let mut events = service.monitor()?;
    let endpoint = service.bind("tcp://127.0.0.1:*")?;
    let serving = thread::spawn(move || -> Result<()> {
        loop {
            let question = match service.recv() {
                Err(Error::Terminated) => return Ok(()),
                question => question?,
            };
            service.send(format!("hello, {}", question.user_id().unwrap_or("stranger")))?;
        }
    });

    let mut client = Req::builder(&context).curve_client(&server.public, &alice).connect(&endpoint)?;
    client.send("who am I?")?;
    let answer = client.recv()?;
    println!("{}", answer.to_string_lossy());
    assert_eq!(answer, "hello, alice");

    // Mallory is not on the list. After the refusal, her socket stops reconnecting, and has no peer to send to...
    let other = Req::builder(&context).curve_client(&server.public, &mallory).connect(&endpoint)?;
    let refusal = events.find(|event| matches!(event.kind, EventKind::HandshakeFailed(_)));
    println!("{}", refusal.as_ref().expect("the service runs"));
    assert!(
        refusal.is_some_and(|event| event.kind == EventKind::HandshakeFailed(HandshakeError::Refused(400)))
    );

    // ... until her key is added, and she connects again.
    list.add_key(mallory.public, "mallory");
    drop(other);
    let mut other = Req::builder(&context).curve_client(&server.public, &mallory).connect(&endpoint)?;
    other.send("who am I?")?;
    assert_eq!(other.recv()?, "hello, mallory");

    drop((client, other, events));
    context.terminate()?;
    serving.join().expect("the service does not panic")
}
