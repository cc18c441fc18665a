//! Loom models of the chains and the inbox, which run the real code with tiny segments, so that two
//! or three frames fill one segment.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p tautline-queue --release loom_`. Every byte of a
//! segment has a shadow cell, so the model fails on a read that is not ordered after its write.

use super::*;
use crate::handoff::inbox::{Inbox, Unpark};
use crate::handoff::signal::{Descriptor, Signal};
use crate::message::Message;
use crate::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::ffi::c_void;
use std::io::IoSlice;
use std::sync::atomic::{AtomicUsize, Ordering};
use tautline_proto::frame::{self, MORE};

fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(f);
}

/// Waits for the next frame and reads it.
fn read(reader: &mut FrameReader) -> Vec<u8> {
    let mut out = [0; 64];
    loop {
        if let Some(head) = reader.read_into(&mut out) {
            return out[..head.len].to_vec();
        }
        thread::yield_now();
    }
}

#[test]
fn loom_frames_arrive_whole_and_in_order() {
    model(2, || {
        let (mut writer, mut reader) = inproc();
        let sender = thread::spawn(move || {
            for n in 0..4 {
                writer.append(MORE, &[n; 10]).unwrap();
                writer.append(0, &[n; 8]).unwrap();
                writer.publish();
            }
        });
        for n in 0..4 {
            assert_eq!(read(&mut reader), [n; 10]);
            assert!(reader.is_ready(), "messages are visible as a whole");
            assert_eq!(read(&mut reader), [n; 8]);
        }
        assert!(!reader.is_ready());
        sender.join().unwrap();
    });
}

/// Without a limit: only the ring orders the reader's last look at a segment before the writer's
/// next use of it.
#[test]
fn loom_segments_are_recycled() {
    model(2, || {
        let (mut writer, mut reader) = inproc();
        let sender = thread::spawn(move || {
            for n in 0..4 {
                writer.append(0, &[n; 30]).unwrap();
                writer.publish();
            }
        });
        for n in 0..2 {
            assert_eq!(read(&mut reader), [n; 30]);
        }
        drop(reader);
        sender.join().unwrap();
    });
}

#[test]
fn loom_a_rollback_disturbs_no_reader() {
    model(2, || {
        let (mut writer, mut reader) = inproc();
        let sender = thread::spawn(move || {
            for n in 0..2 {
                writer.append(0, &[n; 10]).unwrap();
                writer.publish();
                // Ends the segment in the middle, and continues in others.
                writer.append_message(MORE, &mut Message::from_slice(&[9; 70])).unwrap();
                writer.append(0, &[9; 40]).unwrap();
                writer.rollback();
            }
            writer.append(0, &[2; 20]).unwrap();
            writer.publish();
        });
        for n in 0..2 {
            assert_eq!(read(&mut reader), [n; 10]);
        }
        assert_eq!(read(&mut reader), [2; 20]);
        sender.join().unwrap();
    });
}

#[test]
fn loom_the_limit_is_never_exceeded() {
    model(2, || {
        let (mut writer, mut reader) = inproc();
        writer.set_limit(1);
        reader.set_credit_every(1);
        let sender = thread::spawn(move || {
            for n in 0..3 {
                while !writer.has_room() {
                    thread::yield_now();
                }
                assert_eq!(writer.in_flight(), 0);
                writer.append(0, &[n]).unwrap();
                writer.publish();
            }
        });
        for n in 0..3 {
            assert!(reader.queued() <= 1);
            assert_eq!(read(&mut reader), [n]);
        }
        sender.join().unwrap();
    });
}

/// Increments the counter in the hint.
unsafe extern "C" fn count(_: *mut c_void, hint: *mut c_void) {
    // SAFETY: the hint is a leaked counter.
    unsafe { (*hint.cast::<AtomicUsize>()).fetch_add(1, Ordering::SeqCst) };
}

static BODY: [u8; 70] = [5; 70];

fn foreign(freed: &'static AtomicUsize) -> Message {
    let hint = (&raw const *freed).cast_mut().cast();
    // SAFETY: the body is not written.
    unsafe { Message::from_foreign(BODY.as_ptr().cast_mut(), BODY.len(), Some(count), hint) }
}

#[test]
fn loom_either_end_may_go_first() {
    model(2, || {
        let freed: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
        let (mut writer, mut reader) = inproc();
        let sender = thread::spawn(move || {
            for _ in 0..2 {
                writer.append_message(0, &mut foreign(freed)).unwrap();
                writer.publish();
            }
            writer.append_message(MORE, &mut foreign(freed)).unwrap();
        });
        let mut message = Message::new();
        if reader.read_message(&mut message).unwrap().is_some() {
            assert_eq!(message.as_slice(), BODY);
        }
        drop(reader);
        drop(message);
        sender.join().unwrap();
        assert_eq!(freed.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn loom_bytes_are_drained_and_credited() {
    model(2, || {
        let (mut writer, mut drain) = outbound();
        writer.set_limit(2);
        let pump = thread::spawn(move || {
            let (mut done, mut lost) = (0, false);
            while done < 3 * 12 {
                let mut out = Vec::new();
                let mut slices = [IoSlice::new(&[]); 2];
                let (n, bytes) = drain.slices(&mut slices);
                slices[..n].iter().for_each(|slice| out.extend_from_slice(slice));
                for (i, frame) in out.chunks(12).enumerate() {
                    assert_eq!(frame, [&[0, 10][..], &[(done / 12 + i) as u8; 10]].concat());
                }
                if out.is_empty() {
                    thread::yield_now();
                } else if !lost {
                    // A part of the first message is written, then the connection is lost.
                    lost = true;
                    drain.advance(3);
                    drain.rewind();
                } else {
                    drain.advance(bytes);
                    done += out.len();
                }
            }
        });
        for n in 0..3 {
            while !writer.has_room() {
                thread::yield_now();
            }
            writer.append(0, &[n; 10]).unwrap();
            writer.publish();
        }
        pump.join().unwrap();
        assert_eq!((writer.in_flight(), writer.unflushed_bytes()), (0, 0));
    });
}

#[test]
fn loom_scanned_frames_are_read() {
    model(2, || {
        let (mut filler, mut reader) = inbound();
        let large = 70;
        let arrival = thread::spawn(move || {
            let mut stream = vec![0, 10];
            stream.extend([1; 10]);
            stream.extend([0, large]);
            stream.extend([2; 70]);
            stream.extend([0, 5]);
            stream.extend([3; 5]);
            for chunk in stream.chunks(37) {
                filler.append(chunk).unwrap();
                while let Some(scanned) = filler.next_frame(None).unwrap() {
                    assert_eq!(scanned.header.flags & frame::MORE, 0);
                    filler.publish_scanned(1);
                }
            }
            filler.append(&[0, 9, 9]).unwrap();
            filler.truncate_to_published();
        });
        assert_eq!(read(&mut reader), [1; 10]);
        let mut message = Message::new();
        while reader.read_message(&mut message).unwrap().is_none() {
            thread::yield_now();
        }
        assert_eq!(message.as_slice(), [2; 70]);
        assert_eq!(read(&mut reader), [3; 5]);
        drop(reader);
        arrival.join().unwrap();
    });
}

/// Takes all queued bytes.
fn take_all(drain: &mut ByteDrain, out: &mut Vec<u8>) {
    loop {
        let mut slices = [IoSlice::new(&[]); 2];
        let (n, bytes) = drain.slices(&mut slices);
        slices[..n].iter().for_each(|slice| out.extend_from_slice(slice));
        if bytes == 0 {
            return;
        }
        drain.advance(bytes);
    }
}

#[test]
fn loom_drained_queue_releases_memory_under_pump_lock() {
    model(3, || {
        let (mut writer, drain) = outbound();
        let pump = Arc::new(Mutex::new((drain, Vec::new())));
        let sweeper = pump.clone();
        let sweep = thread::spawn(move || {
            for _ in 0..2 {
                let (drain, out) = &mut *sweeper.lock().unwrap();
                take_all(drain, out);
            }
        });
        for n in 0..3 {
            writer.append(0, &[n; 20]).unwrap();
            writer.publish();
            // The first message is left to the sweep.
            if n > 0
                && let Ok(mut pump) = pump.try_lock()
            {
                let (drain, out) = &mut *pump;
                take_all(drain, out);
                assert!(writer.release_memory(drain) && !writer.holds_memory());
            }
        }
        sweep.join().unwrap();
        let (drain, out) = &mut *pump.lock().unwrap();
        take_all(drain, out);
        assert!(writer.release_memory(drain));
        assert!(out.chunks(22).enumerate().all(|(n, frame)| frame[1] == 20 && frame[2..] == [n as u8; 20]));
        assert_eq!((out.len(), writer.in_flight()), (3 * 22, 0));
    });
}

#[test]
fn loom_read_queue_releases_memory_under_intake_lock() {
    model(3, || {
        let (filler, mut reader) = inbound();
        let intake = Arc::new(Mutex::new(filler));
        let arriving = intake.clone();
        let arrival = thread::spawn(move || {
            for n in 0..2 {
                let mut filler = arriving.lock().unwrap();
                // In two pieces.
                filler.append(&[0, 5, n]).unwrap();
                assert!(filler.next_frame(None).unwrap().is_none());
                filler.append(&[n; 4]).unwrap();
                assert!(filler.next_frame(None).unwrap().is_some());
                filler.publish_scanned(1);
            }
        });
        for n in 0..2 {
            let mut out = [0; 8];
            while reader.read_into(&mut out).is_none() {
                if reader.holds_memory()
                    && let Ok(mut filler) = intake.try_lock()
                {
                    // Unless the next message has come since.
                    assert!(reader.release_memory(&mut filler) || reader.has_published_frame());
                }
                thread::yield_now();
            }
            assert_eq!(out[..5], [n; 5]);
        }
        arrival.join().unwrap();
        assert!(reader.release_memory(&mut intake.lock().unwrap()));
    });
}

/// Behaves like an eventfd: a wake-up is kept until a thread waits for it.
struct Bell(Mutex<bool>, Condvar);

impl Bell {
    fn new() -> Self {
        Bell(Mutex::new(false), Condvar::new())
    }

    fn wait(&self) {
        let mut rung = self.0.lock().unwrap();
        while !*rung {
            rung = self.1.wait(rung).unwrap();
        }
        *rung = false;
    }
}

impl Unpark for Bell {
    fn unpark(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}

/// A lost wake-up is a deadlock, which loom reports.
#[test]
fn loom_no_news_are_lost() {
    model(2, || {
        let inbox = Arc::new(Inbox::new(Bell::new()));
        let pushers: Vec<_> = (0..2)
            .map(|n| {
                let inbox = inbox.clone();
                thread::spawn(move || inbox.push(n))
            })
            .collect();
        let mut news = Vec::new();
        while news.len() < 2 {
            if inbox.has_pending() {
                news.extend(inbox.drain());
            } else if inbox.prepare_park() {
                inbox.waker().wait();
                inbox.finish_park();
            }
        }
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
    });
}

#[test]
fn loom_a_sleeping_owner_hears_of_inproc_messages() {
    model(2, || {
        let inbox = Arc::new(Inbox::<(), _>::new(Bell::new()));
        let (mut writer, mut reader) = inproc();
        let sender = thread::spawn({
            let inbox = inbox.clone();
            move || {
                for n in 0..2 {
                    writer.append(0, &[n]).unwrap();
                    writer.publish();
                    if inbox.parked_hint() {
                        inbox.wake_if_parked();
                    }
                }
            }
        });
        let mut received = 0;
        while received < 2 {
            if reader.skip().is_some() {
                received += 1;
            } else if inbox.prepare_park() {
                if !reader.is_ready() {
                    inbox.waker().wait();
                }
                inbox.finish_park();
            }
        }
        sender.join().unwrap();
    });
}

/// The first message is announced by `parked_hint`, the others behind a full fence by
/// `wake_if_parked`. The owner is notified in between.
#[test]
fn loom_an_owner_that_is_rung_sleeps_without_the_heavy_barrier() {
    model(3, || {
        let inbox = Arc::new(Inbox::<(), _>::new(Bell::new()));
        let rings = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let (mut writer, mut reader) = inproc();
        let sender = thread::spawn({
            let (inbox, rings) = (inbox.clone(), rings.clone());
            move || {
                for n in 0..3 {
                    writer.append(0, &[n]).unwrap();
                    writer.publish();
                    if n > 0 {
                        inbox.wake_if_parked();
                    } else if inbox.parked_hint() {
                        inbox.wake_if_parked();
                    }
                    rings.store(true, Ordering::Release);
                }
            }
        });
        let mut received = 0;
        while received < 3 {
            if reader.skip().is_some() {
                received += 1;
                continue;
            }
            let rung = rings.load(Ordering::Acquire);
            if if rung { inbox.prepare_park_without_barrier() } else { inbox.prepare_park() } {
                if !reader.is_ready() {
                    inbox.waker().wait();
                }
                inbox.finish_park();
            }
        }
        sender.join().unwrap();
    });
}

/// Takes the pending bytes, checks that they continue with message `*next`, and counts. If `lost`
/// is set, takes only a part; then the connection is lost.
fn drain_log(reader: &mut LogReader, next: &mut u8, lost: &mut bool) {
    let mut out = Vec::new();
    let mut slices = [IoSlice::new(&[]); 2];
    let (n, bytes) = reader.slices(&mut slices);
    slices[..n].iter().for_each(|slice| out.extend_from_slice(slice));
    for (i, frame) in out.chunks(12).enumerate() {
        assert_eq!(frame, [&[0, 10][..], &[*next + i as u8; 10]].concat());
    }
    if !out.is_empty() && !std::mem::replace(lost, true) {
        reader.advance(3);
        reader.rewind();
    } else {
        reader.advance(bytes);
        *next += (out.len() / 12) as u8;
    }
}

/// One connection writes and one does not. The log continues in a new chunk while the first
/// connection reads. If the window is full, the other connection's messages are taken out of the
/// log, under the pump's lock.
#[test]
fn loom_a_log_is_read_while_it_grows_and_a_laggard_is_sent_away() {
    model(2, || {
        let mut log = Log::new();
        let (mut quick, _) = log.reader().unwrap();
        let (slow, slow_progress) = log.reader().unwrap();
        let slow = Arc::new(Mutex::new(Some(slow)));
        let pump = thread::spawn({
            let slow = slow.clone();
            move || {
                let (mut next, mut lost) = (0, false);
                // The slow reader also writes some bytes, if it still may.
                if let Some(slow) = &mut *slow.lock().unwrap() {
                    let _ = slow.peek_copy(12, &mut Vec::new());
                }
                while next < 6 {
                    let before = next;
                    drain_log(&mut quick, &mut next, &mut lost);
                    if next == before {
                        thread::yield_now();
                    }
                }
            }
        });
        for n in 0..6u8 {
            while !log.fits(12) && !log.next_chunk() {
                let holds = log.holds_oldest(&slow_progress);
                match slow.lock().unwrap().take().filter(|_| holds) {
                    Some(reader) => {
                        let mut frames = Vec::new();
                        let (messages, written) = reader.copy_unsent(|piece| frames.extend_from_slice(piece));
                        assert_eq!((messages, written), (n.into(), 0));
                        let all: Vec<u8> = (0..n).flat_map(|n| [&[0, 10][..], &[n; 10]].concat()).collect();
                        assert_eq!(frames, all);
                    }
                    None => thread::yield_now(),
                }
            }
            log.append_encoded(&[&[0, 10][..], &[n; 10]].concat());
        }
        pump.join().unwrap();
    });
}

/// A connection that starts to read the log gets the later messages. Its progress keeps the owner
/// within the limit.
#[test]
fn loom_log_stays_within_limit_of_its_reader() {
    model(2, || {
        let mut log = Log::new();
        let (mut reader, progress) = log.reader().unwrap();
        let pump = thread::spawn(move || {
            let (mut next, mut lost) = (0, false);
            while next < 4 {
                let before = next;
                drain_log(&mut reader, &mut next, &mut lost);
                if next == before {
                    thread::yield_now();
                }
            }
        });
        for n in 0..4 {
            while progress.pending_messages() >= 2 {
                thread::yield_now();
            }
            while !log.fits(12) && !log.next_chunk() {
                thread::yield_now();
            }
            log.append_encoded(&[&[0, 10][..], &[n; 10]].concat());
        }
        pump.join().unwrap();
    });
}

/// A simplified eventfd.
struct Readable(Mutex<bool>, Condvar);

impl Descriptor for Readable {
    fn make() -> std::io::Result<Self> {
        Ok(Readable(Mutex::new(false), Condvar::new()))
    }

    fn write(&self) {
        let written = std::mem::replace(&mut *self.0.lock().unwrap(), true);
        assert!(!written, "the descriptor was written twice");
        self.1.notify_one();
    }

    fn read(&self) -> bool {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Readable {
    /// Sleeps as long as the descriptor is unreadable. A lost wake-up is a deadlock.
    fn sleep(&self) {
        let mut written = self.0.lock().unwrap();
        while !*written {
            written = self.1.wait(written).unwrap();
        }
    }
}

/// Models two wakers. The owner makes the descriptor at first, or when it sleeps for the first
/// time.
fn signal_is_written(made_at_first: bool) {
    use crate::sync::atomic::AtomicU32;
    use crate::sync::atomic::Ordering::Relaxed;
    model(3, move || {
        let shared = Arc::new((Signal::<Readable>::new(), AtomicU32::new(0)));
        if made_at_first {
            shared.0.descriptor().unwrap();
        }
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.1.fetch_add(1, Relaxed);
                    shared.0.raise();
                })
            })
            .collect();
        let (signal, told) = &*shared;
        while told.load(Relaxed) < 2 {
            signal.descriptor().unwrap().sleep();
            signal.coalesce_during(|| ());
        }
        for waker in wakers {
            waker.join().unwrap();
        }
        signal.clear();
        assert!(!signal.descriptor().unwrap().read(), "the descriptor is readable without news");
    });
}

#[test]
fn loom_signal_is_written_for_every_raise() {
    signal_is_written(true);
}

#[test]
fn loom_late_descriptor_is_written_for_earlier_raises() {
    signal_is_written(false);
}

/// An owner that has looked without a descriptor makes one. Only later events wake it.
#[test]
fn loom_signal_without_descriptor_is_cleared() {
    use crate::sync::atomic::AtomicU32;
    use crate::sync::atomic::Ordering::Relaxed;
    model(3, || {
        let shared = Arc::new((Signal::<Readable>::new(), AtomicU32::new(0)));
        let waker = thread::spawn({
            let shared = shared.clone();
            move || {
                for _ in 0..2 {
                    shared.1.fetch_add(1, Relaxed);
                    shared.0.raise();
                }
            }
        });
        let (signal, told) = &*shared;
        signal.clear();
        let heard = told.load(Relaxed);
        if heard < 2 {
            let made = signal.descriptor().unwrap();
            while told.load(Relaxed) < 2 {
                made.sleep();
                signal.clear();
            }
        }
        waker.join().unwrap();
        signal.clear();
        assert!(!signal.descriptor().unwrap().read(), "the descriptor is readable without news");
    });
}

/// A released descriptor is not written, even by a thread that is just waking the owner.
#[test]
fn loom_a_descriptor_is_closed_while_others_wake() {
    model(3, || {
        let signal = Arc::new(Signal::<Readable>::new());
        drop(signal.descriptor().unwrap());
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let signal = signal.clone();
                thread::spawn(move || signal.raise())
            })
            .collect();
        signal.release();
        for waker in wakers {
            waker.join().unwrap();
        }
        signal.clear();
    });
}

impl Unpark for Signal<Readable> {
    fn unpark(&self) {
        self.raise();
    }
}

/// The complete sequence of a sleep: the owner says that it sleeps, looks once more, makes its
/// descriptor and sleeps. Two other threads notify it, one by news and one by a look.
#[test]
fn loom_an_owner_that_makes_its_descriptor_to_sleep_is_woken() {
    model(2, || {
        let inbox = Arc::new(Inbox::new(Signal::<Readable>::new()));
        let (mut writer, mut reader) = inproc();
        let pusher = thread::spawn({
            let inbox = inbox.clone();
            move || inbox.push(())
        });
        let sender = thread::spawn({
            let inbox = inbox.clone();
            move || {
                writer.append(0, &[1]).unwrap();
                writer.publish();
                if inbox.parked_hint() {
                    inbox.wake_if_parked();
                }
            }
        });
        let (mut news, mut received) = (0, 0);
        while news + received < 2 {
            if inbox.has_pending() {
                news += inbox.drain().into_iter().count();
            } else if reader.skip().is_some() {
                received += 1;
            } else if news + received < 2 {
                if inbox.prepare_park() {
                    if !reader.is_ready() {
                        inbox.waker().descriptor().unwrap().sleep();
                    }
                    inbox.finish_park();
                    inbox.waker().clear();
                }
            }
        }
        pusher.join().unwrap();
        sender.join().unwrap();
    });
}
