//! A last-value cache: a late subscriber first gets the newest value of its topic, then all updates. `cargo run --example
//! last_value_cache`
//!
//! XPUB receives each subscription (with `verbose` also repeated ones). The cache answers it with the stored value.

use std::collections::HashMap;

use tautline::{Context, Multipart, PollItem, Result, Sub, XPub, XSub, poll};

/// The last message of each topic.
#[derive(Default)]
struct Cache(HashMap<Vec<u8>, Multipart>);

impl Cache {
    /// Forwards messages from `upstream`, and answers subscriptions from `downstream`, for this number of events.
    fn run(&mut self, upstream: &mut XSub, downstream: &mut XPub, events: usize) -> Result<()> {
        for _ in 0..events {
            let mut items = [PollItem::readable(upstream), PollItem::readable(downstream)];
            poll(&mut items, None)?;
            if items.map(|item| item.is_readable())[0] {
                let message = upstream.recv_multipart()?;
                self.0.insert(message[0].to_vec(), message.clone());
                downstream.send_multipart(message)?;
            } else {
                let event = downstream.recv()?;
                if let Some((1, topic)) = event.split_first()
                    && let Some(message) = self.0.get(topic)
                {
                    downstream.send_multipart(message)?;
                }
            }
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let context = Context::new();
    let mut source = XPub::new(&context)?;
    let origin = source.bind("inproc://origin")?;
    let mut upstream = XSub::builder(&context).connect(&origin)?;
    upstream.subscribe("")?;
    assert_eq!(source.recv()?, "\x01");
    let mut downstream = XPub::builder(&context).verbose(true).build()?;
    let endpoint = downstream.bind("tcp://127.0.0.1:*")?;

    source.send_multipart(["gold", "1900"])?;
    source.send_multipart(["gold", "1901"])?;
    let mut cache = Cache::default();
    cache.run(&mut upstream, &mut downstream, 2)?;

    // A late subscriber: no more messages are published, and it still gets a price.
    let mut late = Sub::builder(&context).connect(&endpoint)?;
    late.subscribe("gold")?;
    cache.run(&mut upstream, &mut downstream, 1)?;
    let price = late.recv_multipart()?;
    println!("{}: {}", price[0].to_string_lossy(), price[1].to_string_lossy());
    assert_eq!(price, Multipart::from(["gold", "1901"]));
    Ok(())
}
