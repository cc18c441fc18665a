//! Compares the pool with the system's allocator: `cargo bench -p tautline-mem`.
//!
//! Each cell is measured alternately on both, round by round. The ratio of a round compares
//! measurements that are close in time. The table has medians, and the quartiles of the ratio.
//! Every byte of a block is written after allocation and read before it is freed, like a message's
//! body.
//!
//! - *here*: one thread allocates a block and frees it.
//! - *burst*: one thread allocates 64 blocks, then frees them.
//! - *away*: one thread allocates, another one frees, up to 64 blocks behind.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};
use tautline_mem::blocks;

/// Rounds of a cell, each on both sides.
const ROUNDS: usize = 15;
/// Minimum number of bytes that are written in a round.
const BYTES: usize = 64 << 20;
/// Maximum number of blocks in a round.
const BLOCKS: usize = 400_000;
/// Blocks of a burst, and between two threads.
const WINDOW: usize = 64;

/// A source of memory.
#[derive(Clone, Copy)]
enum Source {
    Pool,
    Malloc,
}

impl Source {
    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, blocks::ALIGN).expect("a size of the table")
    }

    fn allocate(self, size: usize) -> NonNull<u8> {
        let block = match self {
            Source::Pool => blocks::allocate(size),
            // SAFETY: all sizes of the table are larger than zero.
            Source::Malloc => unsafe { std::alloc::alloc(Self::layout(size)) },
        };
        let block = NonNull::new(block).expect("memory");
        // SAFETY: just allocated with this size.
        unsafe { block.write_bytes(7, size) };
        black_box(block)
    }

    fn free(self, block: NonNull<u8>, size: usize) {
        // SAFETY: `allocate` has written all of it.
        let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), size) };
        black_box(bytes.chunks(64).fold(0_u8, |sum, line| sum.wrapping_add(line[0])));
        match self {
            // SAFETY: from `allocate` with the same size, and not used again.
            Source::Pool => unsafe { blocks::free(block.as_ptr(), size) },
            // SAFETY: as above.
            Source::Malloc => unsafe { std::alloc::dealloc(block.as_ptr(), Self::layout(size)) },
        }
    }
}

/// A measured function. Takes a source, a size and a number of blocks.
type Workload = fn(Source, usize, usize);

fn here(source: Source, size: usize, count: usize) {
    for _ in 0..count {
        source.free(source.allocate(size), size);
    }
}

fn burst(source: Source, size: usize, count: usize) {
    for _ in 0..count / WINDOW {
        let held: [_; WINDOW] = std::array::from_fn(|_| source.allocate(size));
        held.into_iter().for_each(|block| source.free(block, size));
    }
}

/// Waits until `look` succeeds.
fn wait<T>(mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        for _ in 0..1000 {
            if let Some(found) = look() {
                return found;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
}

fn away(source: Source, size: usize, count: usize) {
    let places: [AtomicPtr<u8>; WINDOW] = [const { AtomicPtr::new(null_mut()) }; WINDOW];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for place in places.iter().cycle().take(count) {
                // Acquire pairs with the Release of the other thread: the block is written.
                let block = wait(|| NonNull::new(place.load(Acquire)));
                place.store(null_mut(), Relaxed);
                source.free(block, size);
            }
        });
        for place in places.iter().cycle().take(count) {
            let block = source.allocate(size);
            wait(|| place.load(Relaxed).is_null().then_some(()));
            place.store(block.as_ptr(), Release);
        }
    });
}

/// Returns the value below which the given part of the sorted values lies.
fn part(sorted: &[f64], of: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * of).round() as usize]
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn main() {
    let cells: [(&str, Workload); 3] = [("here", here), ("burst", burst), ("away", away)];
    println!("| blocks | bytes | pool, ns | malloc, ns | malloc / pool |\n|---|--:|--:|--:|---|");
    for (name, run) in cells {
        for size in [80, 256, 768, 1088, 8 << 10, 64 << 10, 128 << 10] {
            let count = (BYTES / size).min(BLOCKS);
            let time = |source| {
                let start = Instant::now();
                run(source, size, count);
                start.elapsed()
            };
            time(Source::Pool);
            time(Source::Malloc);
            let rounds: Vec<_> = (0..ROUNDS).map(|_| (time(Source::Pool), time(Source::Malloc))).collect();
            let each = |time: Duration| time.as_secs_f64() * 1e9 / count as f64;
            let pool = sorted(rounds.iter().map(|round| each(round.0)));
            let malloc = sorted(rounds.iter().map(|round| each(round.1)));
            let ratio = sorted(rounds.iter().map(|round| each(round.1) / each(round.0)));
            println!(
                "| {name} | {size} | {:.0} | {:.0} | {:.2} ({:.2} to {:.2}) |",
                part(&pool, 0.5),
                part(&malloc, 0.5),
                part(&ratio, 0.5),
                part(&ratio, 0.25),
                part(&ratio, 0.75),
            );
        }
    }
}
