use super::*;
use crate::children::tests::WaitingChild;
use lending::DEFAULT_LIMIT as LEAST;

/// The pool belongs to the whole process, so tests use it one at a time.
static ONE: Mutex<()> = Mutex::new(());
pub(crate) const LEAD: usize = 16;

/// Takes the pool for one test.
pub(crate) fn one() -> MutexGuard<'static, ()> {
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(start());
    guard
}

pub(crate) fn body(block: NonNull<u8>) -> *mut u8 {
    block.as_ptr().wrapping_add(LEAD)
}

pub(crate) fn give(block: NonNull<u8>) {
    // SAFETY: each test frees each block once.
    unsafe { free(block.as_ptr(), LEAD) };
}

/// Maps the file as a process that received its descriptor does.
fn map_for_reading(file: &SlabFile) -> *const u8 {
    let (access, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), file.length, access, flags, file.fd.as_raw_fd(), 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.cast()
}

#[test]
fn readers_see_all_bytes_of_a_body() {
    let _one = one();
    for len in [LEAST, LEAST + 1, 1 << 20, (16 << 20) - BODY_AT, 16 << 20, 70 << 20] {
        let block = allocate(LEAD, len).unwrap();
        let body = body(block);
        assert!(owns(block.as_ptr()) && owns(body.wrapping_add(len - 1)) && body.addr() % PAGE == BODY_AT);
        // SAFETY: the block is ours and has `len` bytes.
        unsafe { body.write_bytes(7, len) };
        let lease = lend(body, len).unwrap();
        let seen = map_for_reading(&lease.file);
        // SAFETY: the mapping covers the file.
        let all = unsafe { std::slice::from_raw_parts(seen.add(lease.offset), len) };
        assert!(all.iter().all(|&byte| byte == 7), "{len} bytes");
        // SAFETY: not used again.
        unsafe { libc::munmap(seen.cast_mut().cast(), lease.file.length) };
        give(block);
    }
}

#[test]
fn block_with_a_lease_is_not_reused() {
    let _one = one();
    let first = allocate(LEAD, LEAST).unwrap();
    assert!(!is_lent(body(first)));
    let leases = [(); 2].map(|()| lend(body(first), LEAST).unwrap());
    assert!(is_lent(body(first)) && !is_lent(body(first).wrapping_add(PAGE)));
    give(first);
    assert!(lend(body(first), LEAST).is_none(), "a freed body is lent");
    let second = allocate(LEAD, LEAST).unwrap();
    assert_ne!(first, second);
    let [one, other] = leases;
    drop(one);
    let third = allocate(LEAD, LEAST).unwrap();
    assert_ne!(first, third);
    drop(other);
    let fourth = allocate(LEAD, LEAST).unwrap();
    assert_eq!(first, fourth);
    assert!(!is_lent(body(first)) && !is_lent(std::ptr::null()));
    [second, third, fourth].into_iter().for_each(give);
}

#[test]
fn only_whole_bodies_are_lent() {
    let _one = one();
    let block = allocate(LEAD, LEAST).unwrap();
    let inside = 1;
    assert!(lend(body(block).wrapping_add(PAGE), inside).is_none());
    assert!(lend(block.as_ptr(), inside).is_none());
    assert!(lend(body(block), 1 << 20).is_none());
    let elsewhere = vec![0_u8; LEAST];
    assert!(!owns(elsewhere.as_ptr()) && lend(elsewhere.as_ptr(), LEAST).is_none());
    assert!(!owns(std::ptr::null()));
    give(block);
}

#[test]
fn budget_bounds_the_memory() {
    let _one = one();
    let budget = std::mem::replace(&mut lock().budget, 8 << 20);
    trim_all();
    let blocks: Vec<_> = std::iter::from_fn(|| allocate(LEAD, 1 << 20)).collect();
    assert_eq!(blocks.len(), 7);
    assert!(allocate(LEAD, 16 << 20).is_none());
    blocks.into_iter().for_each(give);
    lock().budget = budget;
}

/// Gives back all idle slabs now. Returns the number of those that are left.
pub(crate) fn trim_all() -> usize {
    let mut pool = lock();
    pool.trim(Instant::now() + IDLE);
    pool.slabs.len()
}

#[test]
fn idle_slabs_are_given_back() {
    let _one = one();
    let block = allocate(LEAD, 32 << 20).unwrap();
    let lease = lend(body(block), 1).unwrap();
    give(block);
    trim_all();
    assert!(lock().slabs.iter().any(|slab| slab.file.id == lease.file.id));
    drop(lease);
    assert!(trim());
    trim_all();
    assert!(lock().slabs.is_empty() && !trim());
    assert!(lock().slots.iter().all(|used| !used));
    assert!(owns(block.as_ptr()));
}

/// Each operation is refused with the error that the system documents for a seal.
#[test]
fn receiver_of_the_descriptor_can_only_read() {
    let _one = one();
    let block = allocate(LEAD, LEAST).unwrap();
    let lease = lend(body(block), LEAST).unwrap();
    let (fd, length) = (lease.file.fd.as_raw_fd(), lease.file.length);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: each call is refused; it would only change the file.
    unsafe {
        let base = libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, fd, 0);
        assert_eq!(base, libc::MAP_FAILED);
        assert_eq!(libc::pwrite(fd, [1_u8].as_ptr().cast(), 1, 0), -1);
        assert_eq!(libc::ftruncate(fd, 0), -1);
        assert_eq!(libc::ftruncate(fd, 2 * length as libc::off_t), -1);
        assert_eq!(libc::fallocate(fd, hole, 0, 4096), -1);
        assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE), -1);
    }
    drop(lease);
    give(block);
}

#[test]
fn forked_child_changes_only_its_own_copy() {
    let _one = one();
    let block = allocate(LEAD, LEAST).unwrap();
    let body = body(block);
    // SAFETY: the block is ours.
    unsafe { body.write_bytes(1, LEAST) };
    let lease = lend(body, LEAST).unwrap();
    // SAFETY: the child writes to memory and ends. It takes no lock.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let kept = allocate(LEAD, LEAST).is_none() && lend(body, LEAST).is_none() && !start_in_child();
        // SAFETY: mapped in the child, too. Ends the child.
        unsafe {
            let kept = kept && body.read_volatile() == 1;
            body.write_bytes(2, LEAST);
            free(block.as_ptr(), LEAD);
            libc::_exit(libc::c_int::from(!(kept && body.read_volatile() == 2)));
        }
    }
    let mut status = 1;
    // SAFETY: writes one integer. The block is ours.
    unsafe {
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!((status, body.read_volatile()), (0, 1));
    }
    drop(lease);
    give(block);
}

/// `start` takes a lock, which another thread of the parent may have held.
fn start_in_child() -> bool {
    GENERATION.load(Relaxed) == fork::generation()
}

/// Returns the bytes of a block.
fn bytes(block: NonNull<u8>, len: usize) -> &'static mut [u8] {
    // SAFETY: the test uses them only before it frees the block, or in a child.
    unsafe { std::slice::from_raw_parts_mut(body(block), len) }
}

#[test]
fn block_of_a_forked_child_is_not_used_again_before_its_end() {
    let _one = one();
    let block = allocate(LEAD, LEAST).unwrap();
    bytes(block, LEAST).fill(1);
    let seen = bytes(block, LEAST);
    let child = WaitingChild::fork(|_| (), || seen.iter().all(|byte| *byte == 1));
    give(block);
    for _ in 0..100 {
        let others: Vec<_> = std::iter::from_fn(|| allocate(LEAD, LEAST)).take(10).collect();
        for &other in &others {
            assert_ne!(other, block);
            bytes(other, LEAST).fill(2);
        }
        others.into_iter().for_each(give);
    }
    child.end();
    while trim_all() > 0 {
        crate::children::sweep();
        std::thread::yield_now();
    }
}
