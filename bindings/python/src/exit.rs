//! Threads that outlive the interpreter.
//!
//! Before Python 3.14, a thread that takes the interpreter lock after the interpreter has exited ends
//! with `pthread_exit`. glibc then unwinds the stack of the thread, and a frame of Rust on the stack
//! aborts the process. Such a frame is there if this module has called Python code: a generator, an
//! `__index__`, a finalizer. The thread therefore pauses for ever in place of unwinding, as it does
//! since Python 3.14.
//!
//! The unwinder asks the personality routine of each frame what to do with the frame. All frames of
//! Rust have the routine of the standard library, and `build.rs` lets the linker put `personality`
//! in front of it. This covers every call of Python, also those that PyO3 makes. The unwinding stops
//! at the innermost frame of Rust with a routine; frames without a routine own no values.

#[cfg(all(target_os = "linux", target_env = "gnu", not(target_arch = "arm")))]
mod forced {
    use std::ffi::{c_int, c_void};
    use std::thread;
    use std::time::Duration;

    /// `_UA_FORCE_UNWIND`: the unwinding does not end at a handler, but at the end of the thread.
    const FORCE_UNWIND: c_int = 8;

    // The routine belongs to this library: another one in the process may use the same name.
    std::arch::global_asm!(".hidden __wrap_rust_eh_personality");

    unsafe extern "C" {
        /// The routine of the standard library, under the name that the linker gives it.
        fn __real_rust_eh_personality(
            version: c_int,
            actions: c_int,
            class: u64,
            exception: *mut c_void,
            context: *mut c_void,
        ) -> c_int;
    }

    /// The personality routine of all frames of Rust in this library.
    ///
    /// # Safety
    /// Called only by the unwinder.
    // SAFETY: the name is the one that `--wrap` asks for, and no other function has it.
    #[unsafe(export_name = "__wrap_rust_eh_personality")]
    unsafe extern "C" fn personality(
        version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        context: *mut c_void,
    ) -> c_int {
        if actions & FORCE_UNWIND != 0 {
            loop {
                thread::sleep(Duration::MAX);
            }
        }
        // SAFETY: the arguments of the unwinder are passed on.
        unsafe { __real_rust_eh_personality(version, actions, class, exception, context) }
    }
}
