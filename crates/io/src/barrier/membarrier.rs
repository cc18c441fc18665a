//! The fence built on Linux's membarrier in its private expedited form, which interrupts each core
//! that runs a thread of this process.

use std::io;
#[cfg(not(simulated))]
use std::sync::atomic::fence;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};
use std::time::Duration;
#[cfg(simulated)]
use tautline_mem::sync::simulated::fence;

use crate::sys::check;

/// UNKNOWN until we have asked the kernel.
// Relaxed: number: a `light` that still reads UNKNOWN only does more than needed. ASYMMETRIC is
// read only after the registration that makes every `heavy` interrupt.
static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = 0;
const ASYMMETRIC: u8 = 1;
const SYMMETRIC: u8 = 2;

/// Fence of the frequent side.
#[inline]
pub fn light() {
    if MODE.load(Relaxed) == ASYMMETRIC {
        compiler_fence(SeqCst);
    } else {
        fence(SeqCst);
    }
}

/// Fence of the rare side. Takes a few microseconds.
pub fn heavy() {
    fence(SeqCst);
    if MODE.load(Relaxed) == UNKNOWN {
        prepare();
    }
    if MODE.load(Relaxed) == ASYMMETRIC && membarrier(EXPEDITED).is_err() {
        handle_revocation();
    }
    fence(SeqCst);
}

/// Registers the process with the kernel, unless it is registered already. Registration can take
/// milliseconds once the process has several threads. Call this before the threads start, so that
/// the first [`heavy`] does not pay for it.
pub fn prepare() {
    if MODE.load(Relaxed) == UNKNOWN {
        let mode = if membarrier(REGISTER).is_ok() { ASYMMETRIC } else { SYMMETRIC };
        // The first thread that asks decides for all threads.
        let _ = MODE.compare_exchange(UNKNOWN, mode, Relaxed, Relaxed);
    }
}

/// Handles a kernel that refuses a command it granted before. A new process image registers again.
/// If a sandbox entered since then forbids the command, the light side must fence from now on. A
/// thread that has just passed `light` without a fence gets the time to empty its store buffer,
/// which takes well under a microsecond of running, or one context switch.
#[cold]
fn handle_revocation() {
    if membarrier(REGISTER).is_ok() && membarrier(EXPEDITED).is_ok() {
        return;
    }
    MODE.store(SYMMETRIC, SeqCst);
    crate::thread::sleep(Duration::from_millis(1));
}

const EXPEDITED: libc::c_long = 1 << 3;
const REGISTER: libc::c_long = 1 << 4;

fn membarrier(command: libc::c_long) -> io::Result<()> {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    check(unsafe { libc::syscall(libc::SYS_membarrier, command, 0_u32, 0_i32) } as libc::c_int)?;
    Ok(())
}
