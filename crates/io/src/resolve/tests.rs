use std::sync::mpsc;

use super::*;

fn ask(resolver: &Resolver, host: &str, family: AcceptedFamily) -> io::Result<Vec<SocketAddr>> {
    let (sender, receiver) = mpsc::channel();
    let asker = Arc::new(());
    let done = move |_, outcome| sender.send(outcome).unwrap();
    resolver.resolve(host.to_owned(), 5555, family, &asker, done).unwrap();
    receiver.recv().unwrap()
}

/// Holds the resolver's thread in a callback until the sender is dropped.
fn hold(resolver: &Resolver) -> mpsc::Sender<()> {
    let (started, wait_started) = mpsc::channel();
    let (go_on, wait_go_on) = mpsc::channel::<()>();
    let asker = Arc::new(());
    let done = move |_, _| {
        started.send(()).unwrap();
        let _ = wait_go_on.recv();
    };
    resolver.resolve("127.0.0.1".into(), 1, AcceptedFamily::Any, &asker, done).unwrap();
    wait_started.recv().unwrap();
    go_on
}

#[test]
fn localhost_is_the_loopback() {
    let resolver = Resolver::with_name("test/resolver");
    let addresses = ask(&resolver, "localhost", AcceptedFamily::V4).unwrap();
    assert_eq!(addresses, ["127.0.0.1:5555".parse().unwrap()]);
    let any = ask(&resolver, "localhost", AcceptedFamily::Any).unwrap();
    assert!(any.contains(&addresses[0]));
    assert!(any.iter().all(|address| address.ip().is_loopback()));
}

#[test]
fn literals_and_their_family() {
    let resolver = Resolver::new();
    assert_eq!(ask(&resolver, "::1", AcceptedFamily::V6).unwrap(), ["[::1]:5555".parse().unwrap()]);
    assert!(ask(&resolver, "::1", AcceptedFamily::V4).is_err());
    assert!(ask(&resolver, "127.0.0.1", AcceptedFamily::V6).is_err());
}

#[test]
fn the_caller_can_ask_by_itself() {
    assert_eq!(addresses("localhost", 7, AcceptedFamily::V4).unwrap(), ["127.0.0.1:7".parse().unwrap()]);
    assert!(numeric_addresses("localhost", 7, AcceptedFamily::V4).is_err());
    for ask in [addresses, numeric_addresses] {
        assert_eq!(ask("127.1", 7, AcceptedFamily::V4).unwrap(), ["127.0.0.1:7".parse().unwrap()]);
        let scoped = SocketAddrV6::new("fe80::1".parse().unwrap(), 7, 0, 4);
        assert_eq!(ask("fe80::1%4", 7, AcceptedFamily::V6).unwrap(), [scoped.into()]);
        for zone in ["", "0", "no-such-interface"] {
            let error = ask(&format!("fe80::1%{zone}"), 7, AcceptedFamily::V6).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}

#[test]
fn impossible_names_fail_and_the_next_request_is_answered() {
    let resolver = Resolver::default();
    // Labels longer than 63 characters never reach a name server.
    assert!(ask(&resolver, &"x".repeat(64), AcceptedFamily::Any).is_err());
    assert!(ask(&resolver, "zero\0", AcceptedFamily::Any).is_err());
    assert!(ask(&resolver, "", AcceptedFamily::Any).is_err());
    assert!(ask(&resolver, "127.0.0.1", AcceptedFamily::Any).is_ok());
}

#[test]
fn thread_ends_when_idle_and_comes_back() {
    let resolver = Resolver::with_idle_time("test/resolver", Duration::ZERO);
    for _ in 0..3 {
        ask(&resolver, "127.0.0.1", AcceptedFamily::Any).unwrap();
        while resolver.shared.state().running {
            std::thread::yield_now();
        }
    }
}

#[test]
fn drop_discards_unanswered_requests() {
    let resolver = Resolver::new();
    let go_on = hold(&resolver);
    let (sender, receiver) = mpsc::channel();
    let asker = Arc::new(());
    resolver
        .resolve("127.0.0.1".into(), 1, AcceptedFamily::Any, &asker, move |_, _| sender.send(()).unwrap())
        .unwrap();
    drop(resolver);
    assert!(receiver.recv().is_err());
    drop(go_on);
}

#[test]
fn an_asker_is_not_kept_and_its_answer_is_thrown_away() {
    let resolver = Resolver::new();
    let go_on = hold(&resolver);
    let (sender, receiver) = mpsc::channel();
    let asker = Arc::new(());
    let done = move |_, _| sender.send(()).unwrap();
    resolver.resolve("127.0.0.1".into(), 1, AcceptedFamily::Any, &asker, done).unwrap();
    assert_eq!(Arc::strong_count(&asker), 1);
    drop(asker);
    drop(go_on);
    assert!(receiver.recv().is_err());
    assert!(ask(&resolver, "127.0.0.1", AcceptedFamily::Any).is_ok());
}

#[test]
fn abandoned_requests_do_not_accumulate() {
    let resolver = Resolver::new();
    let go_on = hold(&resolver);
    let kept = Arc::new(());
    for n in 0..1000 {
        let asker = if n == 0 { kept.clone() } else { Arc::new(()) };
        resolver.resolve("127.0.0.1".into(), n, AcceptedFamily::Any, &asker, |_, _| ()).unwrap();
    }
    let waiting = resolver.shared.state().requests.len();
    assert!(waiting < 100, "{waiting}");
    drop(go_on);
}

#[test]
fn families_take_turns() {
    let ordered = |texts: &[&str]| {
        let addresses = texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 1)).collect();
        interleave_families(addresses).iter().map(|address| address.ip().to_string()).collect::<Vec<_>>()
    };
    assert!(ordered(&[]).is_empty());
    assert_eq!(ordered(&["1.1.1.1", "2.2.2.2"]), ["1.1.1.1", "2.2.2.2"]);
    assert_eq!(ordered(&["::1", "::2", "::3", "1.1.1.1"]), ["::1", "1.1.1.1", "::2", "::3"]);
    assert_eq!(
        ordered(&["1.1.1.1", "::1", "::2", "2.2.2.2", "::3"]),
        ["1.1.1.1", "::1", "2.2.2.2", "::2", "::3"]
    );
}

#[test]
fn literals_are_parsed_without_asking() {
    let parse = |host| parse_literal(host, 80);
    assert_eq!(parse("1.2.3.4"), Some("1.2.3.4:80".parse().unwrap()));
    assert_eq!(parse("::1"), Some("[::1]:80".parse().unwrap()));
    assert_eq!(parse("[2001:db8::1]"), Some("[2001:db8::1]:80".parse().unwrap()));
    assert_eq!(parse("fe80::1%7"), Some(SocketAddrV6::new("fe80::1".parse().unwrap(), 80, 0, 7).into()));
    for host in [
        "",
        "localhost",
        "1.2.3",
        "1.2.3.4.5",
        "[::1",
        "::1]",
        "[1.2.3.4]",
        "fe80::1%nowhere",
        "fe80::1%0",
        "%",
    ] {
        assert_eq!(parse(host), None, "{host}");
    }
    #[cfg(target_os = "linux")]
    assert_eq!(
        parse("[fe80::1%lo]"),
        Some(
            SocketAddrV6::new("fe80::1".parse().unwrap(), 80, 0, interfaces::scope_id("lo").unwrap()).into()
        )
    );
}
