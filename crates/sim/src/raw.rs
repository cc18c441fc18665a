//! Makes real system calls, bypassing the C library names that `entry` replaces.

use std::arch::asm;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// A system call with up to six arguments; a failure is a negative number of `errno`.
///
/// # Safety
/// The arguments are valid for this system call.
pub(crate) unsafe fn call(number: libc::c_long, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the calling convention of Linux on x86-64; the rest is the caller's word.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Waits for its turn, and takes it.
pub(crate) fn wait_for_turn(turn: &AtomicU32) {
    while turn.swap(0, SeqCst) == 0 {
        let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
        // SAFETY: the word lives as long as the process; there is no timeout.
        unsafe { call(libc::SYS_futex, [turn.as_ptr() as usize, wait, 0, 0, 0, 0]) };
    }
}

/// Gives the turn to a thread.
pub(crate) fn give_turn(turn: &AtomicU32) {
    turn.store(1, SeqCst);
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word lives as long as the process.
    unsafe { call(libc::SYS_futex, [turn.as_ptr() as usize, wake, 1, 0, 0, 0]) };
}

/// Ends the process at once.
pub(crate) fn exit(code: i32) -> ! {
    loop {
        // SAFETY: no memory is touched.
        unsafe { call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Writes to a real descriptor.
pub(crate) fn write_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: pointer and length are a slice's.
        let n =
            unsafe { call(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
        match n {
            1.. => bytes = &bytes[n as usize..],
            n if n == -(libc::EINTR as isize) => {}
            _ => return,
        }
    }
}
