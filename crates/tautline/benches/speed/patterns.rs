//! PUB: the same messages to several subscribers, and to one that subscribes to a tenth of them. Measures the rate of publishing.

use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use tautline::{Context, Sub, XPub};

use crate::support::{Counter, place};

const SIZE: usize = 64;

pub fn run(criterion: &mut Criterion) {
    for transport in ["tcp", "inproc"] {
        let mut group = criterion.benchmark_group(format!("patterns/{transport}"));
        group.throughput(Throughput::Elements(1));
        for subscribers in [1, 2, 8] {
            group.bench_function(BenchmarkId::new("fan_out", subscribers), |bencher| {
                let (mut publisher, counters) = publisher(transport, subscribers, "");
                let body = [7; SIZE];
                bencher.iter_custom(|messages| {
                    counters.iter().for_each(|counter| counter.expect(messages));
                    let began = Instant::now();
                    for _ in 0..messages {
                        publisher.send(&body).unwrap();
                    }
                    counters.iter().map(Counter::reached).max().unwrap() - began
                });
            });
        }
        group.bench_function("a_tenth_wanted", |bencher| {
            let (mut publisher, counters) = publisher(transport, 1, "s");
            bencher.iter_custom(|messages| {
                // Nine messages without a subscriber before each message with one.
                counters[0].expect(messages.div_ceil(10));
                let (wanted, other) = ([b's'; SIZE], [b'n'; SIZE]);
                let began = Instant::now();
                for number in 0..messages {
                    publisher.send(if number % 10 == 0 { &wanted } else { &other }).unwrap();
                }
                counters[0].reached() - began
            });
        });
    }
}

/// A publisher that waits for slow subscribers, after all have connected.
fn publisher(transport: &str, subscribers: usize, topic: &str) -> (XPub, Vec<Counter>) {
    let context = Context::new();
    let builder = XPub::builder(&context).no_drop(true).verbose(true);
    let mut publisher = builder.bind(&place(transport)).unwrap();
    let endpoint = publisher.last_endpoint().unwrap();
    let counters = (0..subscribers)
        .map(|_| {
            let mut socket = Sub::new(&context).unwrap();
            socket.subscribe(topic).unwrap();
            socket.connect(&endpoint).unwrap();
            publisher.recv().unwrap();
            Counter::thread(socket, SIZE)
        })
        .collect();
    (publisher, counters)
}
