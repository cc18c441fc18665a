//! Compares the simulated kernel with the real one: the same random calls must have the same
//! results.

use std::os::fd::RawFd;
use std::time::Duration;

use super::{Body, Fd, Kernel};
use crate::faults::Faults;
use crate::rng::Rng;

/// Returns a kernel without faults and without network latency.
fn kernel() -> Kernel {
    Kernel::new(1, Faults { buffer: (200_000, 200_000), ..Faults::default() })
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

fn outcome(result: isize) -> Result<i64, i32> {
    if result < 0 { Err(errno()) } else { Ok(result as i64) }
}

/// A descriptor of both kernels. Only `close` closes it in both.
#[derive(Debug, Clone, Copy)]
struct Twin {
    real: RawFd,
    simulated: Fd,
    is_stream: bool,
}

struct Pair {
    kernel: Kernel,
    open: Vec<Twin>,
    sets: Vec<Twin>,
    rng: Rng,
    story: Vec<String>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Pair {
            kernel: kernel(),
            open: Vec::new(),
            sets: Vec::new(),
            rng: Rng::new(seed, 9),
            story: Vec::new(),
        }
    }

    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: String, real: T, simulated: T) {
        self.kernel.advance(0);
        self.story.push(format!("{what}: {real:?}"));
        let story = self.story.join("\n");
        assert_eq!(real, simulated, "{what}, the real kernel on the left\n{story}");
    }

    fn tell(&mut self, twin: Twin, is_stream: bool) {
        self.story.push(format!(
            "{} is {}",
            twin.real,
            if is_stream { "a stream" } else { "something else" }
        ));
    }

    /// Adds two connected Unix-domain sockets.
    fn add_unix(&mut self) {
        let mut real = [0; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, real.as_mut_ptr()) }, 0);
        let simulated = self.kernel.socket_pair();
        for (real, simulated) in [(real[0], simulated.0), (real[1], simulated.1)] {
            let twin = Twin { real, simulated, is_stream: true };
            self.tell(twin, true);
            self.open.push(twin);
        }
    }

    /// Adds two connected tcp sockets.
    fn add_tcp(&mut self) {
        use std::os::fd::IntoRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        for stream in [&client, &server] {
            stream.set_nonblocking(true).unwrap();
            stream.set_nodelay(true).unwrap();
        }
        let name = [[2, 0, 0x20, 0, 127, 0, 0, 1], [0; 8]].concat();
        let kernel = &mut self.kernel;
        let at = kernel.socket(libc::AF_INET, libc::SOCK_STREAM).unwrap();
        kernel.bind(at, &name).unwrap();
        kernel.listen(at, 5).unwrap();
        let near = kernel.socket(libc::AF_INET, libc::SOCK_STREAM).unwrap();
        assert_eq!(kernel.connect(near, &name), Err(libc::EINPROGRESS));
        let far = kernel.accept(at).unwrap();
        kernel.close(at).unwrap();
        for (real, simulated) in [(client.into_raw_fd(), near), (server.into_raw_fd(), far)] {
            let twin = Twin { real, simulated, is_stream: true };
            self.tell(twin, true);
            self.open.push(twin);
        }
    }

    fn add_counter(&mut self) {
        // SAFETY: integers.
        let real = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        let simulated = self.kernel.open_new(Body::Counter(0));
        let twin = Twin { real, simulated, is_stream: false };
        self.tell(twin, false);
        self.open.push(twin);
    }

    fn add_set(&mut self) {
        // SAFETY: an integer.
        let real = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        let simulated = self.kernel.open_new(Body::Epoll(Default::default()));
        self.sets.push(Twin { real, simulated, is_stream: false });
    }

    fn write(&mut self, twin: Twin) {
        let length = if twin.is_stream { self.rng.between(1, 200) as usize } else { 8 };
        let bytes: Vec<u8> = match twin.is_stream {
            true => (0..length).map(|_| self.rng.next() as u8).collect(),
            false => 1_u64.to_ne_bytes().to_vec(),
        };
        let real = match twin.is_stream {
            // SAFETY: pointer and length are the vector's.
            true => unsafe { libc::send(twin.real, bytes.as_ptr().cast(), length, libc::MSG_NOSIGNAL) },
            // SAFETY: the same.
            false => unsafe { libc::write(twin.real, bytes.as_ptr().cast(), length) },
        };
        let real = outcome(real);
        let simulated = match twin.is_stream {
            true => self.kernel.send(twin.simulated, &bytes, &[]),
            false => self.kernel.write(twin.simulated, &bytes),
        };
        self.compare(format!("write to {}", twin.real), real, simulated.map(|n| n as i64));
    }

    fn read(&mut self, twin: Twin) {
        let length = if twin.is_stream { self.rng.between(1, 300) as usize } else { 8 };
        let (mut left, mut right) = (vec![0; length], Vec::new());
        // SAFETY: pointer and length are the vector's.
        let real = outcome(unsafe { libc::read(twin.real, left.as_mut_ptr().cast(), length) });
        let simulated = match twin.is_stream {
            true => {
                let mut put = |bytes: &[u8]| right.extend_from_slice(bytes);
                self.kernel.receive(twin.simulated, &mut put, length, false).map(|received| received.length)
            }
            false => {
                right = vec![0; length];
                self.kernel.read(twin.simulated, &mut right)
            }
        };
        self.compare(format!("read from {}", twin.real), real, simulated.map(|n| n as i64));
        if let Ok(n) = real {
            assert_eq!(left[..n as usize], right[..n as usize]);
        }
    }

    fn shut(&mut self, twin: Twin) {
        let how = *self.rng.pick(&[libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR]);
        // SAFETY: integers.
        let real = outcome(unsafe { libc::shutdown(twin.real, how) } as isize);
        let simulated = self.kernel.shutdown(twin.simulated, how).map(i64::from);
        self.compare(format!("shutdown of {}, {how}", twin.real), real, simulated);
    }

    fn error(&mut self, twin: Twin) {
        let (mut value, mut length) = (0_i32, 4);
        let into = (&raw mut value).cast();
        // SAFETY: room for an int.
        unsafe { libc::getsockopt(twin.real, libc::SOL_SOCKET, libc::SO_ERROR, into, &mut length) };
        let simulated = self.kernel.option(twin.simulated, libc::SOL_SOCKET, libc::SO_ERROR).unwrap();
        self.compare(format!("SO_ERROR of {}", twin.real), value.to_ne_bytes().to_vec(), simulated);
    }

    fn close(&mut self, twin: Twin) {
        self.open.retain(|other| other.real != twin.real);
        // SAFETY: it is this test's.
        unsafe { libc::close(twin.real) };
        self.kernel.close(twin.simulated).unwrap();
        self.kernel.advance(0);
        self.story.push(format!("close {}", twin.real));
    }

    fn control(&mut self, set: Twin, twin: Twin) {
        let operation = *self.rng.pick(&[libc::EPOLL_CTL_ADD, libc::EPOLL_CTL_MOD, libc::EPOLL_CTL_DEL]);
        let mut events = 0;
        for event in [libc::EPOLLIN, libc::EPOLLOUT, libc::EPOLLRDHUP, libc::EPOLLONESHOT] {
            events |= if self.rng.chance(2) { event as u32 } else { 0 };
        }
        let data = twin.real as u64;
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: the event outlives the call.
        let real = outcome(unsafe { libc::epoll_ctl(set.real, operation, twin.real, &mut event) } as isize);
        let simulated = self.kernel.epoll_control(set.simulated, operation, twin.simulated, events, data);
        let what = format!("epoll_ctl {operation} of {} in {} for {events:#x}", twin.real, set.real);
        self.compare(what, real, simulated.map(i64::from));
    }

    fn take(&mut self, set: Twin) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: there is room for 64.
        let n = unsafe { libc::epoll_wait(set.real, events.as_mut_ptr(), 64, 0) };
        let mut real: Vec<(u32, u64)> =
            events[..n as usize].iter().map(|event| (event.events, event.u64)).collect();
        let mut simulated = self.kernel.epoll_take(set.simulated, 64).unwrap();
        real.sort_unstable();
        simulated.sort_unstable();
        self.compare(format!("epoll_wait of {}", set.real), real, simulated);
    }

    fn poll(&mut self) {
        let all = libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP;
        let twins: Vec<Twin> = self.open.iter().chain(&self.sets).copied().collect();
        let entries = |fd: fn(&Twin) -> i32| -> Vec<libc::pollfd> {
            twins.iter().map(|twin| libc::pollfd { fd: fd(twin), events: all, revents: 0 }).collect()
        };
        let mut real = entries(|twin| twin.real);
        // SAFETY: pointer and length are the vector's.
        unsafe { libc::poll(real.as_mut_ptr(), real.len() as libc::nfds_t, 0) };
        let mut simulated = entries(|twin| twin.simulated);
        self.kernel.poll(&mut simulated);
        let named = |entries: &[libc::pollfd]| -> Vec<(i32, i16)> {
            twins.iter().zip(entries).map(|(twin, entry)| (twin.real, entry.revents)).collect()
        };
        let (real, simulated) = (named(&real), named(&simulated));
        self.compare("poll".to_owned(), real, simulated);
    }

    /// Waits until the real kernel has delivered all sent bytes, which takes longer on a busy
    /// machine. All of them fit into the peers' buffers.
    fn settle(&self) {
        for twin in self.open.iter().filter(|twin| twin.is_stream) {
            loop {
                let mut bytes = 0;
                // SAFETY: this request writes an int.
                let outcome = unsafe { libc::ioctl(twin.real, libc::TIOCOUTQ, &raw mut bytes) };
                let mut fds = [libc::pollfd { fd: twin.real, events: 0, revents: 0 }];
                // SAFETY: an array of one.
                let is_over = unsafe { libc::poll(fds.as_mut_ptr(), 1, 0) } > 0;
                if outcome < 0 || bytes == 0 || is_over {
                    break;
                }
                std::thread::yield_now();
            }
        }
    }

    fn step(&mut self, tcp: bool) {
        if tcp {
            self.settle();
        }
        let Some(twin) = (!self.open.is_empty()).then(|| *self.rng.pick(&self.open)) else {
            return if tcp { self.add_tcp() } else { self.add_unix() };
        };
        let set = *self.rng.pick(&self.sets);
        match self.rng.below(24) {
            0 if self.open.len() < 8 && tcp => self.add_tcp(),
            0 if self.open.len() < 8 => self.add_unix(),
            1 if self.open.len() < 8 => self.add_counter(),
            2 if self.rng.chance(2) => self.close(twin),
            3 if twin.is_stream => self.shut(twin),
            4 if twin.is_stream => self.error(twin),
            5..=9 => self.write(twin),
            10..=14 => self.read(twin),
            15..=17 => self.control(set, twin),
            18..=20 => self.take(set),
            _ => self.poll(),
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for twin in self.open.iter().chain(&self.sets) {
            // SAFETY: it is this test's.
            unsafe { libc::close(twin.real) };
        }
    }
}

fn run(tcp: bool, seeds: u64) {
    for seed in 0..seeds {
        let mut pair = Pair::new(seed);
        pair.add_set();
        pair.add_set();
        // Registers one epoll set in the other.
        let (outer, inner) = (pair.sets[0], pair.sets[1]);
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 7 };
        // SAFETY: the event outlives the call.
        unsafe { libc::epoll_ctl(outer.real, libc::EPOLL_CTL_ADD, inner.real, &mut event) };
        pair.kernel
            .epoll_control(outer.simulated, libc::EPOLL_CTL_ADD, inner.simulated, event.events, 7)
            .unwrap();
        for _ in 0..150 {
            pair.step(tcp);
        }
    }
}

#[test]
fn streams_of_the_unix_domain_are_as_linux_has_them() {
    run(false, 300);
}

#[test]
fn streams_over_tcp_are_as_linux_has_them() {
    let name = "streams_over_tcp_are_as_linux_has_them";
    tautline_testkit::with_watchdog(Duration::from_secs(120), name, || run(true, 30));
}

#[test]
fn a_timer_counts_its_intervals() {
    let mut kernel = kernel();
    let fd = kernel.open_new(Body::Timer(Default::default()));
    let mut number = [0; 8];
    kernel.set_timer(fd, 10, 5).unwrap();
    kernel.advance(9);
    assert_eq!(kernel.read(fd, &mut number), Err(libc::EAGAIN));
    kernel.advance(21);
    assert_eq!(kernel.read(fd, &mut number), Ok(8));
    assert_eq!(u64::from_ne_bytes(number), 3);
    kernel.advance(24);
    assert_eq!(kernel.read(fd, &mut number), Err(libc::EAGAIN));
    kernel.advance(25);
    assert_eq!(kernel.read(fd, &mut number), Ok(8));
    assert_eq!(u64::from_ne_bytes(number), 1);
}

#[test]
fn descriptors_that_are_sent_along_come_with_the_first_byte() {
    let mut kernel = kernel();
    let (near, far) = kernel.socket_pair();
    let sent = kernel.open_new(Body::Counter(3));
    kernel.send(near, b"ab", &[]).unwrap();
    kernel.send(near, b"cd", &[sent]).unwrap();
    kernel.send(near, b"ef", &[]).unwrap();
    kernel.close(sent).unwrap();
    let mut bytes = Vec::new();
    let received = kernel.receive(far, &mut |part| bytes.extend_from_slice(part), 10, false).unwrap();
    assert_eq!((bytes.as_slice(), received.rights.len()), (&b"abcd"[..], 1));
    let fd = kernel.open(received.rights[0]);
    kernel.release(received.rights[0]);
    let mut number = [0; 8];
    kernel.read(fd, &mut number).unwrap();
    assert_eq!(u64::from_ne_bytes(number), 3);
    // A message in flight keeps its descriptors open.
    kernel.send(near, b"g", &[fd]).unwrap();
    kernel.close(fd).unwrap();
    kernel.close(far).unwrap();
    assert_eq!(kernel.open_descriptors(), [(near, "socket")]);
    assert_eq!(kernel.send(near, b"h", &[]), Err(libc::EPIPE));
}
