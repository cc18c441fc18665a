//! Streaming in both directions without deadlock. Two programs that wait in `send` for each other would wait forever. Either one
//! thread always receives (here: a socket in two halves), or the number of unanswered messages is limited (here: a window).
//! `cargo run --example streaming`

use std::thread;

use tautline::{Context, Dealer, Error, Result, Router};

const MESSAGES: u32 = 20_000;
/// Below the high-water marks of 1000.
const WINDOW: u32 = 500;

fn main() -> Result<()> {
    let context = Context::new();
    let mut echo = Router::builder(&context).router_mandatory(true).build()?;
    let endpoint = echo.bind("tcp://127.0.0.1:*")?;
    let serving = thread::spawn(move || -> Result<()> {
        loop {
            // The server waits for room while it sends, so the client must receive.
            match echo.recv_from().and_then(|(peer, message)| echo.send_multipart_to(&peer, &message)) {
                Err(Error::Terminated) => return Ok(()),
                outcome => outcome?,
            }
        }
    });
    let mut client = Dealer::builder(&context).connect(&endpoint)?;

    let (mut sent, mut received) = (0, 0);
    let mut answers = Vec::new();
    while received < MESSAGES {
        while sent < MESSAGES && sent - received < WINDOW {
            client.send(&sent.to_ne_bytes())?;
            sent += 1;
        }
        // Waits for one message, then takes all queued messages.
        client.recv_batch(&mut answers, WINDOW as usize)?;
        for answer in answers.drain(..) {
            assert_eq!(answer, received.to_ne_bytes());
            received += 1;
        }
    }
    println!("{received} answers, {WINDOW} at most under way");

    // Without a window: one thread only receives, so the other one can keep the queues full.
    let (mut sender, mut receiver) = client.split()?;
    let sending =
        thread::spawn(move || (0..MESSAGES).try_for_each(|number| sender.send(&number.to_ne_bytes())));
    for number in 0..MESSAGES {
        assert_eq!(receiver.recv()?, number.to_ne_bytes());
    }
    sending.join().expect("the sender does not panic")?;
    println!("{MESSAGES} answers, by two threads");

    drop(receiver);
    context.terminate()?;
    serving.join().expect("the server does not panic")
}
