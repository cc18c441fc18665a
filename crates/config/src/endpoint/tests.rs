//! Every form of an endpoint, with the answers of libzmq 4.3.5 for the same text.

use super::tcp::Port;
use super::*;

fn bind(text: &str) -> Result<String, Error> {
    let endpoint = Endpoint::parse(text)?;
    endpoint.check_bind().map(|()| endpoint.to_string())
}

fn connect(text: &str) -> Result<String, Error> {
    let endpoint = Endpoint::parse(text)?;
    endpoint.check_connect().map(|()| endpoint.to_string())
}

fn both(text: &str, canonical: &str) {
    assert_eq!(bind(text).as_deref(), Ok(canonical), "bind {text}");
    assert_eq!(connect(text).as_deref(), Ok(canonical), "connect {text}");
}

fn neither(text: &str, error: Error) {
    assert_eq!(bind(text), Err(error), "bind {text}");
    assert_eq!(connect(text), Err(error), "connect {text}");
}

fn bind_only(text: &str, canonical: &str) {
    assert_eq!(bind(text).as_deref(), Ok(canonical), "bind {text}");
    assert_eq!(connect(text), Err(Error::Invalid), "connect {text}");
}

#[test]
fn an_endpoint_has_a_scheme_and_an_address() {
    for text in [
        "",
        "tcp",
        "tcp:",
        "tcp:/",
        "tcp://",
        "://",
        "://x",
        "tcp//x",
        ":5556",
        "foo://",
        "ipc://",
        "inproc://",
    ] {
        neither(text, Error::Invalid);
    }
}

#[test]
fn schemes_are_known_by_their_exact_name() {
    for scheme in ["foo", "TCP", "tcp ", "VSOCK", "WS", "WSS", "tipc", "vmci", "pgm", "epgm", "norm"] {
        neither(&format!("{scheme}://127.0.0.1:5555"), Error::ProtocolNotSupported);
    }
    // Parsed later, by the socket types that support datagrams.
    both("udp://127.0.0.1:5555", "udp://127.0.0.1:5555");
    neither("UDP://127.0.0.1:5555", Error::ProtocolNotSupported);
}

#[test]
fn tcp_addresses() {
    both("tcp://127.0.0.1:5555", "tcp://127.0.0.1:5555");
    both("tcp://127.0.0.1:65535", "tcp://127.0.0.1:65535");
    both("tcp://127.0.0.1:015561", "tcp://127.0.0.1:15561");
    both("tcp://127.0.0.1:15562x", "tcp://127.0.0.1:15562");
    both("tcp://[127.0.0.1]:5555", "tcp://127.0.0.1:5555");
    both("tcp://127.0.0.1%lo:5555", "tcp://127.0.0.1:5555");
    both("tcp://[::1]:5555", "tcp://[::1]:5555");
    both("tcp://::1:5555", "tcp://[::1]:5555");
    both("tcp://[0:0::0]:5555", "tcp://[::]:5555");
    both("tcp://[fe80::1%lo]:5555", "tcp://[fe80::1%lo]:5555");
    both("tcp://[::ffff:127.0.0.1]:5555", "tcp://[::ffff:127.0.0.1]:5555");
    both("tcp://eth0:5555", "tcp://eth0:5555");
    both("tcp://[lo]:5555", "tcp://lo:5555");
    both("tcp://no.such.invalid:5555", "tcp://no.such.invalid:5555");
    both("tcp://127.1:5555", "tcp://127.1:5555");
}

#[test]
fn different_tcp_addresses_differ() {
    let tcp = |text: &str| Endpoint::parse(text).unwrap().address::<TcpEndpoint>().unwrap().clone();
    assert_eq!(tcp("tcp://*:*").host, Host::Wildcard);
    assert_eq!(tcp("tcp://*:*").port, Port::Wildcard);
    assert_eq!(tcp("tcp://*:0").port.number(), 0);
    assert_eq!(tcp("tcp://lo:5").port.number(), 5);
    assert_eq!(tcp("tcp://eth0:5").host, Host::Name("eth0".into()));
    let zone = Some("lo".to_owned());
    assert_eq!(tcp("tcp://[fe80::1%lo]:5").host, Host::Literal("fe80::1".parse().unwrap(), zone));
    let from = tcp("tcp://lo:0;127.0.0.1:5").source.unwrap();
    assert_eq!(from, HostPort { host: Host::Name("lo".into()), port: Port::Wildcard });
}

#[test]
fn tcp_wildcards_are_for_bind() {
    bind_only("tcp://*:5555", "tcp://0.0.0.0:5555");
    bind_only("tcp://[*]:5555", "tcp://0.0.0.0:5555");
    bind_only("tcp://*:*", "tcp://0.0.0.0:*");
    bind_only("tcp://127.0.0.1:*", "tcp://127.0.0.1:*");
    bind_only("tcp://127.0.0.1:0", "tcp://127.0.0.1:*");
    bind_only("tcp://lo:*", "tcp://lo:*");
}

#[test]
fn bind_ignores_text_around_a_port() {
    for text in ["+5555", " 5555", "5555!", "5555 ", "5555/", "5555/path", "5555\n"] {
        bind_only(&format!("tcp://127.0.0.1:{text}"), "tcp://127.0.0.1:5555");
    }
}

#[test]
fn tcp_needs_a_port_from_1_to_65535() {
    for text in ["*", "*:", "5555", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:99999999999"] {
        neither(&format!("tcp://{text}"), Error::Invalid);
    }
    for text in [
        "127.0.0.1:-1",
        "127.0.0.1:x",
        "127.0.0.1:0x10",
        "127.0.0.1:!",
        "127.0.0.1:00",
        "[::1%]:5555",
        "[%eth0]:5555",
        "[[x]]:5555",
    ] {
        neither(&format!("tcp://{text}"), Error::Invalid);
    }
}

#[test]
fn an_empty_host_is_no_device() {
    for text in ["tcp://:5555", "tcp://[]:5555", "tcp://:*", "tcp://:5556;127.0.0.1:5555"] {
        assert_eq!(bind(text), Err(Error::NoDevice), "{text}");
        assert_eq!(connect(text), Err(Error::Invalid), "{text}");
    }
}

#[test]
fn connect_refuses_impossible_hosts() {
    for text in ["a b", "-a", "a/b", ".a", "localhost/", " 127.0.0.1", "[::1", "::1]", "h\u{e9}"] {
        assert_eq!(connect(&format!("tcp://{text}:5555")), Err(Error::Invalid), "{text}");
        assert!(bind(&format!("tcp://{text}:5555")).is_ok(), "left to the resolver: {text}");
    }
    for text in ["a_b", "a.", "a..b", "256.1.1.1"] {
        assert!(connect(&format!("tcp://{text}:5555")).is_ok(), "left to the resolver: {text}");
    }
}

#[test]
fn tcp_source_addresses() {
    for text in [
        "127.0.0.1:5556;127.0.0.1:5555",
        "eth0:5556;host:5555",
        "[::1]:5556;[::1]:5555",
        "lo:*;127.0.0.1:5555",
    ] {
        both(&format!("tcp://{text}"), &format!("tcp://{text}"));
    }
    both("tcp://127.0.0.1:0;127.0.0.1:5555", "tcp://127.0.0.1:*;127.0.0.1:5555");
    bind_only("tcp://*:5556;127.0.0.1:5555", "tcp://0.0.0.0:5556;127.0.0.1:5555");
    for text in
        ["127.0.0.1;127.0.0.1:5555", "lo;127.0.0.1:5555", ";127.0.0.1:5555", "127.0.0.1:5556;", "1:1;1:1;1"]
    {
        neither(&format!("tcp://{text}"), Error::Invalid);
    }
}

#[test]
fn bound_addresses_are_shown_as_numbers() {
    let show =
        |text: &str| format!("tcp://{}", TcpEndpoint::from(text.parse::<std::net::SocketAddr>().unwrap()));
    assert_eq!(show("127.0.0.1:5555"), "tcp://127.0.0.1:5555");
    assert_eq!(show("0.0.0.0:5555"), "tcp://0.0.0.0:5555");
    assert_eq!(show("[::]:5555"), "tcp://[::]:5555");
    assert_eq!(show("[fe80::1%3]:5555"), "tcp://[fe80::1%3]:5555");
    both(&show("[::ffff:127.0.0.1]:5555"), "tcp://[::ffff:127.0.0.1]:5555");
}

#[test]
fn ipc_addresses() {
    both("ipc:///tmp/x", "ipc:///tmp/x");
    both("ipc://relative:1", "ipc://relative:1");
    both("ipc:// ", "ipc:// ");
    both("ipc://@abstract", "ipc://@abstract");
    let parsed = Endpoint::parse("ipc://@abc").unwrap();
    assert_eq!(parsed.address(), Some(&IpcEndpoint::Abstract(b"abc".to_vec())));
    for text in ["ipc://*", "ipc://**", "ipc://*x"] {
        bind_only(text, "ipc://*");
    }
    neither("ipc://@", Error::Invalid);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn ipc_addresses_fit_the_system() {
    for (first, rest) in [("/", "p"), ("@", "q")] {
        let longest = format!("ipc://{first}{}", rest.repeat(106));
        both(&longest, &longest);
        neither(&format!("{longest}{rest}"), Error::NameTooLong);
    }
}

#[test]
fn inproc_names_are_free_text() {
    for name in ["a", "*", " ", "a?b=c", "x://y", &"n".repeat(5000)] {
        both(&format!("inproc://{name}"), &format!("inproc://{name}"));
    }
}

#[test]
fn machines_and_their_ports() {
    both("vsock://2:5555", "vsock://2:5555");
    both("vsock://3:4294967294", "vsock://3:4294967294");
    both("vsock://@:1", "vsock://1:1");
    both("vsock://2:0", "vsock://2:0");
    bind_only("vsock://*:*", "vsock://*:*");
    bind_only("vsock://-1:-1", "vsock://*:*");
    bind_only("vsock://4294967295:5555", "vsock://*:5555");
    for text in ["2", "2:", ":2", "x:1", "2:x", "+2:1", "-2:1", "4294967296:1", "2:5:5", "1.2.3.4:5"] {
        neither(&format!("vsock://{text}"), Error::Invalid);
    }
}

#[test]
fn web_sockets_have_paths() {
    both("ws://127.0.0.1:5555", "ws://127.0.0.1:5555/");
    both("ws://127.0.0.1:5555/", "ws://127.0.0.1:5555/");
    both("ws://[::1]:5555/a/b?c=d#e", "ws://[::1]:5555/a/b?c=d#e");
    both("ws://example.org:80//x:y;z", "ws://example.org:80//x:y;z");
    bind_only("ws://*:*/a", "ws://0.0.0.0:*/a");
    bind_only("ws://127.0.0.1:0", "ws://127.0.0.1:*/");
    for text in [
        "127.0.0.1",
        "127.0.0.1/a:80",
        "/a",
        "127.0.0.1:80/a b",
        "127.0.0.1:80/a\r\nb",
        "127.0.0.1:80/\u{e4}",
    ] {
        neither(&format!("ws://{text}"), Error::Invalid);
    }
}
