//! `taut bench`: measures rate and round trip over an endpoint. One or both ends run in this
//! process.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tautline::curve::KeyPair;
use tautline::kind::{self, Kind};
use tautline::{Context, Error, Pull, Push, Rep, Req, Socket};

use crate::args::{Bench, BenchEnd};
use crate::config::Config;
use crate::endpoint::{self, Endpoint};
use crate::failure::{Code, Failure, Result};
use crate::security::Security;
use crate::tls;

/// Result of the measurement over one endpoint.
#[derive(Debug, Serialize)]
struct Outcome {
    endpoint: String,
    bytes: u32,
    mechanism: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip: Option<RoundTrip>,
}

/// Round trip times in microseconds.
#[derive(Debug, Serialize)]
struct RoundTrip {
    count: usize,
    least_us: f64,
    median_us: f64,
    p99_us: f64,
    most_us: f64,
}

/// Measures over each endpoint.
pub fn run(args: &Bench) -> Result<()> {
    let config = Config::load()?;
    let mut endpoints = args.endpoints.clone();
    if endpoints.is_empty() {
        endpoints.push("tcp://127.0.0.1:*".to_owned());
    }
    let security = Security::new(&args.security, None, &config)?;
    if args.end == BenchEnd::Both && !matches!(security, Security::Null) {
        return Err(Failure::usage("with both ends in this process, use --curve, which generates the keys"));
    }
    for text in &endpoints {
        if let Some(name) = text.strip_prefix("inproc://") {
            if args.end != BenchEnd::Both {
                return Err(Failure::usage(format!("inproc://{name}: inproc works only inside one process")));
            }
            report(args, &both(args, text)?)?;
            continue;
        }
        let bind = match (args.bind, args.connect) {
            (true, _) => true,
            (_, true) => false,
            _ => matches!(args.end, BenchEnd::Receive | BenchEnd::Answer),
        };
        let (resolved, _) = endpoint::resolve(text, bind, &config)?;
        for endpoint in resolved {
            let outcome = match args.end {
                BenchEnd::Both => both(args, &endpoint.address)?,
                end => one(args, end, &endpoint, &security)?,
            };
            report(args, &outcome)?;
        }
    }
    Ok(())
}

/// Runs both ends. Each end has its own context, except over inproc.
fn both(args: &Bench, address: &str) -> Result<Outcome> {
    let near = Context::new();
    let far = if address.starts_with("inproc://") { near.clone() } else { Context::new() };
    let (server, client) = if args.curve {
        let own = KeyPair::generate()?;
        let server = own.public;
        let client = Security::CurveClient { server, own: KeyPair::generate()? };
        (Security::CurveServer { own, allow: None }, client)
    } else {
        (Security::Null, Security::Null)
    };
    let ends = [true, false].map(|bind| Endpoint { bind, address: address.to_owned() });
    let mut pull = open_secured::<kind::Pull>(&near, &server, args, &ends[0])?;
    let bound = pull.bind(address)?;
    pull.set_receive_timeout(args.timeout)?;
    let mut push = open_secured::<kind::Push>(&far, &client, args, &ends[1])?;
    push.connect(&bound)?;
    let (count, size) = (args.count, args.size);
    let sending = thread::spawn(move || send(&mut push, count, size));
    let rate = receive(&mut pull, count).map_err(|error| timeout_failure(args, error))?;
    sending.join().unwrap_or(Err(Error::Terminated))?;
    drop(pull);

    let mut rep = open_secured::<kind::Rep>(&near, &server, args, &ends[0])?;
    // The first socket may still be closing and may still hold its file or name.
    let again = bound == address && !address.starts_with("tcp://") && !address.contains('*');
    let second = if again { format!("{address}-2") } else { address.to_owned() };
    let bound = rep.bind(&second)?;
    let mut req = open_secured::<kind::Req>(&far, &client, args, &ends[1])?;
    req.connect(&bound)?;
    req.set_receive_timeout(args.timeout)?;
    let answering = thread::spawn(move || answer(&mut rep));
    let round_trip = ask(&mut req, args.round_trips, size).map_err(|error| timeout_failure(args, error));
    near.shutdown();
    drop(req);
    // The thread ends with the context.
    let _ = answering.join();
    Ok(Outcome {
        endpoint: address.to_owned(),
        bytes: size,
        mechanism: server.mechanism(),
        messages_per_second: Some(rate),
        bytes_per_second: Some(rate * f64::from(size)),
        round_trip: Some(round_trip?),
    })
}

/// Runs one end.
fn one(args: &Bench, end: BenchEnd, endpoint: &Endpoint, security: &Security) -> Result<Outcome> {
    let context = Context::new();
    security.judge(&context)?;
    let mut outcome = Outcome {
        endpoint: endpoint.address.clone(),
        bytes: args.size,
        mechanism: security.mechanism(),
        messages_per_second: None,
        bytes_per_second: None,
        round_trip: None,
    };
    match end {
        BenchEnd::Send => {
            let mut push: Push = attached(&context, args, endpoint, security, &mut outcome)?;
            push.set_send_timeout(args.timeout)?;
            let start = Instant::now();
            send(&mut push, args.count, args.size).map_err(|error| timeout_failure(args, error))?;
            drop(push);
            // Count only messages that were sent, so wait until the context has flushed them.
            while context.terminate() == Err(Error::Interrupted) {}
            let rate = args.count as f64 / start.elapsed().as_secs_f64();
            (outcome.messages_per_second, outcome.bytes_per_second) =
                (Some(rate), Some(rate * f64::from(args.size)));
        }
        BenchEnd::Receive => {
            let mut pull: Pull = attached(&context, args, endpoint, security, &mut outcome)?;
            pull.set_receive_timeout(args.timeout)?;
            let rate = receive(&mut pull, args.count).map_err(|error| timeout_failure(args, error))?;
            outcome.messages_per_second = Some(rate);
        }
        BenchEnd::Ask => {
            let mut req: Req = attached(&context, args, endpoint, security, &mut outcome)?;
            req.set_receive_timeout(args.timeout)?;
            outcome.round_trip = Some(
                ask(&mut req, args.round_trips, args.size).map_err(|error| timeout_failure(args, error))?,
            );
        }
        BenchEnd::Answer | BenchEnd::Both => {
            let mut rep: Rep = attached(&context, args, endpoint, security, &mut outcome)?;
            rep.set_receive_timeout(args.timeout)?;
            answer(&mut rep).map_err(|error| timeout_failure(args, error))?;
        }
    }
    Ok(outcome)
}

fn open_secured<K: Kind>(
    context: &Context,
    security: &Security,
    args: &Bench,
    endpoint: &Endpoint,
) -> Result<Socket<K>> {
    let mut socket = Socket::<K>::new(context)?;
    for (number, value) in tls::options(&args.security.tls, std::slice::from_ref(endpoint))? {
        socket.set_raw_option(number, &value)?;
    }
    security.options(|number, value| socket.set_raw_option(number, value))?;
    Ok(socket)
}

fn attached<K: Kind>(
    context: &Context,
    args: &Bench,
    endpoint: &Endpoint,
    security: &Security,
    outcome: &mut Outcome,
) -> Result<Socket<K>> {
    let mut socket = open_secured(context, security, args, endpoint)?;
    if endpoint.bind {
        let bound = socket.bind(&endpoint.address)?;
        if bound != endpoint.address {
            notice!("bound to {bound}");
            outcome.endpoint = bound;
        }
    } else {
        socket.connect(&endpoint.address)?;
    }
    Ok(socket)
}

fn send(push: &mut Push, count: u64, size: u32) -> tautline::Result<()> {
    let body = vec![b'x'; size as usize];
    for _ in 0..count {
        push.send(&body)?;
    }
    Ok(())
}

/// Returns the rate from the first to the last message, in messages per second.
fn receive(pull: &mut Pull, count: u64) -> tautline::Result<f64> {
    pull.recv()?;
    let start = Instant::now();
    let mut batch = Vec::new();
    let mut left = count - 1;
    while left > 0 {
        let most = usize::try_from(left.min(1000)).unwrap_or(1000);
        left -= pull.recv_batch(&mut batch, most)? as u64;
        batch.clear();
    }
    Ok((count - 1) as f64 / start.elapsed().as_secs_f64().max(1e-9))
}

fn ask(req: &mut Req, count: u64, size: u32) -> tautline::Result<RoundTrip> {
    let body = vec![b'x'; size as usize];
    // The first round trip includes the connection setup, so it is not timed.
    req.send(&body)?;
    req.recv()?;
    let mut times = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        req.send(&body)?;
        req.recv()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let micros = |time: Duration| (time.as_nanos() as f64) / 1000.0;
    let at = |part: f64| micros(times[((times.len() - 1) as f64 * part) as usize]);
    Ok(RoundTrip {
        count: times.len(),
        least_us: at(0.0),
        median_us: at(0.5),
        p99_us: at(0.99),
        most_us: at(1.0),
    })
}

/// Echoes requests until the context ends.
fn answer(rep: &mut Rep) -> tautline::Result<()> {
    loop {
        let question = rep.recv()?;
        rep.send(question)?;
    }
}

fn timeout_failure(args: &Bench, error: Error) -> Failure {
    match (error, args.timeout) {
        (Error::TimedOut, Some(time)) => Failure::new(
            Code::Timeout,
            format!("no message arrived for {}", humantime::format_duration(time)),
        )
        .hint("is the other end running, and does its socket type match this one?"),
        (error, _) => error.into(),
    }
}

fn report(args: &Bench, outcome: &Outcome) -> Result<()> {
    if args.json {
        let line = serde_json::to_string(outcome).map_err(|error| Failure::failed(error.to_string()))?;
        return crate::print(&format!("{line}\n"));
    }
    let mut text = format!("{}, {} B", outcome.endpoint, outcome.bytes);
    if outcome.mechanism != "NULL" {
        text += &format!(", {}", outcome.mechanism);
    }
    text.push('\n');
    if let Some(rate) = outcome.messages_per_second {
        text += &format!("  rate        {} messages/s", scaled(rate));
        if let Some(bytes) = outcome.bytes_per_second {
            text += &format!(", {}B/s", scaled(bytes));
        }
        text.push('\n');
    }
    if let Some(trip) = &outcome.round_trip {
        text += &format!(
            "  round trip  {} median, {} at 99 %, {} to {} ({} round trips)\n",
            micros(trip.median_us),
            micros(trip.p99_us),
            micros(trip.least_us),
            micros(trip.most_us),
            trip.count
        );
    }
    crate::print(&text)
}

/// Formats a number with an SI prefix.
fn scaled(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.2} G", value / 1e9),
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e3 => format!("{:.1} k", value / 1e3),
        value => format!("{value:.0} "),
    }
}

fn micros(time: f64) -> String {
    match time {
        time if time >= 1e6 => format!("{:.2} s", time / 1e6),
        time if time >= 1e3 => format!("{:.2} ms", time / 1e3),
        time if time >= 100.0 => format!("{time:.0} µs"),
        time => format!("{time:.1} µs"),
    }
}

/// Formats a time.
pub fn time(time: Duration) -> String {
    micros(time.as_nanos() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_or_so() {
        assert_eq!(
            [scaled(12.0), scaled(1500.0), scaled(5.3e6), scaled(2e9)],
            ["12 ", "1.5 k", "5.30 M", "2.00 G"]
        );
        assert_eq!([micros(12.34), micros(123.4), micros(1234.0)], ["12.3 µs", "123 µs", "1.23 ms"]);
        assert_eq!(time(Duration::from_secs(2)), "2.00 s");
    }
}
