use super::*;

fn times() -> Times {
    Times::new(20, 2)
}

#[test]
fn waking_on_a_busy_machine_does_not_make_a_sleep_unavoidable() {
    let limit = times().avoidable_sleep;
    assert!(limit > ticks(150_000), "a busy machine wakes a thread so late");
    assert!(limit < ticks(500_000), "a message in 500 µs is no reason to spin");
}

#[test]
fn failed_spins_stop_spinning_until_a_short_sleep() {
    let mut vain = FailedSpins(0);
    for _ in 0..4 {
        assert!(!vain.expects_to_sleep());
        vain.note(true);
    }
    assert!(vain.expects_to_sleep());
    vain.note(false);
    assert!(!vain.expects_to_sleep());
    (0..100).for_each(|_| vain.note(true));
    vain.note(false);
    assert!(vain.expects_to_sleep(), "once does not count");
    vain.note(false);
    vain.note(false);
    assert!(!vain.expects_to_sleep());
}

/// Returns the microseconds lost in a second if each look costs `away` microseconds.
fn lost(away: u64, starved: bool) -> u64 {
    let (losses, times, away) = (YieldLosses::new(), times(), ticks(away * 1000));
    let (mut now, mut lost) = (0, 0);
    while now < ticks(1_000_000_000) {
        if losses.allow(now) {
            now += away;
            lost += away;
            losses.add(now, away, &times, || starved);
        }
        now += ticks(10_000);
    }
    lost / ticks(1000)
}

#[test]
fn yield_losses_are_a_bounded_share_of_the_time() {
    for away in [10, 100, 3000] {
        let lost = lost(away, true);
        let share = 1_000_000 / u64::from(RARE_INTERVAL);
        assert!((share / 2..share * 3 / 2).contains(&lost), "{lost} of {share}, {away} at a time");
    }
}

#[test]
fn a_peer_on_the_same_core_is_waited_for() {
    assert!(lost(50, false) > 800_000);
    assert!(lost(3000, false) > 900_000, "a core is free, so the next yield is short");
}

#[test]
fn rare_yield_losses_do_not_stop_spinning() {
    let (losses, times) = (YieldLosses::new(), times());
    for round in 1..1000 {
        let now = ticks(round * 50_000) * u64::from(RARE_INTERVAL);
        losses.add(now, ticks(45_000), &times, || panic!("the rule must not count the runnable threads"));
        assert!(losses.allow(now));
    }
}

fn ticks(nanos: u64) -> u64 {
    nanos_to_ticks(nanos)
}

/// Waits `waits` times, `gap` nanoseconds apart, with `batch` messages each. Returns the pauses.
fn stream(pause: &mut PauseRule, waits: u64, gap: u64, batch: u64) -> Vec<u64> {
    (0..waits)
        .map(|_| {
            let now = pause.last + ticks(gap);
            pause.ticks = pause.next(now, pause.received + batch, 0);
            pause.last = now + pause.ticks;
            pause.ticks
        })
        .collect()
}

#[test]
fn pauses_grow_in_a_stream_and_stop_when_they_bring_nothing() {
    let mut pause = PauseRule::new();
    let (first, long) = (ticks(FIRST_NS), ticks(LONG_NS));
    assert_eq!(stream(&mut pause, 3, 100, 1), [0; 3]);
    assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
    assert_eq!(stream(&mut pause, 3, 100, 10), [first * 2, first * 4, first * 8]);
    assert_eq!(stream(&mut pause, 3, 100, 10), [long; 3]);
    // Only one message: pausing stops, and the next attempt needs twice as many waits.
    assert_eq!(stream(&mut pause, 8, 100, 1), [0; 8]);
    assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
    assert_eq!(stream(&mut pause, 16, 100, 1), [0; 16]);
    assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
}

#[test]
fn pauses_are_the_longest_where_messages_come_as_fast_as_can_be() {
    let mut pause = PauseRule::new();
    stream(&mut pause, 4, 100, 1);
    let dense = |pause: u64| pause.div_ceil(ticks(DENSE_NS));
    while pause.ticks < ticks(WAKE) {
        let (batch, twice) = (dense(pause.ticks).max(WORTH), pause.ticks * 2);
        assert_eq!(stream(&mut pause, 1, 100, batch), [twice.min(ticks(WAKE))]);
    }
    let sparse = dense(pause.ticks) - 1;
    assert_eq!(stream(&mut pause, 1, 100, sparse), [ticks(LONG_NS)]);
}

#[test]
fn no_pause_for_messages_that_come_one_by_one_or_are_answered() {
    let mut pause = PauseRule::new();
    assert_eq!(stream(&mut pause, 100, 1000, 1), [0; 100]);
    for sent in 1..100 {
        let now = pause.last + ticks(100);
        assert_eq!(pause.next(now, pause.received + 1, sent), 0);
        pause.last = now;
    }
}
