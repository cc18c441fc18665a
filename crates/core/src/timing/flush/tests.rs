//! The flush rule, with a clock of its own.

use super::super::bursts::{SURE, SURE_ENOUGH};
use super::*;

fn us(n: u64) -> u64 {
    tautline_io::clock::nanos_to_ticks(n * 1000)
}

#[test]
fn the_first_message_of_a_lull_is_written_at_once() {
    let mut rule = FlushRule::default();
    assert!(rule.count());
    assert_eq!(rule.decide(us(1000), 66, 64, false), Decision::Flush);
}

#[test]
fn a_stream_waits_for_its_gap_or_for_a_full_write() {
    let mut rule = FlushRule::default();
    let mut now = us(1000);
    rule.count();
    rule.decide(now, 66, 64, false);
    rule.flushed(now, now, true);
    for k in 1..=4 {
        rule.count();
        assert_ne!(rule.decide(now + 1, 66 * k, 64, false), Decision::Flush);
    }
    rule.count();
    assert_eq!(rule.decide(now + 1, FULL_BYTES, 64, false), Decision::Flush);
    now += us(1);
    rule.flushed(now, now, true);
    rule.count();
    assert_eq!(rule.decide(now + us(9), 66, 64, false), Decision::Flush);
}

/// A ping-pong through shared memory is quicker than the least time between two writes to a kernel.
#[test]
fn replies_may_follow_each_other_as_fast_as_they_can_be_written() {
    let written = |cost: u64| {
        let mut rule = FlushRule::default();
        let (mut now, mut flushes) = (us(1000), 0);
        for _ in 0..100 {
            rule.count();
            if rule.decide(now, 66, 64, true) == Decision::Flush {
                rule.flushed(now, now + cost, true);
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
    // With the header of each frame; 65,483 bytes are a segment over loopback.
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
    let mut rule = FlushRule::default();
    (0..600).for_each(|_| assert!(rule.count() || rule.since < rule.next));
    rule.flushed(us(1000), us(1020), true);
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

#[test]
fn the_gap_grows_with_bursts_and_is_bounded() {
    let mut rule = FlushRule::default();
    for _ in 0..20 {
        for _ in 0..4 {
            rule.count();
        }
        rule.flushed(us(1), us(2), true);
    }
    assert_eq!(rule.gap, times().gap_max);
    rule.count();
    rule.flushed(us(3), us(4), true);
    assert_eq!(rule.gap, times().gap_max / 2);
}

/// Sends a burst at `start`, a message every 100 ns; the numbers of the messages after which it was written.
fn burst(rule: &mut FlushRule, start: u64, messages: u64) -> Vec<u64> {
    let mut written = Vec::new();
    for number in 1..=messages {
        let now = start + tautline_io::clock::nanos_to_ticks(number * 100);
        // What is left of the burst before, others have written: they give a hint with which the first message is looked at.
        if (rule.count() || number == 1) && rule.decide(now, 66, 64, false) == Decision::Flush {
            rule.flushed(now, now + 1, true);
            written.push(number);
        }
    }
    written
}

#[test]
fn the_end_of_a_burst_as_long_as_the_last_ones_is_written_at_once() {
    let mut rule = FlushRule::default();
    assert_eq!(burst(&mut rule, us(1000), 3), [1]);
    assert_eq!(burst(&mut rule, us(2000), 3), [1, 3], "the length of the first one is known now");
    assert_eq!(burst(&mut rule, us(3000), 4), [1, 3], "a longer one: the rest waits");
    assert_eq!(burst(&mut rule, us(4000), 3), [1, 3]);
}

#[test]
fn the_end_of_a_long_burst_is_foreseen_without_looking_at_every_message() {
    let mut rule = FlushRule::default();
    for (round, length) in [1000, 77, 300, 300, 1000, 77].into_iter().enumerate() {
        let written = burst(&mut rule, us(1000 * (1 + round as u64)), length);
        assert_eq!(written.last() == Some(&length), round >= 3, "round {round}: {written:?}");
    }
    assert!(rule.next == 1, "and the next one begins with a look");
}

#[test]
fn what_no_burst_before_foretells_is_somebodys_to_write() {
    let mut rule = FlushRule::default();
    let mut burst = |at: u64, messages: u64| {
        let decisions = (0..messages).map(|n| {
            rule.count();
            let now = us(at) + n;
            let decision = rule.decide(now, 66, 64, false);
            if decision == Decision::Flush {
                rule.flushed(now, now, true);
            }
            decision
        });
        decisions.collect::<Vec<_>>()
    };
    let (flush, told) = (Decision::Flush, Decision::Later(Rest::Told));
    let (unforeseen, foreseen) = (Decision::Later(Rest::Unforeseen), Decision::Later(Rest::Foreseen));
    assert_eq!(burst(1000, 4), [flush, unforeseen, told, told]);
    for round in 2..2 + u64::from(SURE) {
        assert_eq!(burst(1000 * round, 4), [flush, unforeseen, told, flush], "round {round}");
    }
    assert_eq!(burst(30_000, 4), [flush, foreseen, foreseen, flush]);
    assert_eq!(
        burst(31_000, 6),
        [flush, foreseen, foreseen, flush, unforeseen, told],
        "longer than foreseen"
    );
    assert_eq!(burst(32_000, 4), [flush, unforeseen, told, flush], "no more to be relied upon");
}

#[test]
fn an_interruption_is_neither_the_end_of_a_burst_nor_a_reason_to_tell_somebody() {
    let mut rule = FlushRule::default();
    for round in 1..20 {
        let _ = burst(&mut rule, us(1000 * round), 10);
    }
    assert_eq!(rule.bursts.lengths, [10; 4]);
    // Six messages, somebody else for 50 us, the other four.
    let decisions: Vec<_> = (0..10u64)
        .map(|n| {
            rule.count();
            let now = us(20_000) + if n < 6 { n } else { us(50) + n };
            let decision = rule.decide(now, 66, 64, false);
            if decision == Decision::Flush {
                rule.flushed(now, now, true);
            }
            decision
        })
        .collect();
    let written: Vec<_> = (1..=10).filter(|&n| decisions[n - 1] == Decision::Flush).collect();
    assert_eq!(written, [1, 7, 10], "at once, when the sender is back, and at the end");
    assert!(!decisions.contains(&Decision::Later(Rest::Unforeseen)));
    assert_eq!(rule.bursts.lengths, [10; 4]);
    assert_eq!(burst(&mut rule, us(21_000), 10).last(), Some(&10));
    assert_eq!(
        burst(&mut rule, us(21_050), 10).last(),
        Some(&10),
        "after a whole burst a short pause is one"
    );
}

#[test]
fn interruptions_that_come_often_are_no_longer_taken_for_such() {
    let mut rule = FlushRule::default();
    for round in 1..20 {
        let _ = burst(&mut rule, us(1000 * round), 10);
    }
    let mut rounds = 0;
    while rule.bursts.sure >= SURE {
        rounds += 1;
        let _ = burst(&mut rule, us(20_000 + 50 * rounds), 4);
    }
    assert!(rounds <= 5, "{rounds}");
    for round in 1..20 {
        let _ = burst(&mut rule, us(21_000 + 50 * round), 4);
    }
    assert_eq!(burst(&mut rule, us(22_000), 4).last(), Some(&4));
}

/// Sends bursts of `messages`, one every `work` ns, until it is foreseen how long they are; a write takes 10 us. Then one at `start`
/// and which messages of it were written.
fn held(work: u64, messages: u64, pause: u64, reply: bool) -> Vec<u64> {
    let ticks = tautline_io::clock::nanos_to_ticks;
    let mut rule = FlushRule::default();
    let (mut now, mut written) = (us(1000), Vec::new());
    for round in 0..40 {
        written.clear();
        now += us(if round == 39 { pause } else { 1000 });
        for number in 1..=messages {
            now += ticks(work);
            if rule.count() && rule.decide(now, 66, 64, reply) == Decision::Flush {
                rule.flushed(now, now + us(10), true);
                now += us(10);
                written.push(number);
            }
        }
    }
    written
}

#[test]
fn a_burst_that_is_foreseen_and_short_is_written_at_once_when_it_is_whole() {
    assert_eq!(held(100, 10, 1000, false), [10]);
    assert_eq!(held(100, 2, 1000, false), [2]);
    assert_eq!(held(100, 10, 1000, true).first(), Some(&1), "a peer waits for it");
    assert_eq!(held(100, 10, 20_000, false), [1, 10], "after a long time nobody looks");
    assert_eq!(held(100, 1, 1000, false), [1]);
    assert_eq!(held(1_500, 10, 1000, false).first(), Some(&1), "too long to be held");
}

#[test]
fn what_is_held_is_written_when_it_takes_longer_than_foreseen() {
    let mut rule = FlushRule { cost: us(8), ..FlushRule::default() };
    rule.bursts.flushed = 10;
    rule.bursts.lengths = [10; 4];
    rule.bursts.sure = SURE_ENOUGH;
    let mut decide = |at: u64| {
        rule.count();
        rule.decide(at, 66, 64, false)
    };
    let foreseen = Decision::Later(Rest::Foreseen);
    let first = us(5000);
    assert_eq!([first, first + us(2), first + us(7)].map(&mut decide), [foreseen; 3]);
    assert_eq!(decide(first + us(9)), Decision::Flush);
    rule.flushed(first + us(9), first + us(10), true);
    assert!(!rule.bursts.holds(us(1000), rule.cost), "and the next burst is not held");
}

#[test]
fn a_reply_does_not_wait_for_what_singles_do() {
    let decide = |reply| {
        let mut rule = FlushRule { cost: us(12), ..FlushRule::default() };
        rule.count();
        rule.flushed(us(1000), us(1010), true);
        rule.count();
        rule.decide(us(1012), 66, 64, reply)
    };
    assert_eq!(decide(true), Decision::Flush);
    assert_ne!(decide(false), Decision::Flush);
}

#[test]
fn time_that_others_took_is_no_lull() {
    let mut rule = FlushRule::default();
    for round in 1..4 {
        assert_eq!(burst(&mut rule, us(1000 * round), 1), [1]);
    }
    rule.count();
    rule.decide(us(5000), 66, 64, false);
    rule.flushed(us(5000), us(5000), true);
    rule.count();
    assert_ne!(rule.decide(us(5000) + 1, 66, 64, false), Decision::Flush);
    rule.resume(us(5050));
    rule.count();
    rule.decide(us(5051), 66, 64, false);
    assert_eq!(rule.bursts.began, us(5000));
}

/// Sends `messages` as a program does that works `work` ns on each, or, if it is `paced`, has one due every `work` ns; a write takes 3 µs
/// of its time. How many writes there were.
fn stream(rule: &mut FlushRule, messages: u64, work: u64, paced: bool) -> u64 {
    stream_over(rule, 3_000, messages, work, paced)
}

/// The same where a write takes `write` ns.
fn stream_over(rule: &mut FlushRule, write: u64, messages: u64, work: u64, paced: bool) -> u64 {
    let ticks = tautline_io::clock::nanos_to_ticks;
    let (mut now, mut due, mut writes) = (rule.last + ticks(work), rule.last, 0);
    for _ in 0..messages {
        due += ticks(work);
        now = if paced { due.max(now + ticks(50)) } else { now + ticks(work) };
        if rule.count() && rule.decide(now, 66, 64, false) == Decision::Flush {
            rule.flushed(now, now + ticks(write), true);
            now += ticks(write);
            writes += 1;
        }
    }
    writes
}

#[test]
fn the_messages_of_a_saturated_sender_are_written_many_at_a_time() {
    let mut rule = FlushRule::default();
    stream(&mut rule, 500, 1_000, false);
    let writes = stream(&mut rule, 10_000, 1_000, false);
    assert!((100..250).contains(&writes), "{writes} writes, one in 64 us");
    let later = rule.last + us(1_000);
    assert_eq!(burst(&mut rule, later, 1), [1], "after a lull, at once");
}

#[test]
fn nobody_waits_for_more_where_a_write_costs_next_to_nothing() {
    let mut rule = FlushRule::default();
    // Saturated, as long as it went through a socket.
    stream_over(&mut rule, 3_000, 500, 1_000, false);
    let writes = stream_over(&mut rule, 200, 10_000, 1_000, true);
    assert!(writes > 900, "{writes} writes, one in 10 us");
}

#[test]
fn the_messages_of_a_paced_sender_hardly_wait() {
    for interval in [4_000, 5_000, 8_000, 12_000, 100_000] {
        let mut rule = FlushRule::default();
        stream(&mut rule, 1_000, interval, true);
        let writes = stream(&mut rule, 10_000, interval, true);
        assert!(writes > 9_900, "{writes} writes of a message every {interval} ns");
    }
}

#[test]
fn who_must_catch_up_is_not_taken_for_saturated() {
    let mut rule = FlushRule::default();
    stream(&mut rule, 1_000, 1_000, true);
    let writes = stream(&mut rule, 10_000, 1_000, true);
    assert!(writes > 700, "{writes} writes: the usual gap of 8 us, and 3 for the write");
}

#[test]
fn a_batch_is_written_as_it_ends_unless_batches_make_a_stream() {
    let mut rule = FlushRule::default();
    let mut batch = |at: u64| {
        (0..100).for_each(|_| assert!(rule.count() || rule.since < rule.next));
        let decision = rule.end_batch(at);
        if decision == Decision::Flush {
            rule.flushed(at, at, true);
        }
        decision
    };
    let (flush, told) = (Decision::Flush, Decision::Later(Rest::Told));
    let unforeseen = Decision::Later(Rest::Unforeseen);
    assert_eq!([us(1000), us(1100), us(1200)].map(&mut batch), [flush; 3], "each in a lull");
    assert_eq!([us(1300), us(1350), us(1400), us(1450)].map(&mut batch), [flush; 4], "the gap is 8 us now");
    let stream = [us(1451), us(1452), us(1453), us(1458), us(1459), us(1460)].map(&mut batch);
    assert_eq!(stream, [unforeseen, told, told, flush, told, told]);
    assert_eq!(
        [us(1500), us(1501)].map(&mut batch),
        [flush, unforeseen],
        "after a lull somebody must be told anew"
    );
}

#[test]
fn the_end_of_a_batch_that_is_written_in_part_follows_at_once() {
    let mut rule = FlushRule::default();
    let mut batch = |at: u64, long: bool, drained: bool| {
        rule.count();
        rule.flushed(at, at, drained);
        if long {
            rule.begin_long_batch();
        }
        rule.count();
        rule.end_batch(at + 1)
    };
    assert_eq!(batch(us(1000), true, true), Decision::Flush);
    assert_ne!(batch(us(1100), false, true), Decision::Flush, "that was for the one before");
    assert_eq!(batch(us(1200), true, false), Decision::Later(Rest::Told), "the kernel is full");
}

#[test]
fn a_full_kernel_buffer_suspends_the_size_rule() {
    let mut rule = FlushRule::default();
    rule.count();
    rule.flushed(us(99), us(100), false);
    rule.count();
    assert_ne!(rule.decide(us(101), FULL_BYTES * 4, 64, false), Decision::Flush);
    assert_eq!(rule.decide(us(121), FULL_BYTES * 4, 64, false), Decision::Flush);
}

#[test]
fn the_clock_is_looked_at_less_often_however_much_waits_for_the_kernel() {
    let mut rule = FlushRule::default();
    rule.count();
    rule.flushed(us(1000), us(1001), false);
    // A message every 250 ns.
    let looks = (1..=64_u64).filter(|number| {
        let now = us(1001) + tautline_io::clock::nanos_to_ticks(number * 250);
        let looks = rule.count();
        assert!(!looks || rule.decide(now, 2 * FULL_BYTES, 1024, false) == Decision::Later(Rest::Told));
        looks
    });
    assert!(looks.count() < 20);
}

#[test]
fn the_clock_is_looked_at_less_often_in_a_stream_but_at_least_every_16() {
    let mut rule = FlushRule::default();
    let now = us(1000);
    rule.flushed(now, now, true);
    let mut looks = 0;
    for n in 1..=200u64 {
        if rule.count() {
            looks += 1;
            assert_ne!(rule.decide(now + 1, 66 * n, 64, false), Decision::Flush);
        }
    }
    assert!((200 / 16..60).contains(&looks), "{looks}");
}

#[test]
fn an_interrupted_stream_wakes_nobody() {
    let mut rule = FlushRule::default();
    let mut send = |now: u64| {
        let looked = rule.count();
        let decision = looked.then(|| rule.decide(now, 66, 64, false));
        if decision == Some(Decision::Flush) {
            rule.flushed(now, now + us(1), true);
        }
        decision
    };
    let mut stream = |start: u64, messages: u64| -> Vec<_> {
        (0..messages).filter_map(|n| send(us(start) + us(n) / 2)).collect()
    };
    let unforeseen = Decision::Later(Rest::Unforeseen);
    assert!(stream(1000, 50).contains(&unforeseen), "somebody must look after it");
    assert!(stream(1100, 500).contains(&unforeseen), "a burst after a burst of 25 us");
    assert!(!stream(1400, 500).contains(&unforeseen), "50 us after a stream of 250");
    assert!(stream(5000, 500).contains(&unforeseen), "after a lull");
}

/// Sends `messages`, one every `work` ns, as fast as a program can that has nothing else to do; a write takes `write` us of its time. The
/// messages of each write, but for the first ones.
fn batches(work: u64, write: u64, messages: u64) -> Vec<u64> {
    let mut rule = FlushRule::default();
    let (mut now, mut pending, mut batches) = (us(1000), 0, Vec::new());
    for _ in 0..messages {
        now += tautline_io::clock::nanos_to_ticks(work);
        pending += 1;
        if rule.count() && rule.decide(now, 66 * pending, 64, false) == Decision::Flush {
            rule.flushed(now, now + us(write), true);
            now += us(write);
            batches.push(std::mem::take(&mut pending));
        }
    }
    batches.split_off(10)
}

#[test]
fn a_stream_waits_for_a_full_write_if_that_is_there_before_it_could_have_written_the_rest() {
    let full = FULL_BYTES / 66;
    let all = |batches: Vec<u64>, least: u64, most: u64| {
        assert!(batches.iter().all(|n| (least..=most).contains(n)), "{batches:?}");
    };
    all(batches(20, 12, 50_000), full, full + 64);
    all(batches(20, 100, 50_000), full, full + 64);
    // 8 us are 400 messages.
    all(batches(20, 2, 50_000), 390, 464);
}

#[test]
fn the_end_of_a_stream_does_not_count_as_its_pace() {
    let mut rule = FlushRule::default();
    let now = us(1000);
    (0..600).for_each(|_| assert!(rule.count() || rule.since < rule.next));
    rule.flushed(now, now + us(100), true);
    (0..400).for_each(|_| assert!(rule.count() || rule.since < rule.next));
    let decide = |rule: &mut FlushRule, after: u64| rule.decide(now + us(100 + after), 66 * 400, 64, false);
    assert_ne!(decide(&mut rule, 9), Decision::Flush, "a full write is there in a moment");
    assert_eq!(decide(&mut rule, 129), Decision::Flush, "it is not");
}

#[test]
fn after_a_flush_that_was_interrupted_nobody_waits_as_long_as_that_took() {
    let mut rule = FlushRule::default();
    (0..600).for_each(|_| assert!(rule.count() || rule.since < rule.next));
    rule.flushed(us(1000), us(11_000), true);
    // 330 messages in 100 us: 21 KiB.
    (0..330).for_each(|_| assert!(rule.count() || rule.since < rule.next));
    assert_eq!(rule.decide(us(11_100), 66 * 330, 64, false), Decision::Flush);
}

#[test]
fn replies_and_a_few_large_messages_do_not_wait_for_a_full_write() {
    let decide = |messages: u64, reply: bool| {
        let mut rule = FlushRule::default();
        (0..600).for_each(|_| assert!(rule.count() || rule.since < rule.next));
        rule.flushed(us(1000), us(1030), true);
        (0..messages).for_each(|_| assert!(rule.count() || rule.since < rule.next));
        rule.decide(us(1040), 10_000 * messages, 10_000, reply)
    };
    assert_eq!(decide(3, false), Decision::Flush);
    assert_eq!(decide(4, true), Decision::Flush);
    assert_ne!(decide(4, false), Decision::Flush);
}

/// A reply that is followed by as many messages each time: the last one is written with what the rule knows of the first one, though
/// that was written before it was looked at.
#[test]
fn what_a_reply_teaches_is_learned_when_it_is_written() {
    let mut rule = FlushRule::default();
    let tick = tautline_io::clock::nanos_to_ticks(100);
    let mut written = Vec::new();
    for start in [us(1000), us(2000), us(3000)] {
        for number in 1..=3 {
            let now = start + number * tick;
            if (rule.count() || number == 1) && rule.decide(now, 66, 64, number == 1) == Decision::Flush {
                rule.flushed(now, now + 1, true);
                written.push(number);
            }
        }
    }
    assert_eq!(written, [1, 1, 3, 1, 3]);
}
