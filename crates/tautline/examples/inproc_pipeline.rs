//! Stages in one process, one thread each: messages move between them without a copy. `cargo run --example inproc_pipeline`

use std::thread;

use tautline::{Context, Message, Pair, Pull, Push, Result};

const BLOCKS: usize = 100;

fn main() -> Result<()> {
    let context = Context::new();
    let mut raw = Pull::builder(&context).bind("inproc://raw")?;
    let mut cooked = Push::builder(&context).bind("inproc://cooked")?;
    let mut done = Pair::builder(&context).bind("inproc://done")?;

    // The middle stage changes each block in place and forwards it.
    let middle = thread::spawn(move || -> Result<()> {
        for _ in 0..BLOCKS {
            let mut block: Message = raw.recv()?;
            block.as_mut_bytes().reverse();
            cooked.send(block)?;
        }
        Ok(())
    });
    let last = {
        let context = context.clone();
        thread::spawn(move || -> Result<()> {
            let mut blocks = Pull::builder(&context).connect("inproc://cooked")?;
            let mut report = Pair::builder(&context).connect("inproc://done")?;
            let mut sum = 0_usize;
            for _ in 0..BLOCKS {
                sum += usize::from(blocks.recv()?[0]);
            }
            report.send(sum.to_string())
        })
    };

    let mut source = Push::builder(&context).connect("inproc://raw")?;
    for number in 0..BLOCKS {
        let mut block = vec![0_u8; 64 * 1024];
        *block.last_mut().expect("not empty") = number as u8;
        source.send(block)?;
    }
    let sum = done.recv()?;
    println!("the blocks end with numbers whose sum is {}", sum.to_string_lossy());
    assert_eq!(sum, (BLOCKS * (BLOCKS - 1) / 2).to_string());
    middle.join().expect("no panic")?;
    last.join().expect("no panic")
}
