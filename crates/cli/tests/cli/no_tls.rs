//! Without `wss`.

use crate::support::{run, test};

#[test]
fn wss_that_was_not_built_in_is_told() {
    test("wss_that_was_not_built_in_is_told", || {
        for args in [
            &["sub", "wss://127.0.0.1:*/news"][..],
            &["proxy", "wss://127.0.0.1:*", ":*"],
            &["bench", "wss://127.0.0.1:*"],
        ] {
            run(args).failed(2, &["built without wss", "--features wss"]);
        }
        run(&["metrics", "--otlp", "https://a"]).failed(2, &["built without https", "--features wss"]);
        run(&["sub", "--tls-trust", "x", ":1"]).failed(2, &["--tls-trust"]);
    });
}
