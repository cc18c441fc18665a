//! Memory shared by two ends of a Unix domain stream. A hostile peer misuses the socket, the passed
//! descriptors and the contents of the regions, while the other end reads and writes.

use crate::input::Reader;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tautline_io::net::Stream;

/// Bytes before a ring, and sizes of rings: valid sizes first, then invalid ones.
const HEADER: usize = 4096;
const RINGS: [usize; 6] = [2 << 20, 2 << 20, 2 << 20, (2 << 20) - 1, 0, 4 << 20];
/// Timeout for another thread to close a descriptor.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
/// Name of the peer's own memory in /proc/self/maps.
const NAME: &std::ffi::CStr = c"fuzz-memory";

/// A peer and its victim.
struct Talk {
    near: UnixStream,
    far: Stream,
    /// Regions that the peer has mapped: its own, or offered by the victim.
    regions: Vec<Region>,
    /// The peer's ends of the socket pairs that it has sent or received.
    bells: Vec<UnixStream>,
}

/// The input is a list of actions: one octet each, and its arguments.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let far = Stream::from_fd(far.into()).unwrap();
    far.prepare_sharing();
    // The state after a handshake. Descriptors are ignored before it.
    if reader.byte() & 7 != 0 {
        far.begin_sharing(false);
    }
    let mut talk = Talk { near, far, regions: Vec::new(), bells: Vec::new() };
    while !reader.is_empty() {
        talk.step(&mut reader);
    }
    let Talk { near, far, regions, bells } = talk;
    drop(near);
    let mut read = 0;
    // A reader that only polls notices the end after some time. The regions hold less data than this limit.
    for look in 0.. {
        match far.read(&mut [0; 4096]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        assert!(look < 100_000 && read < 16 << 20, "the stream does not end");
    }
    drop((far, regions));
    for mut bell in bells {
        bell.set_nonblocking(false).unwrap();
        bell.set_read_timeout(Some(PATIENCE)).unwrap();
        while bell.read(&mut [0; 64]).is_ok_and(|n| n > 0) {}
        let rest = bell.read(&mut [0]);
        assert!(!rest.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "a descriptor is left open");
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains(NAME.to_str().unwrap()), "a mapping is left");
}

impl Talk {
    fn step(&mut self, reader: &mut Reader<'_>) {
        let Talk { near, far, regions, bells } = self;
        match reader.byte() % 10 {
            0 => send(near, usize::from(reader.byte()), &[]),
            1 => {
                let (mine, yours) = pair();
                send(near, 1 + usize::from(reader.byte() % 8), &[yours.as_raw_fd()]);
                bells.push(mine);
            }
            2 => {
                let region = Region::create(reader.choice(&RINGS), reader.byte());
                let (mine, yours) = pair();
                send(near, 1 + usize::from(reader.byte() % 8), &[region.fd.as_raw_fd(), yours.as_raw_fd()]);
                bells.push(mine);
                regions.extend((region.len > 0).then_some(region));
            }
            3 => {
                let (which, word) = (usize::from(reader.byte()), usize::from(reader.byte()));
                let value = u64::from_be_bytes([0; 8].map(|_: u8| reader.byte()));
                if let Some(region) = regions.iter().nth_back(which % regions.len().max(1)) {
                    region.store(word, value);
                }
            }
            4 => {
                let mut room = vec![0; usize::from(reader.word())];
                assert!(far.read(&mut room).map_or(0, |n| n) <= room.len());
            }
            5 => {
                let listens =
                    if reader.byte() & 1 == 0 { far.request_wakeup() } else { far.request_wakeup_again() };
                assert!(listens || far.reads_from_memory(), "a socket is always listened to");
            }
            6 => {
                let (times, bytes) = (reader.byte(), vec![7; usize::from(reader.byte()) * 16]);
                for _ in 0..times {
                    assert!(far.write(&bytes).map_or(0, |n| n) <= bytes.len());
                    take(near, regions, bells, true);
                }
            }
            7 => take(near, regions, bells, reader.byte() & 1 != 0),
            8 => {
                far.space_fd();
                far.has_hung_up();
            }
            _ => drop(near.shutdown(std::net::Shutdown::Write)),
        }
    }
}

/// Creates two ends of a stream. The first end is non-blocking.
pub(super) fn pair() -> (UnixStream, UnixStream) {
    let (mine, yours) = UnixStream::pair().unwrap();
    mine.set_nonblocking(true).unwrap();
    (mine, yours)
}

/// Memory that the peer has mapped.
pub(super) struct Region {
    fd: OwnedFd,
    base: NonNull<u8>,
    len: usize,
}

impl Region {
    /// Creates memory with all seals, some of them, or without seals.
    pub(super) fn create(ring: usize, seals: u8) -> Region {
        let len = if ring == 0 { 0 } else { HEADER + ring };
        // SAFETY: the name is a C string; only this value owns the descriptor; the other calls take integers.
        let fd = unsafe {
            let fd = OwnedFd::from_raw_fd(libc::memfd_create(NAME.as_ptr(), libc::MFD_ALLOW_SEALING));
            assert_eq!(libc::ftruncate(fd.as_raw_fd(), len as libc::off_t), 0);
            let choices =
                [libc::F_SEAL_SHRINK | libc::F_SEAL_GROW, libc::F_SEAL_SHRINK, libc::F_SEAL_GROW, 0];
            let seals = choices[usize::from(seals) % 4];
            assert_eq!(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals), 0);
            fd
        };
        let region = Region::map(fd, len);
        // Size that the peer claims for it.
        region.store(0, u64::from_le_bytes(*b"tautlin1"));
        region
    }

    /// Duplicates its descriptor.
    pub(super) fn fd(&self) -> OwnedFd {
        self.fd.try_clone().unwrap()
    }

    fn map(fd: OwnedFd, len: usize) -> Region {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = match len {
            0 => std::ptr::null_mut(),
            _ => unsafe {
                libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
            },
        };
        assert_ne!(base, libc::MAP_FAILED);
        Region { fd, base: NonNull::new(base.cast()).unwrap_or(NonNull::dangling()), len }
    }

    /// Writes one of the first 256 words, which hold everything except the payload.
    pub(super) fn store(&self, word: usize, value: u64) {
        if let (true, at) = (self.len >= HEADER, word % 256 * 8) {
            // SAFETY: within the mapping, which other threads access only with atomics and copies of bytes.
            unsafe { self.base.add(at).cast::<AtomicU64>().as_ref() }.store(value, SeqCst);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: this value owns the mapping.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}

/// Room for two descriptors.
#[repr(C, align(8))]
struct Control([u8; 64]);

fn header(bytes: &mut libc::iovec, control: &mut Control, length: usize) -> libc::msghdr {
    // SAFETY: integers and pointers, for which zero means "absent".
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (bytes, 1);
    (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), length);
    message
}

fn space(descriptors: usize) -> usize {
    // SAFETY: arithmetic only.
    unsafe { libc::CMSG_SPACE((descriptors * size_of::<RawFd>()) as u32) as usize }
}

/// Sends up to the given number of bytes, as the buffer allows, together with the descriptors.
pub(super) fn send(near: &UnixStream, count: usize, descriptors: &[RawFd]) {
    let (mut bytes, mut control) = (vec![5_u8; count], Control([0; 64]));
    let mut list = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let length = if descriptors.is_empty() { 0 } else { space(descriptors.len()) };
    let message = header(&mut list, &mut control, length);
    // SAFETY: the control buffer has room for one header with these descriptors; the lengths match the
    // buffers.
    unsafe {
        if !descriptors.is_empty() {
            let first = libc::CMSG_FIRSTHDR(&message);
            ((*first).cmsg_level, (*first).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
            (*first).cmsg_len = libc::CMSG_LEN(size_of_val(descriptors) as u32) as usize;
            let data = libc::CMSG_DATA(first).cast::<RawFd>();
            descriptors.iter().enumerate().for_each(|(i, fd)| data.add(i).write_unaligned(*fd));
        }
        libc::sendmsg(near.as_raw_fd(), &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
    }
}

/// Receives the available data. Answers a request and maps an offer, or ignores both.
pub(super) fn take(
    near: &UnixStream,
    regions: &mut Vec<Region>,
    bells: &mut Vec<UnixStream>,
    takes_part: bool,
) {
    let (mut bytes, mut control) = ([0_u8; 4096], Control([0; 64]));
    let mut list = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut message = header(&mut list, &mut control, space(2));
    let mut rights = Vec::new();
    // SAFETY: the kernel fills the buffers within the given lengths; only this code owns the descriptors.
    unsafe {
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        if libc::recvmsg(near.as_raw_fd(), &mut message, flags) > 0 && message.msg_controllen != 0 {
            let first = libc::CMSG_FIRSTHDR(&message);
            let count = ((*first).cmsg_len - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
            let data = libc::CMSG_DATA(first).cast::<RawFd>();
            rights.extend((0..count).map(|i| OwnedFd::from_raw_fd(data.add(i).read_unaligned())));
        }
    }
    let (Some(bell), memory) = (rights.pop(), rights.pop()) else { return };
    let bell = UnixStream::from(bell);
    bell.set_nonblocking(true).unwrap();
    if let (Some(memory), true) = (memory, takes_part) {
        let len = usize::try_from(std::fs::File::from(memory.try_clone().unwrap()).metadata().unwrap().len());
        let region = Region::map(memory, len.unwrap());
        // Marks the region as used, in the first word after the magic number.
        region.store(1, 1);
        regions.push(region);
    } else if takes_part {
        send(&bell, 1, &[]);
    }
    bells.push(bell);
}

/// A correct writer, a correct reader, and each of them with a false value.
pub fn seeds() -> Vec<Vec<u8>> {
    let store = |word: u8, value: u64| [&[3, 0, word][..], &value.to_be_bytes()].concat();
    let read = [4, 0x10, 0];
    // Positions in the header: a line is 128 bytes, 16 words.
    let (switch_at, switched, tail, head) = (16, 32, 48, 64);
    let writer = |at: u64, end: u64| {
        [
            &[0, 9][..],
            &read,
            &[2, 0, 0, 4],
            &read,
            &store(switch_at, at),
            &store(switched, 1),
            &store(tail, end),
            &[5, 0],
            &read,
            &read,
            &[5, 1],
        ]
        .concat()
    };
    let reader = |end: u64| [&[6, 80, 4][..], &[7, 1], &store(head, end), &[8, 6, 200, 255], &read].concat();
    vec![
        writer(14, 100),
        writer(14, 5000),
        writer(3, u64::MAX),
        writer(1 << 60, 1),
        reader(64),
        reader(1 << 20),
        reader(u64::MAX),
        [&[1, 0][..], &read, &[1, 3], &[9], &read].concat(),
        [&[2, 3, 3, 0][..], &read, &[2, 5, 0, 0], &read].concat(),
    ]
}
