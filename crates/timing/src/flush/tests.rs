//! Tests of the flush rule with a simulated clock.

use super::super::HABIT;
use super::super::bursts::SURE_ENOUGH;
use super::*;

fn us(n: u64) -> u64 {
    crate::clock::nanos_to_ticks(n * 1000)
}

/// A rule, and the account of the only thread that uses it.
struct Writer {
    rule: FlushRule,
    thread: ThreadAccount,
}

impl Writer {
    fn count(&mut self) -> bool {
        self.rule.count()
    }

    fn decide(&mut self, now: u64, pending: u64, len: usize, reply: bool) -> Decision {
        self.rule.decide(&self.thread, now, pending, len, reply)
    }

    fn end_batch(&mut self, now: u64) -> Decision {
        self.rule.end_batch(&self.thread, now)
    }

    fn record_flush(&mut self, start: u64, end: u64, drained: bool) {
        self.rule.record_flush(&self.thread, start, end, drained);
    }

    fn resume(&mut self, now: u64) {
        self.rule.resume(&self.thread, now);
    }
}

/// Returns a rule for a thread that has not written yet.
fn rule() -> Writer {
    Writer { rule: FlushRule::default(), thread: ThreadAccount::new() }
}

/// Writes at `now`, which takes 10 µs. Returns the end of the write.
fn write(rule: &mut Writer, now: u64) -> u64 {
    rule.record_flush(now, now + us(10), true);
    now + us(10)
}

#[test]
fn the_first_message_of_a_lull_is_written_at_once() {
    let mut rule = rule();
    assert!(rule.count());
    assert_eq!(rule.decide(us(1000), 66, 64, false), Decision::Flush);
}

/// Programs often send the first messages before a connection exists, and such a write ends at
/// once.
#[test]
fn write_cost_is_learned_after_cheap_first_write() {
    for first in 1..50 {
        let mut rule = rule();
        rule.count();
        rule.record_flush(us(1000), us(1000) + first, false);
        let (mut now, mut writes) = (us(2000), 0);
        for _ in 0..100_000 {
            now += us(1) / 10;
            if rule.count() && rule.decide(now, 66, 64, false) == Decision::Flush {
                rule.record_flush(now, now + us(2), true);
                now += us(2);
                writes += 1;
            }
        }
        assert!(writes < 10_000, "{writes} writes, after one of {first} ticks");
    }
}

/// A ping-pong through shared memory is faster than the minimum time between two writes to a
/// kernel.
#[test]
fn replies_may_follow_each_other_as_fast_as_they_can_be_written() {
    let written = |cost: u64| {
        let mut rule = rule();
        let (mut now, mut flushes) = (us(1000), 0);
        for _ in 0..100 {
            rule.count();
            if rule.decide(now, 66, 64, true) == Decision::Flush {
                rule.record_flush(now, now + cost, true);
                now += cost;
                flushes += 1;
            }
            now += us(1) / 4;
        }
        flushes
    };
    assert!(written(us(1) / 10) > 90);
    assert!(written(us(3)) < 60);
}

#[test]
fn a_full_write_is_all_that_goes_into_one_segment() {
    // With the header of each frame. Over loopback a segment has 65,483 bytes.
    for (len, messages) in
        [(64, 989), (255, 254), (256, 246), (1024, 63), (8192, 7), (16_384, 3), (40_000, 1), (65_536, 1)]
    {
        let each = framed(len);
        let full = (1..).find(|n| is_full_write(n * each, len)).unwrap();
        assert_eq!(full, messages, "of {len} bytes");
    }
}

#[test]
fn the_next_look_of_a_stream_is_where_its_write_is_full() {
    let mut rule = rule();
    (0..600).for_each(|_| assert!(rule.count() || rule.rule.unflushed_messages < rule.rule.next));
    rule.record_flush(us(1000), us(1020), true);
    let mut pending = 0;
    loop {
        pending += framed(1024);
        if rule.count()
            && rule.decide(us(1020) + pending / framed(1024), pending, 1024, false) == Decision::Flush
        {
            break;
        }
    }
    assert_eq!(pending, 63 * framed(1024));
}

/// Sends a burst at `start`: a message every 100 ns, plus the time of the writes. Returns the
/// numbers of the messages after which a write happened.
fn burst(rule: &mut Writer, start: u64, messages: u64) -> Vec<u64> {
    let (mut written, mut now) = (Vec::new(), start);
    for number in 1..=messages {
        now += crate::clock::nanos_to_ticks(100);
        // Another thread has written the end of the burst before. Its hint makes the rule look at
        // the first message.
        if (rule.count() || number == 1) && rule.decide(now, 66, 64, false) == Decision::Flush {
            now = write(rule, now);
            written.push(number);
        }
    }
    written
}

#[test]
fn end_of_repeated_burst_is_written_at_once() {
    let mut rule = rule();
    assert_eq!(burst(&mut rule, us(1000), 3), [1]);
    assert_eq!(burst(&mut rule, us(2000), 3), [1, 3], "the length of the first burst is known now");
    assert_eq!(burst(&mut rule, us(3000), 4), [1, 3], "in a longer burst, the other messages wait");
    assert_eq!(burst(&mut rule, us(4000), 3), [1, 3]);
}

#[test]
fn end_of_long_burst_is_predicted_with_few_checks() {
    let mut rule = rule();
    for (round, length) in [1000, 77, 300, 300, 1000, 77].into_iter().enumerate() {
        let written = burst(&mut rule, us(1000 * (1 + round as u64)), length);
        assert_eq!(written.last() == Some(&length), round >= 3, "round {round}: {written:?}");
    }
    assert!(rule.rule.next == 1, "the next burst begins with a look");
}

#[test]
fn unpredicted_messages_are_written_by_owner_or_driver() {
    let mut rule = rule();
    let mut burst = |at: u64, messages: u64| {
        let mut now = us(at);
        let decisions = (0..messages).map(|_| {
            rule.count();
            now += 1;
            let decision = rule.decide(now, 66, 64, false);
            if decision == Decision::Flush {
                now = write(&mut rule, now);
            }
            decision
        });
        decisions.collect::<Vec<_>>()
    };
    let (flush, told) = (Decision::Flush, Decision::Later(Deferred::WatchNotified));
    let (unforeseen, foreseen) =
        (Decision::Later(Deferred::Unassigned), Decision::Later(Deferred::Predicted));
    assert_eq!(burst(1000, 4), [flush, unforeseen, told, told]);
    for round in 2..2 + u64::from(HABIT) {
        assert_eq!(burst(1000 * round, 4), [flush, unforeseen, told, flush], "round {round}");
    }
    assert_eq!(burst(30_000, 4), [flush, foreseen, foreseen, flush]);
    assert_eq!(
        burst(31_000, 6),
        [flush, foreseen, foreseen, flush, unforeseen, told],
        "longer than predicted"
    );
    assert_eq!(burst(32_000, 4), [flush, unforeseen, told, flush], "the prediction is no longer reliable");
}

#[test]
fn interruption_ends_no_burst_and_wakes_no_driver() {
    let mut rule = rule();
    for round in 1..20 {
        let _ = burst(&mut rule, us(1000 * round), 10);
    }
    assert_eq!(rule.rule.bursts.lengths, [10; 4]);
    // Six messages, then another thread runs for 50 us, then the other four.
    let mut now = us(20_000);
    let decisions: Vec<_> = (0..10u64)
        .map(|n| {
            rule.count();
            now += if n == 6 { us(50) } else { 1 };
            let decision = rule.decide(now, 66, 64, false);
            if decision == Decision::Flush {
                now = write(&mut rule, now);
            }
            decision
        })
        .collect();
    let written: Vec<_> = (1..=10).filter(|&n| decisions[n - 1] == Decision::Flush).collect();
    assert_eq!(written, [7, 10], "when the sender continues, and at the end");
    assert!(!decisions.contains(&Decision::Later(Deferred::Unassigned)));
    assert_eq!(rule.rule.bursts.lengths, [10; 4]);
    assert_eq!(burst(&mut rule, us(21_000), 10).last(), Some(&10));
    assert_eq!(
        burst(&mut rule, us(21_050), 10).last(),
        Some(&10),
        "after a whole burst, a short pause counts"
    );
}

#[test]
fn interruptions_that_come_often_are_no_longer_taken_for_such() {
    let mut rule = rule();
    for round in 1..20 {
        let _ = burst(&mut rule, us(1000 * round), 10);
    }
    let mut rounds = 0;
    while rule.rule.bursts.sure >= HABIT {
        rounds += 1;
        let _ = burst(&mut rule, us(20_000 + 50 * rounds), 4);
    }
    assert!(rounds <= 5, "{rounds}");
    for round in 1..20 {
        let _ = burst(&mut rule, us(21_000 + 50 * round), 4);
    }
    assert_eq!(burst(&mut rule, us(22_000), 4).last(), Some(&4));
}

/// Sends bursts of `messages`, one message every `work` ns, until the rule predicts their length. A
/// write takes 10 us. Then sends one burst at `start` and returns the numbers of the written
/// messages.
fn held(work: u64, messages: u64, pause: u64, reply: bool) -> Vec<u64> {
    let ticks = crate::clock::nanos_to_ticks;
    let mut rule = rule();
    let (mut now, mut written) = (us(1000), Vec::new());
    for round in 0..40 {
        written.clear();
        now += us(if round == 39 { pause } else { 1000 });
        for number in 1..=messages {
            now += ticks(work);
            if rule.count() && rule.decide(now, 66, 64, reply) == Decision::Flush {
                rule.record_flush(now, now + us(10), true);
                now += us(10);
                written.push(number);
            }
        }
    }
    written
}

#[test]
fn short_predicted_burst_is_written_when_complete() {
    assert_eq!(held(100, 10, 1000, false), [10]);
    assert_eq!(held(100, 2, 1000, false), [2]);
    assert_eq!(held(100, 10, 1000, true).first(), Some(&1), "a peer waits for it");
    assert_eq!(held(100, 10, 20_000, false), [1, 10], "after a long time no thread watches");
    assert_eq!(held(100, 1, 1000, false), [1]);
    assert_eq!(held(1_500, 10, 1000, false).first(), Some(&1), "too long to be held");
}

#[test]
fn held_burst_is_written_when_late() {
    let mut rule = rule();
    rule.rule.cost = us(8);
    rule.rule.bursts.flushed = 10;
    rule.rule.bursts.lengths = [10; 4];
    rule.rule.bursts.sure = SURE_ENOUGH;
    let mut decide = |at: u64| {
        rule.count();
        rule.decide(at, 66, 64, false)
    };
    let foreseen = Decision::Later(Deferred::Predicted);
    let first = us(5000);
    assert_eq!([first, first + us(2), first + us(7)].map(&mut decide), [foreseen; 3]);
    assert_eq!(decide(first + us(9)), Decision::Flush);
    rule.record_flush(first + us(9), first + us(10), true);
    assert!(!rule.rule.bursts.can_hold(us(1000), rule.rule.cost), "the next burst is not held");
}

#[test]
fn time_that_others_took_is_no_lull() {
    let mut rule = rule();
    for round in 1..4 {
        assert_eq!(burst(&mut rule, us(1000 * round), 1), [1]);
    }
    rule.count();
    rule.decide(us(5000), 66, 64, false);
    let now = write(&mut rule, us(5000));
    rule.count();
    assert_ne!(rule.decide(now + 1, 66, 64, false), Decision::Flush);
    rule.resume(now + us(50));
    rule.count();
    rule.decide(now + us(51), 66, 64, false);
    assert_eq!(rule.rule.bursts.began, us(5000));
}

#[test]
fn a_batch_is_written_as_it_ends_unless_batches_make_a_stream() {
    let mut rule = rule();
    let mut batch = |at: u64| {
        (0..100).for_each(|_| assert!(rule.count() || rule.rule.unflushed_messages < rule.rule.next));
        let decision = rule.end_batch(at);
        if decision == Decision::Flush {
            rule.record_flush(at, at + us(2), true);
        }
        decision
    };
    let (flush, told) = (Decision::Flush, Decision::Later(Deferred::WatchNotified));
    let unforeseen = Decision::Later(Deferred::Unassigned);
    assert_eq!([us(1000), us(1100), us(1200)].map(&mut batch), [flush; 3], "each in a lull");
    assert_eq!(
        [us(1300), us(1350), us(1400), us(1450)].map(&mut batch),
        [flush; 4],
        "even if the messages are a little closer"
    );
    let stream = [us(1451), us(1452), us(1453), us(1458), us(1459), us(1460)].map(&mut batch);
    assert_eq!(stream, [unforeseen, told, told, flush, told, told]);
    assert_eq!(
        [us(1500), us(1501)].map(&mut batch),
        [flush, unforeseen],
        "after a lull, a thread must be notified again"
    );
}

#[test]
fn a_full_kernel_buffer_suspends_the_size_rule() {
    let mut rule = rule();
    rule.count();
    rule.record_flush(us(99), us(100), false);
    rule.count();
    assert_ne!(rule.decide(us(101), FULL_BYTES * 4, 64, false), Decision::Flush);
    assert_eq!(rule.decide(us(121), FULL_BYTES * 4, 64, false), Decision::Flush);
}

#[test]
fn clock_checks_become_rare_while_kernel_is_full() {
    let mut rule = rule();
    rule.count();
    rule.record_flush(us(1000), us(1001), false);
    // One message every 250 ns.
    let looks = (1..=64_u64).filter(|number| {
        let now = us(1001) + crate::clock::nanos_to_ticks(number * 250);
        let looks = rule.count();
        assert!(
            !looks
                || rule.decide(now, 2 * FULL_BYTES, 1024, false) == Decision::Later(Deferred::WatchNotified)
        );
        looks
    });
    assert!(looks.count() < 20);
}

#[test]
fn an_interrupted_stream_wakes_no_thread() {
    let mut rule = rule();
    let mut send = |now: u64| {
        let looked = rule.count();
        let decision = looked.then(|| rule.decide(now, 66, 64, false));
        if decision == Some(Decision::Flush) {
            rule.record_flush(now, now + us(1), true);
        }
        decision
    };
    let mut stream = |start: u64, messages: u64| -> Vec<_> {
        (0..messages).filter_map(|n| send(us(start) + us(n) / 2)).collect()
    };
    let unforeseen = Decision::Later(Deferred::Unassigned);
    assert!(stream(1000, 50).contains(&unforeseen), "a thread must watch it");
    assert!(stream(1100, 500).contains(&unforeseen), "a burst after a burst of 25 us");
    assert!(!stream(1400, 500).contains(&unforeseen), "50 us after a stream of 250");
    assert!(stream(5000, 500).contains(&unforeseen), "after a lull");
}

#[test]
fn a_busy_sender_writes_in_a_ninth_of_its_time() {
    let mut rule = rule();
    for round in 0..100 {
        rule.rule.pace.note(us(1), us(5 + round % 2 * 15));
    }
    rule.rule.interval = us(1);
    rule.record_flush(us(1000), us(1005), true);
    let flushes = |rule: &mut Writer, micros: u64| {
        for _ in 0..5 {
            rule.count();
        }
        rule.decide(us(1005 + micros), 660, 64, false) == Decision::Flush
    };
    // The write took 5 µs.
    let pause = (5..100).step_by(5).find(|&micros| flushes(&mut rule, micros));
    assert_eq!(pause, Some(40));
}

#[test]
fn a_long_pause_does_not_make_usual_pauses_look_short() {
    let mut rule = rule();
    rule.rule.bursts.pause = us(100);
    rule.record_flush(us(1000), us(1001), true);
    rule.count();
    rule.decide(us(1_000_000), 66, 64, false);
    assert!((us(150)..us(300)).contains(&rule.rule.bursts.pause), "{}", rule.rule.bursts.pause);
}
