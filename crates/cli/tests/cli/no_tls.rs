//! `taut` without TLS.

use crate::support::{run, test};

#[test]
fn tls_that_was_not_built_in_is_told() {
    test("tls_that_was_not_built_in_is_told", || {
        for args in [
            &["sub", "wss://127.0.0.1:*/news"][..],
            &["proxy", "wss://127.0.0.1:*", ":*"],
            &["bench", "tls+tcp://127.0.0.1:*"],
            &["ping", "tls+tcp://127.0.0.1:1"],
            &["keygen", "--ca", "/nowhere"],
        ] {
            run(args).failed(2, &["built without TLS", "--features tls"]);
        }
        run(&["metrics", "--otlp", "https://a"])
            .failed(2, &["built without TLS, so https is not available", "--features tls"]);
        run(&["sub", "--tls-trust", "x", ":1"]).failed(2, &["--tls-trust"]);
    });
}
