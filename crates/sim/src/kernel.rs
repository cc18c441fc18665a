//! The simulated kernel: descriptors and their objects, as pure computation. It uses no thread, no
//! clock, no system call and no unsafe code. Time is an argument, and no call blocks. Threads wait
//! for readiness in [`crate::world`].
//!
//! Simulated descriptors have numbers from [`BASE`] on, which distinguishes them from real
//! descriptors of the process. Errors are numbers of `errno`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::faults::Faults;
use crate::rng::Rng;

mod epoll;
mod socket;

pub(crate) use epoll::Epoll;
pub(crate) use socket::{INTERFACES, Socket};

pub(crate) type Fd = i32;
pub(crate) type Id = u32;
/// Result of a call, or its number of `errno`.
pub(crate) type SysResult<T = i32> = Result<T, i32>;

/// The first descriptor of the simulation.
pub(crate) const BASE: Fd = 1 << 20;

pub(crate) struct Kernel {
    objects: BTreeMap<Id, Object>,
    next_id: Id,
    descriptors: BTreeMap<Fd, Id>,
    /// Process of each descriptor.
    owners: BTreeMap<Fd, u32>,
    /// The calling process.
    pub(crate) process: u32,
    /// True if the calling process was killed but has not ended. Its calls have no effect on other
    /// processes.
    pub(crate) is_dead: bool,
    /// Unix-domain paths, each with its inode number, and with its listener if that is still open.
    paths: BTreeMap<Vec<u8>, (u64, Option<Id>)>,
    next_inode: u64,
    /// Files with contents, by path.
    files: BTreeMap<Vec<u8>, Id>,
    folders: BTreeSet<Vec<u8>>,
    /// Files of settings, by path.
    settings: BTreeMap<Vec<u8>, SettingsFile>,
    /// Largest number of open descriptors. A call that needs one more fails with EMFILE.
    pub(crate) most_descriptors: usize,
    /// Mapped memory of descriptors: address and length.
    pub(crate) mapped: BTreeMap<usize, usize>,
    next_port: u16,
    /// Ports in TIME_WAIT, each with the end of that state.
    waiting_ports: BTreeMap<u16, u64>,
    /// Datagrams in flight.
    flights: BTreeMap<Id, socket::DatagramInFlight>,
    due: BinaryHeap<Reverse<(u64, u64, Event)>>,
    next_event: u64,
    pub(crate) now: u64,
    pub(crate) rng: Rng,
    pub(crate) faults: Faults,
    /// Number of injected faults.
    pub(crate) injected: u64,
    /// Error of the wall clock in seconds.
    pub(crate) wall: i64,
    /// Counter of changes that may make a descriptor ready.
    pub(crate) changes: u64,
    /// Real descriptors without a remaining reference, for the caller to close.
    pub(crate) to_close: Vec<i32>,
}

/// A file that a program reads and the operator replaces.
pub(crate) struct SettingsFile {
    bytes: Vec<u8>,
    inode: u64,
    /// Time of the last change in simulated nanoseconds.
    changed: u64,
}

/// Attributes of a file, for stat(2).
pub(crate) struct Attributes {
    pub(crate) kind: FileKind,
    pub(crate) inode: u64,
    pub(crate) length: u64,
    pub(crate) changed: u64,
}

/// Kind of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Socket,
    Plain,
    Folder,
}

pub(crate) struct Object {
    /// Number of references by descriptors and by messages in flight.
    references: u32,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Socket(Box<Socket>),
    Epoll(Epoll),
    Counter(u64),
    Timer(Timer),
    /// Memory behind a real descriptor.
    Memory(i32),
    /// A readable file.
    Text(Vec<u8>, usize),
    /// Remaining names of a folder that is listed.
    Listing(Vec<Vec<u8>>),
    /// A socket that is never used.
    Idle,
}

#[derive(Default)]
pub(crate) struct Timer {
    at: Option<u64>,
    interval: u64,
}

/// A scheduled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// Bytes or the end of the stream from this socket arrive at its peer.
    Deliver(Id),
    /// The socket's connection request arrives.
    Syn(Id, u8),
    /// The other end has accepted the connection.
    Established(Id),
    /// An error arrives at the socket.
    Reset(Id, i32),
    /// A datagram arrives.
    DatagramArrives(Id),
    /// A timer expires.
    Timer,
}

impl Kernel {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Kernel {
            objects: BTreeMap::new(),
            next_id: 1,
            descriptors: BTreeMap::new(),
            owners: BTreeMap::new(),
            process: 0,
            is_dead: false,
            paths: BTreeMap::new(),
            next_inode: 1000,
            files: BTreeMap::new(),
            folders: BTreeSet::from([b"/sim/run".to_vec()]),
            settings: BTreeMap::new(),
            most_descriptors: usize::MAX,
            mapped: BTreeMap::new(),
            next_port: 40_000,
            waiting_ports: BTreeMap::new(),
            flights: BTreeMap::new(),
            due: BinaryHeap::new(),
            next_event: 0,
            now: 0,
            rng: Rng::new(seed, 2),
            faults,
            injected: 0,
            wall: 0,
            changes: 0,
            to_close: Vec::new(),
        }
    }

    /// Draws if a fault happens, with a chance of one in `one_in`, and counts it.
    pub(crate) fn draw_fault(&mut self, one_in: u64) -> bool {
        let fault = self.rng.chance(one_in);
        self.injected += u64::from(fault);
        fault
    }

    // ---- descriptors

    /// Returns the open descriptors.
    pub(crate) fn open_descriptors(&self) -> Vec<(Fd, &'static str)> {
        let kind = |id: &Id| match self.objects.get(id).map(|object| &object.body) {
            Some(Body::Socket(_)) => "socket",
            Some(Body::Epoll(_)) => "epoll",
            Some(Body::Counter(_)) => "eventfd",
            Some(Body::Timer(_)) => "timerfd",
            Some(Body::Memory(_)) => "memory",
            Some(Body::Text(..)) => "file",
            Some(Body::Listing(_)) => "folder",
            Some(Body::Idle) => "idle socket",
            None => "nothing",
        };
        self.descriptors.iter().map(|(fd, id)| (*fd, kind(id))).collect()
    }

    /// Describes the object behind each descriptor.
    pub(crate) fn describe(&self) -> Vec<String> {
        let describe = |fd: &Fd, id: &Id| {
            let what = match self.objects.get(id).map(|object| &object.body) {
                Some(Body::Socket(socket)) => socket.describe(),
                Some(Body::Epoll(set)) => set.describe(),
                Some(Body::Counter(count)) => format!("eventfd at {count}"),
                Some(Body::Timer(timer)) => format!("timerfd for {:?}", timer.at),
                Some(Body::Memory(_)) => "memory".to_owned(),
                Some(Body::Text(..)) => "file".to_owned(),
                Some(Body::Listing(_)) => "folder".to_owned(),
                Some(Body::Idle) => "idle socket".to_owned(),
                None => "nothing".to_owned(),
            };
            format!("fd {} (object {id}): {what}, ready for {:#x}", fd - BASE, self.readiness(*id, 0))
        };
        self.descriptors.iter().map(|(fd, id)| describe(fd, id)).collect()
    }

    pub(crate) fn add(&mut self, body: Body) -> Id {
        let id = self.next_id;
        self.next_id += 1;
        self.objects.insert(id, Object { references: 0, body });
        id
    }

    /// Opens the lowest free descriptor for an object.
    pub(crate) fn open(&mut self, id: Id) -> Fd {
        let mut fd = BASE;
        for &used in self.descriptors.keys() {
            if used != fd {
                break;
            }
            fd += 1;
        }
        self.descriptors.insert(fd, id);
        self.owners.insert(fd, self.process);
        self.hold(id);
        fd
    }

    pub(crate) fn open_new(&mut self, body: Body) -> Fd {
        let id = self.add(body);
        self.open(id)
    }

    pub(crate) fn hold(&mut self, id: Id) {
        if let Some(object) = self.objects.get_mut(&id) {
            object.references += 1;
        }
    }

    pub(crate) fn id(&self, fd: Fd) -> SysResult<Id> {
        self.descriptors.get(&fd).copied().ok_or(libc::EBADF)
    }

    pub(crate) fn body(&mut self, fd: Fd) -> SysResult<&mut Body> {
        let id = self.id(fd)?;
        self.objects.get_mut(&id).map(|object| &mut object.body).ok_or(libc::EBADF)
    }

    pub(crate) fn duplicate(&mut self, fd: Fd) -> SysResult<Fd> {
        let id = self.id(fd)?;
        Ok(self.open(id))
    }

    pub(crate) fn close(&mut self, fd: Fd) -> SysResult {
        let id = self.descriptors.remove(&fd).ok_or(libc::EBADF)?;
        self.owners.remove(&fd);
        self.release(id);
        Ok(0)
    }

    /// Returns the real descriptors of open memory.
    pub(crate) fn memories(&self) -> Vec<i32> {
        let memory = |object: &Object| match object.body {
            Body::Memory(real) => Some(real),
            _ => None,
        };
        self.objects.values().filter_map(memory).collect()
    }

    /// Closes all descriptors of a process that has ended.
    pub(crate) fn close_all(&mut self, process: u32) {
        let owned = self.owners.iter().filter(|(_, owner)| **owner == process);
        for fd in owned.map(|(fd, _)| *fd).collect::<Vec<_>>() {
            let _ = self.close(fd);
        }
    }

    /// Drops one reference. The last one frees the object.
    pub(crate) fn release(&mut self, id: Id) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        object.references -= 1;
        if object.references > 0 {
            return;
        }
        self.changes += 1;
        match &object.body {
            Body::Socket(_) => self.close_socket(id),
            body => {
                if let Body::Memory(real) = body {
                    self.to_close.push(*real);
                }
                self.objects.remove(&id);
            }
        }
        for object in self.objects.values_mut() {
            if let Body::Epoll(set) = &mut object.body {
                set.forget(id);
            }
        }
    }

    // ---- time

    pub(crate) fn schedule_at(&mut self, time: u64, event: Event) {
        self.next_event += 1;
        self.due.push(Reverse((time.max(self.now), self.next_event, event)));
    }

    pub(crate) fn schedule_after(&mut self, delay: u64, event: Event) {
        self.schedule_at(self.now + delay, event);
    }

    /// Returns the time of the next event.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((time, ..))| *time)
    }

    /// Runs the events that are due by now.
    pub(crate) fn advance(&mut self, now: u64) {
        self.now = now;
        while self.next_due().is_some_and(|time| time <= now) {
            let Some(Reverse((_, _, event))) = self.due.pop() else { return };
            self.changes += 1;
            match event {
                Event::Deliver(id) => self.deliver(id),
                Event::Syn(id, tries) => self.arrive_syn(id, tries),
                Event::Established(id) => self.establish(id),
                Event::Reset(id, error) => self.reset(id, error),
                Event::DatagramArrives(flight) => self.deliver_datagram(flight),
                Event::Timer => {}
            }
        }
    }

    // ---- readiness

    /// Returns all events that poll(2) could report.
    pub(crate) fn readiness(&self, id: Id, depth: u8) -> u32 {
        let Some(object) = self.objects.get(&id) else { return 0 };
        let both = libc::EPOLLIN | libc::EPOLLOUT;
        let mask = match &object.body {
            Body::Socket(socket) => return self.socket_readiness(socket),
            Body::Epoll(set) if depth < 5 && set.any_ready(self, depth + 1) => libc::EPOLLIN,
            Body::Epoll(_) => 0,
            Body::Counter(0) => libc::EPOLLOUT,
            Body::Counter(count) if *count >= u64::MAX - 1 => libc::EPOLLIN,
            Body::Counter(_) => both,
            Body::Timer(timer) if timer.at.is_some_and(|at| at <= self.now) => libc::EPOLLIN,
            Body::Timer(_) => 0,
            Body::Memory(_) | Body::Text(..) | Body::Listing(_) | Body::Idle => both,
        };
        mask as u32
    }

    /// Fills in `revents`. Returns the number of ready descriptors.
    pub(crate) fn poll(&self, fds: &mut [libc::pollfd]) -> usize {
        let mut ready = 0;
        for entry in fds {
            entry.revents = 0;
            if entry.fd < 0 {
                continue;
            }
            entry.revents = match self.id(entry.fd) {
                Err(_) => libc::POLLNVAL,
                Ok(id) => {
                    let always = libc::POLLERR | libc::POLLHUP;
                    self.readiness(id, 0) as i16 & (entry.events | always)
                }
            };
            ready += usize::from(entry.revents != 0);
        }
        ready
    }

    // ---- counters, timers, files

    /// read(2) for descriptors other than sockets.
    pub(crate) fn read(&mut self, fd: Fd, into: &mut [u8]) -> SysResult<usize> {
        let now = self.now;
        match self.body(fd)? {
            Body::Counter(count) => {
                let value = std::mem::take(count);
                if value == 0 {
                    return Err(libc::EAGAIN);
                }
                self.changes += 1;
                put_number(into, value)
            }
            Body::Timer(timer) => {
                let Some(at) = timer.at.filter(|at| *at <= now) else { return Err(libc::EAGAIN) };
                let mut times = 1;
                timer.at = (timer.interval > 0).then(|| {
                    times += (now - at) / timer.interval;
                    at + times * timer.interval
                });
                if let Some(at) = timer.at {
                    self.schedule_at(at, Event::Timer);
                }
                put_number(into, times)
            }
            Body::Text(bytes, at) => {
                let n = into.len().min(bytes.len() - *at);
                into[..n].copy_from_slice(&bytes[*at..*at + n]);
                *at += n;
                Ok(n)
            }
            _ => Err(libc::EINVAL),
        }
    }

    /// write(2) for descriptors other than sockets.
    pub(crate) fn write(&mut self, fd: Fd, bytes: &[u8]) -> SysResult<usize> {
        let Body::Counter(count) = self.body(fd)? else { return Err(libc::EINVAL) };
        let value = bytes.first_chunk::<8>().map(|bytes| u64::from_ne_bytes(*bytes)).ok_or(libc::EINVAL)?;
        *count = count.checked_add(value).filter(|sum| *sum < u64::MAX).ok_or(libc::EAGAIN)?;
        self.changes += 1;
        Ok(8)
    }

    /// timerfd_settime(2) with a relative time; 0 disarms the timer.
    pub(crate) fn set_timer(&mut self, fd: Fd, after: u64, interval: u64) -> SysResult {
        let now = self.now;
        let Body::Timer(timer) = self.body(fd)? else { return Err(libc::EINVAL) };
        *timer = Timer { at: (after > 0).then_some(now + after), interval };
        if after > 0 {
            self.schedule_after(after, Event::Timer);
        }
        self.changes += 1;
        Ok(0)
    }

    // ---- paths

    /// Returns the file at a path, with its inode number.
    pub(crate) fn file(&self, path: &[u8]) -> Option<(FileKind, u64)> {
        if self.folders.contains(path) {
            return Some((FileKind::Folder, 0));
        }
        let file = self.files.get(path).map(|id| (FileKind::Plain, u64::from(*id)));
        file.or_else(|| self.paths.get(path).map(|(inode, _)| (FileKind::Socket, *inode)))
    }

    /// Returns the attributes of the file at a path.
    pub(crate) fn attributes(&self, path: &[u8]) -> Option<Attributes> {
        if let Some(file) = self.settings.get(path) {
            let (inode, length) = (file.inode, file.bytes.len() as u64);
            return Some(Attributes { kind: FileKind::Plain, inode, length, changed: file.changed });
        }
        let (kind, inode) = self.file(path)?;
        Some(Attributes { kind, inode, length: 0, changed: 0 })
    }

    /// Creates or replaces a file of settings in one step.
    pub(crate) fn write_settings(&mut self, path: &[u8], bytes: &[u8]) {
        self.next_inode += 1;
        let file = SettingsFile { bytes: bytes.to_vec(), inode: self.next_inode, changed: self.now };
        self.settings.insert(path.to_vec(), file);
    }

    pub(crate) fn remove_settings(&mut self, path: &[u8]) {
        self.settings.remove(path);
    }

    /// Lets no call open a further descriptor before another one is closed.
    pub(crate) fn limit_descriptors(&mut self) {
        self.most_descriptors = self.descriptors.len();
    }

    /// True if no descriptor is left.
    pub(crate) fn is_full(&self) -> bool {
        self.descriptors.len() >= self.most_descriptors
    }

    /// Opens a folder, to list its names.
    pub(crate) fn list_folder(&mut self, path: &[u8]) -> SysResult<Fd> {
        if !self.folders.contains(path) {
            return Err(if self.file(path).is_some() { libc::ENOTDIR } else { libc::ENOENT });
        }
        if self.is_full() {
            return Err(libc::EMFILE);
        }
        let name = |file: &Vec<u8>| {
            let name = file.strip_prefix(path)?.strip_prefix(b"/")?;
            (!name.contains(&b'/')).then(|| name.to_vec())
        };
        let names = self.settings.keys().filter_map(name).collect();
        Ok(self.open_new(Body::Listing(names)))
    }

    /// Returns the next name of a listed folder.
    pub(crate) fn next_name(&mut self, fd: Fd) -> Option<Vec<u8>> {
        match self.body(fd) {
            Ok(Body::Listing(names)) => names.pop(),
            _ => None,
        }
    }

    pub(crate) fn make_folder(&mut self, path: &[u8]) -> SysResult {
        if self.file(path).is_some() {
            Err(libc::EEXIST)
        } else {
            Ok(self.folders.insert(path.to_vec()).into())
        }
    }

    /// Opens an existing file.
    pub(crate) fn open_file(&mut self, path: &[u8]) -> SysResult<Fd> {
        if self.is_full() {
            return Err(libc::EMFILE);
        }
        if let Some(file) = self.settings.get(path) {
            let bytes = file.bytes.clone();
            return Ok(self.open_new(Body::Text(bytes, 0)));
        }
        let id = *self.files.get(path).ok_or(libc::ENOENT)?;
        Ok(self.open(id))
    }

    /// Creates a file whose bytes are behind a real descriptor.
    pub(crate) fn make_file(&mut self, path: &[u8], real: i32) -> Fd {
        let id = self.add(Body::Memory(real));
        // Reference held by the path.
        self.hold(id);
        self.files.insert(path.to_vec(), id);
        self.open(id)
    }

    pub(crate) fn unlink(&mut self, path: &[u8]) -> SysResult {
        if self.is_dead {
            return Err(libc::ENOENT);
        }
        if let Some(id) = self.files.remove(path) {
            self.release(id);
            return Ok(0);
        }
        self.paths.remove(path).map(|_| 0).ok_or(libc::ENOENT)
    }
}

fn put_number(into: &mut [u8], number: u64) -> SysResult<usize> {
    *into.first_chunk_mut::<8>().ok_or(libc::EINVAL)? = number.to_ne_bytes();
    Ok(8)
}

#[cfg(all(test, not(simulated)))]
mod tests;
