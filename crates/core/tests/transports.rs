//! Special properties of `ws` and `vsock` endpoints: paths, and the names of this machine.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::last_endpoint;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Socket, SocketType};
use tautline_testkit::with_watchdog;

const LINGER: i32 = 17;

fn exchange(context: &Context, bound: &mut Socket, endpoint: &str) {
    let mut connected = context.socket(SocketType::Pair).unwrap();
    connected.connect(endpoint).unwrap();
    let mut buffer = [0; 8];
    connected.send(b"there", Flags::NONE).unwrap();
    assert_eq!(bound.recv(&mut buffer, Flags::NONE), Ok(5));
    bound.send(b"back", Flags::NONE).unwrap();
    assert_eq!(connected.recv(&mut buffer, Flags::NONE), Ok(4));
}

#[test]
fn the_path_of_a_web_socket_begins_with_its_first_slash() {
    with_watchdog(Duration::from_secs(60), "paths", || {
        let context = Context::new();
        for path in ["/", "/a", "/a/", "/a/b/c", "//a//b", "/a/b?c=d/e"] {
            let mut pair = context.socket(SocketType::Pair).unwrap();
            pair.bind(&format!("ws://127.0.0.1:*{path}")).unwrap();
            let endpoint = last_endpoint(&mut pair);
            let (address, shown) = endpoint["ws://".len()..].split_once('/').unwrap();
            assert!(address.starts_with("127.0.0.1:"), "{endpoint}");
            assert_eq!(shown, &path[1..]);
            exchange(&context, &mut pair, &endpoint);
            pair.unbind(&endpoint).unwrap();

            // The request that a foreign server receives.
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = context.socket(SocketType::Pair).unwrap();
            client.set_option(LINGER, &0_i32.to_ne_bytes()).unwrap();
            client.connect(&format!("ws://{}{path}", listener.local_addr().unwrap())).unwrap();
            let mut request = String::new();
            BufReader::new(listener.accept().unwrap().0).read_line(&mut request).unwrap();
            assert_eq!(request, format!("GET {path} HTTP/1.1\r\n"));
        }
        context.terminate().unwrap();
    });
}

/// If the kernel has `vsock` and its loopback, messages go from this machine to itself.
#[test]
fn vsock_reaches_this_machine() {
    with_watchdog(Duration::from_secs(60), "vsock", || {
        let context = Context::new();
        let mut pair = context.socket(SocketType::Pair).unwrap();
        for refused in ["vsock://@", "vsock://@:x", "vsock://:1", "vsock://x:1"] {
            assert_eq!(pair.bind(refused), Err(Error::Invalid), "{refused}");
            assert_eq!(pair.connect(refused), Err(Error::Invalid), "{refused}");
        }
        for wildcard in ["vsock://*:1", "vsock://@:*"] {
            assert_eq!(pair.connect(wildcard), Err(Error::Invalid), "{wildcard}");
        }
        match pair.bind("vsock://@:*") {
            Ok(()) => {
                let endpoint = last_endpoint(&mut pair);
                let port = endpoint.strip_prefix("vsock://1:").unwrap().to_owned();
                exchange(&context, &mut pair, &format!("vsock://@:{port}"));
                exchange(&context, &mut pair, &endpoint);
            }
            // The kernel lacks `vsock`, or its loopback.
            Err(error) => assert!(matches!(error, Error::AddressNotAvailable | Error::Os(_)), "{error:?}"),
        }
        drop(pair);
        context.terminate().unwrap();
    });
}
