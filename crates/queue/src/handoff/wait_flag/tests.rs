//! Loom model of a thread that waits, and of one that changes the state.

use super::WaitFlag;
use crate::sync::Arc;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Relaxed;

#[test]
fn loom_a_change_or_the_flag_is_seen() {
    loom::model(|| {
        let shared = Arc::new((WaitFlag::new(), AtomicU32::new(0)));
        let changer = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                shared.1.store(1, Relaxed);
                shared.0.is_raised_now() && shared.0.take()
            })
        };
        shared.0.raise();
        let finds = shared.1.load(Relaxed) == 1;
        let notified = changer.join().unwrap();
        assert!(finds || notified);
        assert_eq!(shared.0.is_raised(), !notified);
    });
}
