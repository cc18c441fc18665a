//! Every target for a moment. Those that count memory are in `tests/live.rs`: nothing else runs beside them.

use tautline_fuzz::smoke::smoke;

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            smoke(stringify!($name));
        })*
    };
}

targets! { frame command greeting null plain curve older websocket socks zap endpoint options messages keys memory }
