//! Shared code of the four programs: arguments, numbered messages, and the line of JSON that the harness
//! reads.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Arguments of a program: `endpoint size count [warm-up]`.
pub struct Arguments {
    pub endpoint: String,
    /// Bytes of each message.
    pub size: usize,
    pub count: u64,
    /// Number of messages before the measured ones.
    pub warm_up: u64,
}

impl Arguments {
    /// Reads the command line, or ends the program.
    pub fn read() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
        let (Some(size), Some(count)) = (number(1), number(2)) else { fail("arguments: endpoint size count [warm-up]") };
        if size < 8 || count < 2 {
            fail("use at least 2 messages of at least 8 bytes");
        }
        Self { endpoint: words[0].clone(), size: size as usize, count, warm_up: number(3).unwrap_or(1000) }
    }

    /// Ends the program unless the message is the one with that number.
    pub fn check(&self, message: &[u8], number: u64) {
        if message.len() != self.size || message[..8] != number.to_le_bytes() {
            fail(&format!("message {number} is wrong: {} bytes", message.len()));
        }
    }
}

/// Keys of CURVE, in Z85.
pub enum Keys {
    Server { secret: String },
    Client { secret: String, public: String, server: String },
}

static ENCRYPTED: AtomicBool = AtomicBool::new(false);

impl Keys {
    /// Returns the keys that the environment has (`../curve.sh`), to be set by the caller. A program that knows
    /// the key of a server is a client.
    pub fn read() -> Option<Self> {
        let text = |name| std::env::var(name).ok();
        let secret = text("CURVE_SECRET")?;
        ENCRYPTED.store(true, Relaxed);
        Some(match (text("CURVE_PUBLIC"), text("CURVE_SERVER")) {
            (Some(public), Some(server)) => Self::Client { secret, public, server },
            _ => Self::Server { secret },
        })
    }
}

/// Ends the program with a reason.
pub fn fail(reason: &str) -> ! {
    eprintln!("{reason}");
    std::process::exit(1)
}

/// Prints the figures of round trips: the total time and the time of each round, in nanoseconds.
pub fn report_rounds(arguments: &Arguments, total: u64, times: &mut [u64]) {
    times.sort_unstable();
    let rounds = times.len();
    let half = |ns: u64| ns as f64 / 2e3;
    println!(
        r#"{{"rounds":{rounds},"size":{},"seconds":{},"mean_us":{},"p50_us":{},"p99_us":{},"curve":{},"verified":true}}"#,
        arguments.size,
        total as f64 / 1e9,
        half(total) / rounds as f64,
        half(times[rounds / 2]),
        half(times[rounds * 99 / 100]),
        ENCRYPTED.load(Relaxed),
    );
}

/// Prints the figures of a stream.
pub fn report_stream(arguments: &Arguments, seconds: f64) {
    println!(
        r#"{{"count":{},"size":{},"seconds":{seconds},"messages_per_second":{},"curve":{},"verified":true}}"#,
        arguments.count,
        arguments.size,
        (arguments.count - 1) as f64 / seconds,
        ENCRYPTED.load(Relaxed),
    );
}
