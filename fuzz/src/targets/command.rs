//! Commands after the handshake, property lists and subscriptions.

use tautline_proto::command::{self, Command};
use tautline_proto::frame;
use tautline_proto::legacy_subscription;
use tautline_proto::metadata::{Properties, is_name, put_property};

/// Parses any bytes as the body of a command, as a property list and as an old-style
/// subscription.
pub fn run(input: &[u8]) {
    if let Ok(parsed) = command::parse(input) {
        let mut out = Vec::new();
        match parsed {
            Command::Ping { ttl_ds, context } => command::put_ping(&mut out, ttl_ds, context),
            Command::Pong { context } => command::put_pong(&mut out, context),
            Command::Subscribe(topic) => command::put_subscribe(&mut out, topic),
            Command::Cancel(topic) => command::put_cancel(&mut out, topic),
            Command::Error(reason) => command::put_error(&mut out, reason),
            Command::Ready(properties) => properties_hold(properties),
            Command::Join(name) | Command::Leave(name) | Command::Unknown { name, .. } => {
                assert!(name.len() <= input.len());
            }
        }
        if !out.is_empty() {
            let header = frame::decode_header(&out).unwrap().unwrap();
            assert!(header.is_command());
            assert_eq!(header.header_len as u64 + header.body_len, out.len() as u64);
            assert_eq!(command::parse(&out[header.header_len..]), Ok(parsed));
        }
    }
    properties_hold(Properties::new(input));
    if let Some((subscribe, topic)) = legacy_subscription(input) {
        assert_eq!((input[0], &input[1..]), (u8::from(subscribe), topic));
    }
}

/// A parsed value can be encoded, and decodes to the same value.
fn properties_hold(list: Properties<'_>) {
    let (mut out, mut count) = (Vec::new(), 0);
    for (name, value) in list.map_while(Result::ok) {
        assert!(is_name(name));
        put_property(&mut out, name, value);
        count += 1;
    }
    let again = Properties::new(&out);
    assert!(again.map(Result::unwrap).eq(list.take(count).map(Result::unwrap)));
}

/// One of each.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut frames = [const { Vec::new() }; 6];
    let [ping, pong, subscribe, cancel, error, list] = &mut frames;
    command::put_ping(ping, 600, b"context");
    command::put_pong(pong, b"context");
    command::put_subscribe(subscribe, b"topic");
    command::put_cancel(cancel, b"");
    command::put_error(error, b"400");
    put_property(list, "Socket-Type", b"DEALER");
    put_property(list, "Identity", b"me");
    let ready = [b"\x05READY", &list[..]].concat();
    let mut seeds: Vec<Vec<u8>> = frames[..5].iter().map(|frame| frame[2..].to_vec()).collect();
    seeds.extend([ready, frames[5].clone(), b"\x04JOINgroup".to_vec(), b"\x05LEAVEgroup".to_vec()]);
    seeds.extend([b"\x01topic".to_vec(), b"\x00topic".to_vec(), b"\x03FOOdata".to_vec()]);
    seeds
}
