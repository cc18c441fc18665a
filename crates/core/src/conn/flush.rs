//! The flush rule: when a sender writes its queue to the kernel itself, and when it leaves the bytes for later.
//!
//! Pure bookkeeping on the owner's side, one per pipe: time comes in as ticks, decisions go out. The first message of a lull is
//! written at once; a stream is written in large pieces; what stays behind is covered by the I/O thread's residual timer
//! (`driver::residual`). `docs/architecture.md` has the reasons for the numbers.

use super::saturation::Saturation;
use std::cell::Cell;
use std::sync::OnceLock;

/// Pending bytes that are always worth a write.
pub(crate) const FULL_BYTES: u64 = 64 * 1024;

/// The rule's times in clock ticks.
#[derive(Debug)]
pub(super) struct Times {
    /// Least time between two writes of single messages.
    floor: u64,
    /// Longest gap between two writes while a stream flows.
    gap_max: u64,
    /// The same for a saturated sender whose messages come no faster than one in `slow`.
    gap_saturated: u64,
    slow: u64,
    /// How long the kernel's "full" is believed.
    blocked: u64,
    /// Longest cost of one write that is averaged; above it the thread was descheduled.
    cost_max: u64,
    /// So long without a message, and the next one begins a burst.
    quiet: u64,
    /// Pauses between bursts count as no longer than this.
    pause_max: u64,
    /// After a longer one nothing is held: it may be that nobody looks after it.
    seldom: u64,
    /// A thread that does anything but flushing for so long sends to no crowd (see `crowd`).
    pub(super) crowd: u64,
}

pub(super) fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| {
        let ticks = tautline_io::clock::nanos_to_ticks;
        Times {
            floor: ticks(500),
            gap_max: ticks(8_000),
            gap_saturated: ticks(64_000),
            slow: ticks(150),
            blocked: ticks(20_000),
            cost_max: ticks(15_000),
            quiet: ticks(10_000),
            pause_max: ticks(1_000_000),
            seldom: ticks(10_000_000),
            crowd: ticks(50_000),
        }
    })
}

thread_local! {
    /// Ticks that this thread has spent in flushes, of whatever pipe.
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// Tells threads apart: a socket may be handed from one to another, whose account is its own.
fn this_thread() -> usize {
    SPENT.with(|spent| std::ptr::from_ref(spent).addr())
}

/// Bursts in a row that ended as foreseen, after which the next one is expected to.
const SURE: u8 = 8;

/// How long the last bursts were. Programs often send the same number of messages together, again and again: the last one of a burst as
/// long as an earlier one is written at once, instead of by the residual timer. Where that can be relied upon, and all of a burst is there
/// in less time than a write takes, its first message is held until then as well: else the others would have to wait for it to be written.
#[derive(Debug, Default)]
struct Bursts {
    /// Messages of the current burst that were flushed; wraps, so that with `FlushRule::since` it gives their number.
    flushed: u32,
    /// When the current burst began, and when a message of it was last looked at.
    began: u64,
    seen: u64,
    /// The lengths of the last four bursts, 0 if one came too soon after the one before.
    lengths: [u32; 4],
    slot: u8,
    /// How many bursts in a row have left nothing behind.
    sure: u8,
    /// Of the current burst something was left queued.
    left: bool,
    /// It is longer than any of the last ones.
    overdue: bool,
    /// Average pause before a burst. A sender that is interrupted by somebody else on its core pauses as well, but not as long.
    pause: u64,
    /// Average time from the first message of a burst to its foreseen end, without that of the flushes between.
    span: u64,
    /// What the thread had spent in flushes when the current burst began.
    spent: u64,
    /// Nothing of the current burst is to be written before its foreseen end.
    held: bool,
}

impl Bursts {
    /// A message is looked at, `since` the last flush at `last`. Whether a burst is likely to end with it, and how many messages further
    /// on the next likely end is.
    fn look(&mut self, now: u64, since: u32, last: u64, cost: u64) -> (bool, u32) {
        let pause = now.saturating_sub(self.seen.max(last));
        if pause > times().quiet {
            let length = self.flushed.wrapping_add(since).wrapping_sub(1);
            let usual = self.pause;
            self.pause = (usual * 7 + pause.min(times().pause_max)) / 8;
            let whole = self.lengths.contains(&length) || self.lengths.iter().all(|&known| known <= length);
            if whole || pause > usual / 4 {
                self.begin(now, since, length, cost);
                self.held = self.holds(pause, cost);
            } else if since > 1 {
                self.sure /= 2;
            }
            self.left = false;
        }
        self.seen = now;
        let count = self.flushed.wrapping_add(since);
        let ends = count > 1 && self.lengths.contains(&count);
        let further_on = self.lengths.iter().filter_map(|length| length.checked_sub(count));
        let ahead = further_on.filter(|&ahead| ahead > 0).min().unwrap_or(u32::MAX);
        let overdue = !ends && self.lengths.iter().all(|&length| length <= count);
        if overdue && !std::mem::replace(&mut self.overdue, overdue) {
            // Nobody was told, since it was believed to end.
            self.left &= self.sure < SURE;
        }
        let flushing = SPENT.get().saturating_sub(self.spent);
        let elapsed = now.saturating_sub(self.began).saturating_sub(flushing);
        if self.held && elapsed > cost {
            // Not this time, and not the next times.
            self.held = false;
            self.span = times().cost_max;
        } else if ends {
            self.span = (self.span * 3 + elapsed.min(times().cost_max)) / 4;
        }
        (ends, ahead)
    }

    /// A burst begins at `now` with message `since` after the last flush; the one before was of `length`.
    fn begin(&mut self, now: u64, since: u32, length: u32, cost: u64) {
        let worth_it = now.saturating_sub(self.began) > 4 * cost;
        self.lengths[usize::from(self.slot % 4)] = if worth_it { length } else { 0 };
        self.slot = self.slot.wrapping_add(1);
        self.began = now;
        self.spent = SPENT.get();
        self.flushed = 1u32.wrapping_sub(since);
        self.sure = if since == 1 { (self.sure + 1).min(2 * SURE) } else { 0 };
        self.overdue = false;
    }

    /// Whether a burst that has just begun after a pause may be held.
    fn holds(&self, pause: u64, cost: u64) -> bool {
        let equal = self.lengths.iter().all(|&length| length > 1 && length == self.lengths[0]);
        equal && self.sure >= SURE && self.span < cost / 2 && pause < times().seldom
    }

    /// A batch has ended at `now`; the last flush was at `last`. What was foreseen was about single messages.
    fn batch(&mut self, now: u64, last: u64) {
        self.left &= now.saturating_sub(self.seen.max(last)) <= times().quiet;
        self.seen = now;
        self.sure = 0;
    }

    /// The sender has been kept by something else than its own work until `now`.
    fn resume(&mut self, now: u64) {
        self.seen = now;
    }

    /// Something is left queued.
    fn leave(&mut self) -> Rest {
        match std::mem::replace(&mut self.left, true) {
            _ if self.sure >= SURE && !self.overdue => Rest::Foreseen,
            true => Rest::Told,
            false => Rest::Unforeseen,
        }
    }
}

/// Who is going to write what a message leaves queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The sender, with the last message of the burst; somebody should look once in a while.
    Foreseen,
    /// Whoever was told with an earlier message of the burst.
    Told,
    /// Nobody yet.
    Unforeseen,
}

/// What to do after a message was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Write now.
    Flush,
    /// Leave it queued.
    Later(Rest),
}

/// The state of the rule for one pipe.
#[derive(Debug, Default)]
pub(crate) struct FlushRule {
    /// Messages since the last flush.
    since: u32,
    /// The number of messages at which the clock is looked at next.
    next: u32,
    /// End of the last flush.
    last: u64,
    /// Average cost of a flush of one message.
    cost: u64,
    /// Current gap between flushes of a stream.
    gap: u64,
    /// The kernel's buffer was full at the last flush.
    blocked: bool,
    /// Of the batch that is being queued a part is written already.
    long_batch: bool,
    /// What the thread had spent in flushes at the end of the last one, and which thread that was.
    spent: u64,
    thread: usize,
    bursts: Bursts,
    saturation: Saturation,
}

impl FlushRule {
    /// Counts a published message; true if [`FlushRule::decide`] must be asked.
    #[inline]
    pub(crate) fn count(&mut self) -> bool {
        self.since += 1;
        self.since >= self.next
    }

    /// Decides at time `now` (ticks) with `pending` bytes queued, the last message being `len` bytes long. For a `reply` a peer waits.
    pub(crate) fn decide(&mut self, now: u64, pending: u64, len: usize, reply: bool) -> Decision {
        let times = times();
        if self.since == 1 {
            self.saturation.begin(now, now.saturating_sub(self.last));
        }
        let due = self.is_due(now, reply);
        if self.blocked {
            // Whoever waits for the kernel has not come to the end of a burst.
            self.bursts.resume(now);
        }
        let (ends, ahead) = self.bursts.look(now, self.since, self.last, self.cost);
        self.bursts.held &= !self.blocked && !reply;
        if due && !self.bursts.held || !self.blocked && (ends || pending >= FULL_BYTES) {
            return Decision::Flush;
        }
        let step = if self.since < 4 {
            1
        } else {
            let room = (FULL_BYTES.saturating_sub(pending) / (len as u64 + 2)).clamp(1, 16) as u32;
            let near = self.saturation.within(times.quiet / 2);
            (self.since / 4).min(room).min(ahead).min(near).max(1)
        };
        self.next = self.since + step;
        // The I/O thread knows of a full kernel.
        Decision::Later(if self.blocked { Rest::Told } else { self.bursts.leave() })
    }

    /// The gap by the size of the last flushes, or what is good for a saturated sender.
    fn stream_gap(&self) -> u64 {
        let times = times();
        if self.saturation.is_sure(times.slow) {
            self.gap.max(times.gap_saturated)
        } else if self.saturation.is_tried() {
            self.gap.max(times.gap_max)
        } else {
            self.gap
        }
    }

    /// Whether enough time has passed since the last flush.
    fn is_due(&self, now: u64, reply: bool) -> bool {
        let times = times();
        let elapsed = now.saturating_sub(self.last);
        let gap = if reply {
            // All that the peer has sent is answered: nothing would be gained by waiting for more.
            self.gap
        } else {
            // With many peers the flushes of the others make each one's gap pass: half of the time must be left for messages.
            let here = self.thread == this_thread();
            let others = if here { SPENT.get().saturating_sub(self.spent) } else { 0 };
            self.stream_gap().max(self.cost / 4).max(others.saturating_mul(2))
        };
        let gap = gap.max(times.floor);
        elapsed >= if self.blocked { gap.max(times.blocked) } else { gap }
    }

    /// So much of a batch is queued that a part of it is written before its end.
    pub(crate) fn begin_long_batch(&mut self) {
        self.long_batch = true;
    }

    /// All of it is written, by whatever rule.
    pub(crate) fn end_long_batch(&mut self) {
        self.long_batch = false;
    }

    /// Decides at time `now` (ticks), when a batch has been queued of which nothing was looked at: it is written at once, unless others
    /// have come before it so quickly that they are a stream. The end of a long one is, too: to have somebody else look after it costs
    /// more than one write on top of those for each 64 KiB.
    pub(crate) fn end_batch(&mut self, now: u64) -> Decision {
        self.saturation.forget();
        self.bursts.batch(now, self.last);
        let long = std::mem::take(&mut self.long_batch);
        if self.is_due(now, false) || long && !self.blocked {
            return Decision::Flush;
        }
        self.next = self.since + 1;
        Decision::Later(if self.blocked { Rest::Told } else { self.bursts.leave() })
    }

    /// Notes a flush that began at `start` and ended at `end` (ticks); `drained` unless the kernel would not take all.
    pub(crate) fn flushed(&mut self, start: u64, end: u64, drained: bool) {
        let times = times();
        if drained {
            self.saturation.written(self.since, start, self.cost, times.quiet);
        }
        if self.since >= 4 {
            self.gap = (self.gap * 2).clamp(times.floor, times.gap_max);
        } else {
            self.gap /= 2;
            if self.since == 1 {
                self.cost = (self.cost * 7 + end.saturating_sub(start).min(times.cost_max)) / 8;
            }
        }
        self.spent = SPENT.get().wrapping_add(end.saturating_sub(start));
        SPENT.set(self.spent);
        self.thread = this_thread();
        self.blocked = !drained;
        self.last = end;
        self.restart(1);
    }

    /// Counts anew, and looks at the clock with the message of number `next`.
    fn restart(&mut self, next: u32) {
        self.bursts.flushed = self.bursts.flushed.wrapping_add(self.since);
        self.bursts.held = false;
        self.since = 0;
        self.next = next;
    }

    /// Notes that the sweep looks after what is queued: the next message asks again.
    pub(crate) fn swept(&mut self) {
        self.saturation.forget();
        self.restart(1);
    }

    /// Notes that after the last decision something kept the sender until `now`, which is no lull.
    pub(crate) fn resume(&mut self, now: u64) {
        self.bursts.resume(now);
    }

    /// Notes that somebody else holds the pump: look again after a few messages.
    pub(crate) fn contended(&mut self) {
        self.saturation.forget();
        self.restart(8);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
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
    fn a_stream_waits_for_its_gap_or_for_64_kib() {
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
        let mut rule = FlushRule::default();
        rule.cost = us(8);
        rule.bursts =
            Bursts { flushed: 10, lengths: [10; 4], sure: SURE, pause: us(1000), ..Bursts::default() };
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
        let ticks = tautline_io::clock::nanos_to_ticks;
        let (mut now, mut due, mut writes) = (rule.last + ticks(work), rule.last, 0);
        for _ in 0..messages {
            due += ticks(work);
            now = if paced { due.max(now + ticks(50)) } else { now + ticks(work) };
            if rule.count() && rule.decide(now, 66, 64, false) == Decision::Flush {
                rule.flushed(now, now + ticks(3_000), true);
                now += ticks(3_000);
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
        assert_eq!(
            [us(1300), us(1350), us(1400), us(1450)].map(&mut batch),
            [flush; 4],
            "the gap is 8 us now"
        );
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
}
