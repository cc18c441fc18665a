//! `zmq_msg_*`: any sequence of calls on eight message objects and a pair of sockets, compared with a model
//! of their contents.

use crate::abi::*;
use crate::input::Reader;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const OBJECTS: usize = 8;

/// Sizes near the limits where a message changes its representation.
const SIZES: [usize; 16] = [0, 1, 29, 30, 33, 34, 40, 41, 64, 255, 256, 4096, 8191, 8192, 16_384, 40_000];

/// Number of buffers of `zmq_msg_init_data` that are not freed yet.
static LENT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn free_buffer(data: *mut c_void, hint: *mut c_void) {
    // SAFETY: made by `Box::into_raw` of a slice of this length in `Play::init_data`.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), hint as usize)) });
    LENT.fetch_sub(1, SeqCst);
}

/// Expected content of an object. `None`: it is not a message.
#[derive(Clone, Default)]
struct ExpectedMessage {
    bytes: Vec<u8>,
    /// True if another object may share its body, so that writing to it would change both.
    shared: bool,
}

struct Play {
    objects: [Msg; OBJECTS],
    held: [Option<ExpectedMessage>; OBJECTS],
    /// Parts sent from either end of the pair and not received yet: the body, and true if more parts follow.
    in_flight: [std::collections::VecDeque<(ExpectedMessage, bool)>; 2],
    /// True while an end is within a multipart message.
    within: [bool; 2],
    ends: [*mut c_void; 2],
    fill: u8,
}

/// Runs the calls.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let lent = LENT.load(SeqCst);
    // SAFETY: only this thread uses the objects and sockets; the model records which objects are messages.
    unsafe {
        let ends = [0, 0].map(|kind| zmq_socket(context(), kind));
        let no_linger = 0_i32;
        for end in ends {
            zmq_setsockopt(end, LINGER, (&raw const no_linger).cast(), 4);
        }
        assert_eq!(zmq_bind(ends[0], c"inproc://messages".as_ptr()), 0);
        assert_eq!(zmq_connect(ends[1], c"inproc://messages".as_ptr()), 0);
        let mut play = Play {
            objects: [const { Msg([0; 64]) }; OBJECTS],
            held: [const { None }; OBJECTS],
            in_flight: Default::default(),
            within: [false; 2],
            ends,
            fill: 0,
        };
        let mut calls = 0;
        while !reader.is_empty() && calls < 200 {
            calls += 1;
            play.step(&mut reader);
            play.check();
        }
        for object in 0..OBJECTS {
            play.close(object);
        }
        for end in ends {
            assert_eq!(zmq_close(end), 0);
        }
    }
    // The I/O thread may release the other end of a pipe a little later.
    while LENT.load(SeqCst) != lent {
        std::thread::yield_now();
    }
}

impl Play {
    unsafe fn step(&mut self, reader: &mut Reader<'_>) {
        let (call, object) = (reader.byte() % 16, usize::from(reader.byte()) % OBJECTS);
        let msg: *mut Msg = &mut self.objects[object];
        // SAFETY: as in `run`.
        unsafe {
            match call {
                0 => {
                    self.close(object);
                    assert_eq!(zmq_msg_init(msg), 0);
                    self.held[object] = Some(ExpectedMessage::default());
                }
                1 => {
                    let size = reader.choice(&SIZES);
                    self.close(object);
                    assert_eq!(zmq_msg_init_size(msg, size), 0);
                    let bytes = self.pattern(size);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), zmq_msg_data(msg).cast(), size);
                    self.held[object] = Some(ExpectedMessage { bytes, shared: false });
                }
                2 => {
                    let size = reader.choice(&SIZES);
                    self.close(object);
                    let bytes = self.pattern(size);
                    assert_eq!(zmq_msg_init_buffer(msg, bytes.as_ptr().cast(), size), 0);
                    self.held[object] = Some(ExpectedMessage { bytes, shared: false });
                }
                3 => {
                    let size = reader.choice(&SIZES).max(1);
                    self.close(object);
                    let bytes = self.pattern(size);
                    let data = Box::into_raw(bytes.clone().into_boxed_slice()).cast();
                    LENT.fetch_add(1, SeqCst);
                    assert_eq!(zmq_msg_init_data(msg, data, size, Some(free_buffer), size as *mut c_void), 0);
                    self.held[object] = Some(ExpectedMessage { bytes, shared: false });
                }
                4 => self.close(object),
                5 | 6 => self.transfer(call == 5, usize::from(reader.byte()) % OBJECTS, object),
                7 | 8 => self.send(object, usize::from(reader.byte() & 1), reader.byte() & 1 != 0),
                9 | 10 => self.receive(object, usize::from(reader.byte() & 1)),
                11 => {
                    let group = text(reader.bytes(20));
                    let result = zmq_msg_set_group(msg, group.as_ptr());
                    assert_eq!(result == 0, self.held[object].is_some() && group.count_bytes() <= 255);
                    if result == 0 {
                        assert_eq!(std::ffi::CStr::from_ptr(zmq_msg_group(msg)), &*group);
                    }
                }
                12 => {
                    let id = u32::from(reader.word());
                    if zmq_msg_set_routing_id(msg, id) == 0 {
                        assert!(self.held[object].is_some() && id != 0);
                        assert_eq!(zmq_msg_routing_id(msg), id);
                    }
                }
                13 => {
                    let name = text(reader.bytes(12));
                    for property in [&*name, c"Socket-Type", c"Peer-Address", c"User-Id"] {
                        zmq_msg_gets(msg, property.as_ptr());
                    }
                    zmq_msg_gets(msg, std::ptr::null());
                }
                14 => {
                    let property = c_int::from(reader.byte() as i8);
                    zmq_msg_get(msg, property);
                    zmq_msg_set(msg, property, 1);
                }
                _ => self.write(object),
            }
        }
    }

    /// Returns bytes that differ from those of all other messages.
    fn pattern(&mut self, size: usize) -> Vec<u8> {
        self.fill = self.fill.wrapping_add(37);
        (0..size).map(|at| self.fill.wrapping_add((at / 3) as u8)).collect()
    }

    unsafe fn close(&mut self, object: usize) {
        // SAFETY: our own object; if it is not a message, the call is refused.
        let closed = unsafe { zmq_msg_close(&mut self.objects[object]) };
        assert_eq!(closed == 0, self.held[object].take().is_some());
    }

    unsafe fn transfer(&mut self, copy: bool, from: usize, to: usize) {
        let [from_msg, to_msg] = [from, to].map(|object| &raw mut self.objects[object]);
        // SAFETY: our own objects, which may be the same.
        let result =
            unsafe { if copy { zmq_msg_copy(to_msg, from_msg) } else { zmq_msg_move(to_msg, from_msg) } };
        assert_eq!(result == 0, self.held[from].is_some() && self.held[to].is_some());
        if result != 0 || from == to {
            return;
        }
        if copy {
            if let Some(held) = &mut self.held[from] {
                held.shared = true;
            }
            self.held[to] = self.held[from].clone();
        } else {
            self.held[to] = self.held[from].replace(ExpectedMessage::default());
        }
    }

    unsafe fn send(&mut self, object: usize, end: usize, more: bool) {
        let flags = DONTWAIT | if more { SNDMORE } else { 0 };
        // SAFETY: our own object and socket.
        let sent = unsafe { zmq_msg_send(&mut self.objects[object], self.ends[end], flags) };
        match self.held[object].take() {
            None => assert_eq!(sent, -1),
            // At the high-water mark, or with a routing id or a group that this type does not accept.
            Some(held) if sent < 0 => {
                failed();
                self.held[object] = Some(held);
            }
            Some(held) => {
                assert_eq!(sent as usize, held.bytes.len());
                self.in_flight[end].push_back((held, more));
                self.within[end] = more;
                self.held[object] = Some(ExpectedMessage::default());
            }
        }
    }

    unsafe fn receive(&mut self, object: usize, end: usize) {
        // SAFETY: our own object and socket.
        let received = unsafe { zmq_msg_recv(&mut self.objects[object], self.ends[end], DONTWAIT) };
        if self.held[object].is_none() {
            return assert_eq!(received, -1);
        }
        let flying = &mut self.in_flight[1 - end];
        // Only whole messages arrive.
        if received < 0 {
            assert!(flying.is_empty() || flying.iter().all(|(_, more)| *more));
            // The previous content may be lost.
            self.held[object] = None;
            // SAFETY: our own object, initialized again.
            unsafe {
                zmq_msg_close(&mut self.objects[object]);
                assert_eq!(zmq_msg_init(&mut self.objects[object]), 0);
            }
            self.held[object] = Some(ExpectedMessage::default());
            return;
        }
        let (held, more) = flying.pop_front().expect("nothing was sent");
        // SAFETY: a message.
        assert_eq!(unsafe { zmq_msg_more(&self.objects[object]) } != 0, more);
        self.held[object] = Some(held);
    }

    /// Changes the first byte, if no other object shares the body.
    unsafe fn write(&mut self, object: usize) {
        let Some(held) = self.held[object].as_mut().filter(|held| !held.shared && !held.bytes.is_empty())
        else {
            return;
        };
        held.bytes[0] = held.bytes[0].wrapping_add(1);
        // SAFETY: a message of at least one byte.
        unsafe { *zmq_msg_data(&mut self.objects[object]).cast::<u8>() = held.bytes[0] };
    }

    /// Checks that every object has the content of the model.
    unsafe fn check(&mut self) {
        for (msg, held) in self.objects.iter_mut().zip(&self.held) {
            // SAFETY: our own objects; an object that is not a message reads as an empty one.
            unsafe {
                let (data, size) = (zmq_msg_data(msg), zmq_msg_size(msg));
                match held {
                    None => assert!(size == 0 && data.is_null()),
                    Some(held) => {
                        assert_eq!(size, held.bytes.len());
                        assert!(
                            size == 0 || std::slice::from_raw_parts(data.cast::<u8>(), size) == held.bytes
                        );
                    }
                }
            }
        }
    }
}

/// Each kind of message copied, moved, sent and received.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for size in 0..SIZES.len() as u8 {
        for init in [1, 2, 3] {
            seeds.push(vec![
                init, 0, size, 0, 1, 5, 1, 0, 15, 0, 0, 2, 6, 2, 1, 7, 0, 0, 1, 7, 2, 0, 0, 0, 3, 9, 3, 1, 9,
                3, 1, 4, 0, 4, 3,
            ]);
        }
    }
    seeds.push(vec![0, 0, 11, 0, b'g', 0, 0, 0, 0, 0, 12, 0, 0, 7, 13, 0, b'a', 0, 14, 0, 1, 14, 0, 3]);
    seeds
}
