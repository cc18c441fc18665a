//! Publish and subscribe: a station publishes, a subscriber receives one city only. `cargo run --example weather`
//!
//! A subscription takes time to reach the publisher. Earlier messages are not sent to this subscriber. If a program must not miss
//! the beginning, let the publisher wait for the subscription: XPUB receives it.

use std::thread;

use tautline::{Context, Result, Sub, XPub};

fn main() -> Result<()> {
    let context = Context::new();
    let mut station = XPub::new(&context)?;
    let endpoint = station.bind("tcp://127.0.0.1:*")?;

    let reader = {
        let mut subscriber = Sub::builder(&context).connect(&endpoint)?;
        subscriber.subscribe("Lund ")?;
        thread::spawn(move || -> Result<Vec<i32>> {
            let mut degrees = Vec::new();
            while degrees.len() < 5 {
                let report = subscriber.recv()?;
                let text = report.to_string_lossy();
                println!("{text}");
                degrees.extend(text.rsplit(' ').next().and_then(|number| number.parse::<i32>().ok()));
            }
            Ok(degrees)
        })
    };

    let subscription = station.recv()?;
    assert_eq!(subscription, "\x01Lund ");
    for hour in 0..5 {
        station.send(format!("Oslo {}", hour - 3))?;
        station.send(format!("Lund {}", hour + 3))?;
    }
    assert_eq!(reader.join().expect("the reader does not panic")?, [3, 4, 5, 6, 7]);
    Ok(())
}
