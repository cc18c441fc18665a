//! Copies of message bodies, in pieces that suit the earlier stores and the later loads.

/// Copies a body of fewer than 256 bytes by 8-byte words, with any alignment.
///
/// A wide load of bytes that the application just stored in narrow pieces would wait until those
/// stores have left the store buffer. Volatile keeps the compiler from merging the words into such
/// loads.
///
/// # Safety
/// `from` and `to` are valid for `n` bytes and do not overlap.
#[inline(always)]
pub unsafe fn copy_words(from: *const u8, to: *mut u8, n: usize) {
    #[repr(C, packed)]
    #[derive(Clone, Copy)]
    struct Word<T>(T);
    #[inline(always)]
    unsafe fn word<T: Copy>(from: *const u8, to: *mut u8, at: usize) {
        // SAFETY: within the bounds that the caller promised; a packed struct has no alignment.
        unsafe { to.add(at).cast::<Word<T>>().write(from.add(at).cast::<Word<T>>().read_volatile()) };
    }
    #[inline(always)]
    unsafe fn four(from: *const u8, to: *mut u8, at: usize) {
        // SAFETY: as above, for 32 bytes.
        unsafe {
            word::<u64>(from, to, at);
            word::<u64>(from, to, at + 8);
            word::<u64>(from, to, at + 16);
            word::<u64>(from, to, at + 24);
        }
    }
    // SAFETY: every word lies within the `n` bytes; the last ones overlap those before if `n` is
    // not a multiple.
    unsafe {
        if n >= 32 {
            let last = n - 32;
            let mut at = 0;
            while at < last {
                four(from, to, at);
                at += 32;
            }
            four(from, to, last);
        } else if n >= 8 {
            word::<u64>(from, to, 0);
            if n >= 16 {
                word::<u64>(from, to, 8);
                word::<u64>(from, to, n - 16);
            }
            word::<u64>(from, to, n - 8);
        } else if n >= 4 {
            word::<u32>(from, to, 0);
            word::<u32>(from, to, n - 4);
        } else if n > 0 {
            word::<u8>(from, to, 0);
            word::<u8>(from, to, n / 2);
            word::<u8>(from, to, n - 1);
        }
    }
}

/// Copies a body of at least 32 bytes that was stored long ago, in wide pieces, because its reader
/// may load it in wide pieces.
///
/// # Safety
/// `from` and `to` are valid for `n` bytes and do not overlap; `n` is at least 32.
#[inline(always)]
pub unsafe fn copy_wide(from: *const u8, to: *mut u8, n: usize) {
    #[inline(always)]
    unsafe fn wide(from: *const u8, to: *mut u8, at: usize) {
        // SAFETY: within the bounds that the caller promised.
        unsafe { std::ptr::copy_nonoverlapping(from.add(at), to.add(at), 32) };
    }
    // SAFETY: all pieces lie within the `n` bytes; the last ones overlap those before.
    unsafe {
        match n {
            32..=64 => {
                wide(from, to, 0);
                wide(from, to, n - 32);
            }
            65..=128 => {
                wide(from, to, 0);
                wide(from, to, 32);
                wide(from, to, n - 64);
                wide(from, to, n - 32);
            }
            _ => std::ptr::copy_nonoverlapping(from, to, n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_length_are_copied_and_nothing_beside_them() {
        let from: Vec<u8> = (0..=255).collect();
        for n in (0..256).step_by(if cfg!(miri) { 23 } else { 1 }) {
            let mut to = [0xAA; 256 + 16];
            // SAFETY: both have room for `n` bytes from where they begin here.
            unsafe { copy_words(from.as_ptr(), to.as_mut_ptr().add(8), n) };
            assert_eq!(to[8..8 + n], from[..n]);
            assert!(to[..8].iter().chain(&to[8 + n..]).all(|&byte| byte == 0xAA), "{n} bytes");
        }
    }

    #[test]
    fn copy_wide_copies_exactly_n_bytes() {
        let from: Vec<u8> = (0..=255).collect();
        for n in (32..256).step_by(if cfg!(miri) { 23 } else { 1 }) {
            let mut to = [0xAA; 256 + 16];
            // SAFETY: both have room for `n` bytes from where they begin here.
            unsafe { copy_wide(from.as_ptr(), to.as_mut_ptr().add(8), n) };
            assert_eq!(to[8..8 + n], from[..n]);
            assert!(to[..8].iter().chain(&to[8 + n..]).all(|&byte| byte == 0xAA), "{n} bytes");
        }
    }
}
