//! Numbers the blocks that the program allocates. Finds lost blocks, which no pointer reaches.
//! Finds secrets that are freed without being wiped.
//!
//! At the end of a simulation, this module reads all words that may hold a live value: static and
//! thread-local variables, and the stacks of running threads. A word that is an address within a
//! block reaches this block, and the words within the block reach other blocks. If a word is an
//! address by chance or a stale value, a lost block remains undetected. Blocks that only refer to
//! each other are lost.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};

use crate::raw;
use crate::store_buffer;
use crate::world;

/// Header directly before the first byte of each block.
struct Header {
    previous: *mut Header,
    next: *mut Header,
    size: usize,
    /// Number since the start of the simulation; 0 before it, and for blocks of the simulated
    /// system.
    number: u64,
}

const HEADER: usize = size_of::<Header>();

struct Locked<T> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the owner of the lock accesses the value.
unsafe impl<T> Sync for Locked<T> {}

impl<T> Locked<T> {
    /// Runs `f` under the lock. `f` must be short and make no system call.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        while self.is_locked.swap(true, SeqCst) {
            std::hint::spin_loop();
        }
        // SAFETY: this thread has the lock.
        let result = f(unsafe { &mut *self.value.get() });
        self.is_locked.store(false, SeqCst);
        result
    }
}

/// The most recently allocated block.
static LAST: Locked<*mut Header> =
    Locked { is_locked: AtomicBool::new(false), value: UnsafeCell::new(null_mut()) };
/// Allocated bytes.
static HELD: AtomicI64 = AtomicI64::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// Number of the block whose allocation the simulation reports.
static WANTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Secrets that must not lie in freed memory.
static SECRETS: Locked<Vec<Vec<u8>>> =
    Locked { is_locked: AtomicBool::new(false), value: UnsafeCell::new(Vec::new()) };
static HAS_SECRETS: AtomicBool = AtomicBool::new(false);

/// Registers a secret. From now on memory that a program frees must not contain these bytes.
pub(crate) fn register_secret(bytes: &[u8]) {
    // Grown outside the lock, because growing frees memory.
    let mut secrets = SECRETS.with(std::mem::take);
    secrets.push(bytes.to_vec());
    SECRETS.with(|all| *all = secrets);
    HAS_SECRETS.store(true, SeqCst);
}

fn contains_one(bytes: &[u8], secrets: &[Vec<u8>]) -> bool {
    secrets.iter().any(|secret| bytes.windows(secret.len()).any(|part| part == secret.as_slice()))
}

/// Checks that a block contains no secret before it is freed.
unsafe fn check_block_for_secrets(at: *const u8, size: usize) {
    if !HAS_SECRETS.load(SeqCst) || world::current_thread().is_none() || world::is_in_system_code() {
        return;
    }
    // SAFETY: the block, without any other reference to it. Its unwritten bytes are zero.
    let bytes = unsafe { std::slice::from_raw_parts(at, size) };
    let is_told = SECRETS.with(|secrets| contains_one(bytes, secrets));
    if is_told && !IS_TELLING.replace(true) {
        let why = format!("{size} bytes are freed with a secret in them:\n{}", Backtrace::force_capture());
        world::with(|world| world.fail(EXIT_SECRET_LEAKED, &why));
    }
}

/// Exit code for a secret that was not wiped.
const EXIT_SECRET_LEAKED: i32 = 6;

/// Returns the blocks that contain a secret after its owners have ended.
pub(crate) fn secrets() -> Vec<FaultyBlock> {
    let secrets = SECRETS.with(std::mem::take);
    let is_told = |block: &Block| {
        let mut own = secrets.iter().map(|secret| secret.as_ptr().addr());
        // SAFETY: the block stays allocated, because no other thread runs.
        let bytes = unsafe { std::slice::from_raw_parts(block.range.start as *const u8, block.range.len()) };
        own.all(|own| own != block.range.start) && contains_one(bytes, &secrets)
    };
    let mut blocks = if secrets.is_empty() { Vec::new() } else { blocks(NUMBER.load(SeqCst)) };
    blocks.retain(|block| block.number > 0 && is_told(block));
    blocks.iter().map(FaultyBlock::from).collect()
}

/// Returns the allocated bytes, including those of the simulator.
pub(crate) fn allocated_bytes() -> i64 {
    HELD.load(SeqCst)
}

/// Starts numbering blocks. Reports the place that allocates the block `wanted`.
pub(crate) fn begin(wanted: u64) {
    WANTED.store(wanted, SeqCst);
    NUMBER.store(1, SeqCst);
}

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Returns the offset of our block in the system's block, and the layout of the system's block.
/// Returns `None` on overflow.
fn outer(layout: Layout) -> Option<(usize, Layout)> {
    let front = layout.align().max(HEADER);
    let size = front.checked_add(layout.size())?;
    let outer = Layout::from_size_align(size, layout.align().max(align_of::<Header>())).ok()?;
    Some((front, outer))
}

/// Registers a new block of the system. Returns the block for its user.
unsafe fn register_block(at: *mut u8, front: usize, size: usize) -> *mut u8 {
    if at.is_null() {
        return at;
    }
    let number = match NUMBER.load(SeqCst) {
        0 => 0,
        _ if world::is_in_system_code() => 0,
        _ => NUMBER.fetch_add(1, SeqCst),
    };
    HELD.fetch_add(size as i64, SeqCst);
    // SAFETY: within the block, which is as aligned as a header.
    let (block, header) = unsafe { (at.add(front), at.add(front - HEADER).cast::<Header>()) };
    LAST.with(|last| {
        // SAFETY: the headers in the list are those of blocks that are not freed.
        unsafe {
            header.write(Header { previous: *last, next: null_mut(), size, number });
            if let Some(before) = last.as_mut() {
                before.next = header;
            }
        }
        *last = header;
    });
    if number > 0 && number == WANTED.load(SeqCst) && !IS_TELLING.replace(true) {
        let text = format!("block {number} of {size} bytes:\n{}\n", Backtrace::force_capture());
        raw::write_all(2, text.as_bytes());
    }
    block
}

/// Unregisters a block. Returns the system's block.
unsafe fn unregister_block(block: *mut u8, front: usize) -> *mut u8 {
    // SAFETY: its header, written by `enter`.
    let header = unsafe { block.sub(HEADER).cast::<Header>() };
    LAST.with(|last| {
        // SAFETY: as in `enter`.
        unsafe {
            let Header { previous, next, size, .. } = header.read();
            HELD.fetch_sub(size as i64, SeqCst);
            match next.as_mut() {
                Some(next) => next.previous = previous,
                None => *last = previous,
            }
            if let Some(previous) = previous.as_mut() {
                previous.next = next;
            }
        }
    });
    // SAFETY: the result is the start of the system's block.
    unsafe { block.sub(front) }
}

// SAFETY: the system's allocator, with room for a header in front of each block.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Zeroes remove pointers and secrets that earlier blocks left in this memory.
        // SAFETY: the caller meets the requirements.
        unsafe { self.alloc_zeroed(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some((front, outer)) = outer(layout) else { return null_mut() };
        // SAFETY: the size is not 0.
        unsafe { register_block(System.alloc_zeroed(outer), front, layout.size()) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        store_buffer::about_to_free(at, layout.size());
        // SAFETY: the caller's block.
        unsafe { check_block_for_secrets(at, layout.size()) };
        let Some((front, outer)) = outer(layout) else { return };
        // SAFETY: allocated with this layout.
        unsafe { System.dealloc(unregister_block(at, front), outer) }
    }
}

/// A thread of the program.
pub(crate) struct Stack {
    /// `pthread_t`: the address of the thread's descriptor.
    pub(crate) handle: usize,
    /// True if values on its stack may still be used.
    pub(crate) is_alive: bool,
}

/// A faulty block.
#[derive(Debug)]
#[expect(dead_code, reason = "told by its Debug")]
pub(crate) struct FaultyBlock {
    number: u64,
    size: usize,
}

impl From<&Block> for FaultyBlock {
    fn from(block: &Block) -> Self {
        FaultyBlock { number: block.number, size: block.range.len() }
    }
}

/// Address range of a block.
struct Block {
    range: Range<usize>,
    number: u64,
    is_reached: bool,
}

/// Returns the lost blocks. Only the first thread may call this, while no other thread runs. `top`
/// is the address of a stack variable; the part of the stack below it is ignored.
pub(crate) fn find_lost_blocks(top: usize, threads: &[Stack]) -> Vec<FaultyBlock> {
    let limit = NUMBER.load(SeqCst);
    let mut blocks = blocks(limit);
    blocks.sort_unstable_by_key(|block| block.range.start);
    let mut search = Search { blocks, waiting: Vec::new() };
    let mut tls = 0;
    for module in modules() {
        module.written.into_iter().for_each(|range| search.read(range));
        tls += module.thread_local;
    }
    // SAFETY: the loader's variable, which is not written any more.
    search.read(top..unsafe { __libc_stack_end } as usize);
    for thread in threads {
        // A thread's descriptor lies at the end of its thread-local variables.
        search.read(thread.handle - tls..thread.handle + DESCRIPTOR);
        if thread.is_alive {
            search.read(stack(thread.handle));
        }
    }
    search.finish();
    let lost = search.blocks.iter().filter(|block| block.number > 0 && !block.is_reached);
    let mut lost: Vec<FaultyBlock> = lost.map(FaultyBlock::from).collect();
    lost.sort_unstable_by_key(|lost| lost.number);
    lost
}

/// Bytes of `struct pthread` that hold, among others, the thread-specific values of the C library.
const DESCRIPTOR: usize = 2048;

unsafe extern "C" {
    /// Start of the first thread's stack, from the GNU C library's loader.
    static __libc_stack_end: *const c_void;
}

/// Returns all blocks that were allocated before the block of this number.
fn blocks(limit: u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    // Reserve first, because the list is a block itself.
    let each = |f: &mut dyn FnMut(Block)| {
        let mut header = LAST.with(|last| *last);
        // SAFETY: no other thread runs, and this thread frees no block during the walk.
        while let Some(one) = unsafe { header.as_ref() } {
            if one.number < limit {
                let start = header as usize + HEADER;
                f(Block { range: start..start + one.size, number: one.number, is_reached: false });
            }
            header = one.previous;
        }
    };
    let mut count = 0;
    each(&mut |_| count += 1);
    blocks.reserve_exact(count);
    each(&mut |block| blocks.push(block));
    blocks
}

struct Search {
    blocks: Vec<Block>,
    /// Indexes of reached blocks that are not read yet.
    waiting: Vec<usize>,
}

impl Search {
    /// Follows the words in a range.
    fn read(&mut self, range: Range<usize>) {
        const WORD: usize = size_of::<usize>();
        for at in (range.start.next_multiple_of(WORD)..range.end.saturating_sub(WORD - 1)).step_by(WORD) {
            // SAFETY: memory that is mapped, and that no other thread writes to now. A word of it
            // may have any value, which is why it is read as the processor does.
            let word = unsafe { (at as *const usize).read_volatile() };
            let next = self.blocks.partition_point(|block| block.range.start <= word);
            if let Some(at) = next.checked_sub(1)
                && let Some(block) = self.blocks.get_mut(at)
                && block.range.contains(&word)
                && !std::mem::replace(&mut block.is_reached, true)
            {
                self.waiting.push(at);
            }
        }
    }

    fn finish(&mut self) {
        while let Some(at) = self.waiting.pop() {
            let range = self.blocks[at].range.clone();
            self.read(range);
        }
    }
}

/// The program, or a library that it uses.
struct Module {
    /// Writable ranges.
    written: Vec<Range<usize>>,
    /// Bytes of thread-local variables.
    thread_local: usize,
}

fn modules() -> Vec<Module> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, modules: *mut c_void) -> c_int {
        // SAFETY: valid by the contract of `dl_iterate_phdr`, and by the call below.
        let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Vec<Module>>()) };
        // SAFETY: the same.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let mut module = Module { written: Vec::new(), thread_local: 0 };
        for header in headers {
            let (start, size) = ((info.dlpi_addr + header.p_vaddr) as usize, header.p_memsz as usize);
            match header.p_type {
                libc::PT_LOAD if header.p_flags & libc::PF_W != 0 => module.written.push(start..start + size),
                libc::PT_TLS => module.thread_local += size.next_multiple_of(header.p_align.max(1) as usize),
                _ => {}
            }
        }
        modules.push(module);
        0
    }
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: `add` expects a pointer to this vector.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

/// Returns the stack of a thread other than the first.
fn stack(handle: usize) -> Range<usize> {
    // SAFETY: the thread has not ended, and the results have room.
    unsafe {
        let mut attributes = std::mem::zeroed();
        let (mut start, mut size) = (null_mut(), 0);
        if libc::pthread_getattr_np(handle as libc::pthread_t, &mut attributes) != 0 {
            return 0..0;
        }
        libc::pthread_attr_getstack(&attributes, &mut start, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        start as usize..start as usize + size
    }
}
