//! The end of a program: workers are woken, what is queued is sent, and a peer that is not there does not hold up the end for longer
//! than a deadline. `cargo run --example graceful_shutdown`

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
                // The signal to end: everything received so far is done.
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

    // Nobody listens there: what is queued for it is given up at the deadline.
    let mut report = Push::builder(&context).linger(DEADLINE).connect("tcp://127.0.0.1:1")?;
    report.send("ten jobs")?;
    drop((source, report));

    let start = Instant::now();
    // However the lingering is set, nothing takes longer than this.
    context.terminate_within(Duration::from_secs(10))?;
    println!("ended after {:?}", start.elapsed());
    assert!(worker.join().expect("the worker does not panic")? <= 10);
    Ok(())
}
