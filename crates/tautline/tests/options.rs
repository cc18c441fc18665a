//! Options by name: the engine accepts each one, and its effect is checked where it is immediately visible.

use std::time::Duration;

use tautline::{Builder, Context, Dealer, Error, Pub, Pull, Push, Router, Sub, XPub, kind};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

fn common<K: kind::Kind>(builder: Builder<K>) -> Builder<K> {
    let time = Duration::from_millis(1500);
    builder
        .linger(None)
        .routing_id("name")
        .reconnect_interval(time)
        .reconnect_interval_max(time)
        .connect_timeout(time)
        .handshake_interval(time)
        .heartbeat_interval(time)
        .heartbeat_timeout(time)
        .heartbeat_ttl(time)
        .immediate(true)
        .ipv6(true)
        .backlog(10)
        .conflate(false)
        .property("X-Colour", "green")
        .tcp_keepalive(true)
        .tcp_keepalive_idle(time)
        .tcp_keepalive_interval(time)
        .tcp_keepalive_count(3)
        .tcp_max_retransmit(time)
        .send_buffer(100_000)
        .receive_buffer(100_000)
        .type_of_service(8)
        .bind_to_device("lo")
        .socks_proxy("127.0.0.1:1080")
        .socks_credentials("joe", "swordfish")
}

#[test]
fn every_option_is_taken() {
    let context = Context::new();
    common(Dealer::builder(&context)).send_hwm(1).receive_hwm(1).probe_router(true).build().unwrap();
    common(Router::builder(&context))
        .router_mandatory(true)
        .router_handover(true)
        .probe_router(true)
        .build()
        .unwrap();
    common(XPub::builder(&context))
        .verbose(true)
        .verboser(true)
        .no_drop(true)
        .welcome_message("hi")
        .build()
        .unwrap();
    let time = Duration::from_secs(1);
    common(Sub::builder(&context)).receive_timeout(time).max_message_size(1000).build().unwrap();
    common(Pub::builder(&context)).send_timeout(time).no_drop(true).build().unwrap();
    #[cfg(feature = "tls")]
    Pub::builder(&context)
        .tls_identity("", "")
        .tls_trust("")
        .tls_trust_system(true)
        .tls_hostname("x")
        .build()
        .unwrap();
}

fn build<K: kind::Kind>(builder: Builder<K>) -> tautline::Result<()> {
    builder.build().map(drop)
}

#[test]
fn out_of_range_option_fails_build() {
    let context = Context::new();
    let century = Duration::from_secs(100 * 365 * 86_400);
    let mut raw = Pull::new(&context).unwrap();
    for (error, text) in [
        (
            build(Push::builder(&context).property("Colour", "green")),
            "ZMQ_METADATA does not take this value of 12 bytes",
        ),
        (
            build(Push::builder(&context).linger(century)),
            "ZMQ_LINGER takes at most 2147483647 ms, not 3153600000s",
        ),
        (
            build(Push::builder(&context).tcp_keepalive_idle(century)),
            "ZMQ_TCP_KEEPALIVE_IDLE takes at most 2147483647, not 3153600000",
        ),
        (
            build(Push::builder(&context).plain_client("", "x")),
            "ZMQ_PLAIN_USERNAME does not take this value of 0 bytes",
        ),
        (build(Push::builder(&context).zap_domain("")), "ZMQ_ZAP_DOMAIN does not take this value of 0 bytes"),
        (
            build(Dealer::builder(&context).routing_id("")),
            "ZMQ_ROUTING_ID does not take this value of 0 bytes",
        ),
        (
            build(Push::builder(&context).send_hwm(u32::MAX)),
            "ZMQ_SNDHWM takes at most 2147483647, not 4294967295",
        ),
        (
            build(Pub::builder(&context).max_subscriptions(0)),
            "ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS does not take the value 0",
        ),
        (raw.set_raw_option(23, &(-1_i32).to_ne_bytes()), "ZMQ_SNDHWM does not take the value -1"),
        (raw.set_raw_option(40, &1_i32.to_ne_bytes()), "PULL sockets have no ZMQ_XPUB_VERBOSE"),
        (raw.set_raw_option(6, b""), "PULL sockets have no ZMQ_SUBSCRIBE"),
        (raw.set_raw_option(9999, b""), "there is no option 9999"),
        (raw.raw_option(23, &mut [0; 2]).map(drop), "ZMQ_SNDHWM does not fit into a buffer of 2 bytes"),
        (context.set_io_threads(u32::MAX), "ZMQ_IO_THREADS does not take the value 4294967295"),
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    }
    // The first refused option is reported.
    let error = build(Push::builder(&context).send_hwm(u32::MAX).linger(century)).unwrap_err();
    assert!(error.to_string().starts_with("ZMQ_SNDHWM "), "{error}");
}

#[test]
fn properties_travel_with_messages() {
    with_watchdog(LIMIT, "properties_travel", || {
        let context = Context::new();
        let mut pull = Pull::new(&context).unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let mut push = Push::builder(&context).property("X-Colour", "green").connect(&endpoint).unwrap();
        push.send("x").unwrap();
        let message = pull.recv().unwrap();
        assert_eq!(message.property("X-Colour"), Some("green"));
        assert!(message.properties().any(|property| property == ("Socket-Type", "PUSH")));
        assert_eq!(message.user_id(), None);
    });
}

#[test]
fn peers_greet_and_say_goodbye() {
    with_watchdog(LIMIT, "peers_greet", || {
        let context = Context::new();
        let mut router = Router::builder(&context).disconnect_message("gone").build().unwrap();
        let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
        let dealer = Dealer::builder(&context).hello_message("hello").connect(&endpoint).unwrap();
        let (peer, hello) = router.recv_from().unwrap();
        assert_eq!(hello[0], "hello");
        drop(dealer);
        let (left, gone) = router.recv_from().unwrap();
        assert_eq!((left, gone[0].as_str()), (peer, Ok("gone")));
    });
}
