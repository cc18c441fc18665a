use super::*;

#[cfg(linux_kernel)]
fn status(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

#[cfg(unix)]
/// Runs on a new thread, because the settings stay with the thread.
fn elsewhere(test: impl FnOnce() + Send + 'static) {
    std::thread::spawn(test).join().unwrap();
}

#[cfg(linux_kernel)]
#[test]
fn names_are_cut_at_a_character() {
    elsewhere(|| {
        set_name("short");
        assert_eq!(status("Name"), "short");
        set_name("fourteen bytesé");
        assert_eq!(status("Name"), "fourteen bytes");
        set_name("a\0b");
        assert_eq!(status("Name"), "a");
    });
}

#[cfg(linux_kernel)]
#[test]
fn affinity_holds_one_allowed_core() {
    elsewhere(|| {
        let allowed = status("Cpus_allowed_list");
        let first: usize = allowed.split([',', '-']).next().unwrap().parse().unwrap();
        pin(first).unwrap();
        assert_eq!(status("Cpus_allowed_list"), first.to_string());
        assert_eq!(set_affinity(&[]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(set_affinity(&[usize::MAX]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    });
}

#[cfg(linux_kernel)]
#[test]
fn all_signals_are_blocked() {
    elsewhere(|| {
        block_all_signals();
        let blocked = u64::from_str_radix(&status("SigBlk"), 16).unwrap();
        let of = |signal: i32| 1_u64 << (signal - 1);
        assert_ne!(blocked & of(libc::SIGINT), 0);
        assert_ne!(blocked & of(libc::SIGCHLD), 0);
    });
}

#[cfg(linux_kernel)]
#[test]
fn timer_slack_is_taken() {
    elsewhere(|| {
        set_timer_slack_ns(1234);
        // SAFETY: no arguments beyond the command.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }, 1234);
    });
}

#[test]
fn the_thread_that_asks_how_many_run_is_one_of_them() {
    assert!(runnable().is_none_or(|n| n >= 1));
    assert_eq!(runnable().is_some(), cfg!(linux_kernel) && std::path::Path::new("/proc/loadavg").exists());
}

#[cfg(unix)]
#[test]
fn scheduling_skips_negatives_and_refuses_unknown() {
    elsewhere(|| {
        set_scheduling(-1, -1).unwrap();
        // The default policy has no priorities, so any priority is brought into its range.
        set_scheduling(libc::SCHED_OTHER, 50).unwrap();
        assert_eq!(set_scheduling(12345, 1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    });
}

#[test]
fn yielding_takes_time() {
    let spent: u64 = (0..1000).map(|_| yield_now_timed()).sum();
    assert!(spent > 0);
    assert!(cpu_count() >= 1);
    assert_eq!(process_id(), std::process::id());
}

#[test]
fn a_started_thread_has_its_name_and_is_joined() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    let done = Arc::new(AtomicBool::new(false));
    let in_thread = done.clone();
    // A stack that is too small for the system becomes one of the usual size.
    let thread = start("of a test", 1, move || {
        #[cfg(linux_kernel)]
        assert_eq!(status("Name"), "of a test");
        in_thread.store(true, SeqCst);
    })
    .unwrap();
    assert!(!thread.is_current());
    thread.join();
    assert!(done.load(SeqCst));
}

#[test]
fn a_panic_ends_only_its_thread() {
    start("panics", STACK, || panic!("expected by this test")).unwrap().join();
}
