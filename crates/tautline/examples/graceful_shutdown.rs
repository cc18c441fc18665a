//! Shutdown of a program: workers are woken and queued messages are sent. An absent peer does not delay the end beyond a
//! deadline. `cargo run --example graceful_shutdown`

use std::thread;
use std::time::{Duration, Instant};

use tautline::{Context, Error, Pull, Push, Result};

const DEADLINE: Duration = Duration::from_millis(200);

fn main() -> Result<()> {
    let context = Context::new();
    let mut jobs = Pull::new(&context)?;
    let endpoint = jobs.bind("inproc://jobs")?;
    let worker = thread::spawn(move || -> Result<usize> {
        let mut done = 0;
        loop {
            match jobs.recv() {
                Ok(_) => done += 1,
                // The signal to end: all received messages are processed.
                Err(Error::Terminated) => return Ok(done),
                Err(error) => return Err(error),
            }
            if done == 10 {
                println!("all jobs done");
            }
        }
    });

    let mut source = Push::builder(&context).connect(&endpoint)?;
    for number in 0..10_u8 {
        source.send(&[number])?;
    }

    // No program listens there. Its queued messages are dropped at the deadline.
    let mut report = Push::builder(&context).linger(DEADLINE).connect("tcp://127.0.0.1:1")?;
    report.send("ten jobs")?;
    drop((source, report));

    let start = Instant::now();
    // Whatever the linger times are, termination does not exceed the deadline.
    context.terminate_within(Duration::from_secs(10))?;
    println!("ended after {:?}", start.elapsed());
    assert!(worker.join().expect("the worker does not panic")? <= 10);
    Ok(())
}
