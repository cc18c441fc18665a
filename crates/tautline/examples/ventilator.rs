//! Divide and conquer: a ventilator distributes tasks, workers process them, a sink collects the results. `cargo run --example
//! ventilator`

use std::thread;

use tautline::{Context, Error, Pull, Push, Result};

const TASKS: u64 = 1000;

fn main() -> Result<()> {
    let context = Context::new();
    let mut ventilator = Push::new(&context)?;
    let tasks = ventilator.bind("inproc://tasks")?;
    let mut sink = Pull::new(&context)?;
    let results = sink.bind("inproc://results")?;

    let workers: Vec<_> = (0..3)
        .map(|_| {
            let (context, tasks, results) = (context.clone(), tasks.clone(), results.clone());
            thread::spawn(move || work(&context, &tasks, &results))
        })
        .collect();

    for number in 1..=TASKS {
        ventilator.send(&number.to_le_bytes())?;
    }
    let mut sum = 0;
    for _ in 0..TASKS {
        let result = sink.recv()?;
        sum += u64::from_le_bytes(result.as_bytes().try_into().expect("eight bytes"));
    }
    println!("the sum of the first {TASKS} squares is {sum}");
    assert_eq!(sum, TASKS * (TASKS + 1) * (2 * TASKS + 1) / 6);

    // Wakes the workers, which wait for further tasks.
    context.shutdown();
    for worker in workers {
        assert_eq!(worker.join().expect("a worker does not panic"), Err(Error::Terminated));
    }
    Ok(())
}

fn work(context: &Context, tasks: &str, results: &str) -> Result<()> {
    let mut tasks = Pull::builder(context).connect(tasks)?;
    let mut results = Push::builder(context).connect(results)?;
    loop {
        let task = tasks.recv()?;
        let number = u64::from_le_bytes(task.as_bytes().try_into().expect("eight bytes"));
        results.send(&(number * number).to_le_bytes())?;
    }
}
