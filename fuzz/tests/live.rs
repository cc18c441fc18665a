//! Every target that talks to living sockets and counts what they cost, one at a time: `Meter` has a lock, and this is a process of its
//! own.

use tautline_fuzz::TARGETS;
use tautline_fuzz::smoke::smoke;

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            smoke(stringify!($name));
        })*

        #[test]
        fn all_targets_are_tried() {
            let tried = [include_str!("smoke.rs"), include_str!("live.rs")].concat();
            let words: Vec<_> = tried.split_whitespace().collect();
            assert_eq!(TARGETS.iter().map(|target| target.name).find(|name| !words.contains(name)), None);
        }
    };
}

targets! { connection peers admission dialer datagram publisher }
