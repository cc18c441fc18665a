//! `zmq_curve_keypair` and `zmq_curve_public`: CURVE keys as Z85 text (ZeroMQ RFC 26, RFC 32). Key
//! pairs are X25519's; the public key is the secret one times the curve's base point.
//!
//! The caller passes places with room for 41 characters, and a text with a NUL at the end. Null is
//! allowed.

use std::ffi::{CStr, c_char, c_int};

use tautline_core::z85::{KEY_LENGTH as TEXT_LEN, decode_key, encode_key};
use tautline_core::{Secret, public_key};
use tautline_io::{errno, random};

use crate::guard::guard;

/// Stores a new key pair. Each place has room for 41 characters. -1 with the system's errno if it
/// has no random bytes, with EFAULT for a null place.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_curve_keypair(public_text: *mut c_char, secret_text: *mut c_char) -> c_int {
    if public_text.is_null() || secret_text.is_null() {
        return fail(errno::EFAULT);
    }
    guard(-1, || {
        let mut secret = Secret::new([0; 32]);
        if let Err(error) = random::fill(&mut secret[..]) {
            return fail(errno::of(&error).unwrap_or(errno::EIO));
        }
        // SAFETY: both places are not null and have room for 41 characters, as guaranteed by the
        // caller.
        unsafe {
            write_key(public_text, &public_key(&secret));
            write_key(secret_text, &secret);
        }
        0
    })
}

/// Stores the public key of a secret key. The place has room for 41 characters. -1 with EINVAL if
/// the secret key is not 40 characters of Z85, with EFAULT for null.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_curve_public(public_text: *mut c_char, secret_text: *const c_char) -> c_int {
    if public_text.is_null() || secret_text.is_null() {
        return fail(errno::EFAULT);
    }
    guard(-1, || {
        // SAFETY: not null, so a terminated string, as guaranteed by the caller.
        let Some(secret) = decode_key(unsafe { CStr::from_ptr(secret_text) }.to_bytes()).map(Secret::new)
        else {
            return fail(errno::EINVAL);
        };
        // SAFETY: not null, room for 41 characters, as guaranteed by the caller.
        unsafe { write_key(public_text, &public_key(&secret)) };
        0
    })
}

fn fail(number: c_int) -> c_int {
    errno::set(number);
    -1
}

/// # Safety
/// `dest` has room for 41 characters.
unsafe fn write_key(dest: *mut c_char, key: &[u8; 32]) {
    let mut text = [0; TEXT_LEN + 1];
    text[..TEXT_LEN].copy_from_slice(&encode_key(key));
    // SAFETY: guaranteed by the caller; a byte array needs no alignment.
    unsafe { dest.cast::<[u8; TEXT_LEN + 1]>().write(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    fn public_of(secret: &CStr) -> Result<String, c_int> {
        let mut text = [0; TEXT_LEN + 1];
        // SAFETY: room for 41 characters.
        unsafe {
            match zmq_curve_public(text.as_mut_ptr(), secret.as_ptr()) {
                0 => Ok(CStr::from_ptr(text.as_ptr()).to_str().unwrap().to_owned()),
                _ => Err(errno::last()),
            }
        }
    }

    #[test]
    fn key_pairs_belong_together_and_differ() {
        let mut seen = Vec::new();
        for _ in 0..4 {
            let mut public = [1; TEXT_LEN + 1];
            let mut secret = [1; TEXT_LEN + 1];
            // SAFETY: room for 41 characters each.
            let (public, secret) = unsafe {
                assert_eq!(zmq_curve_keypair(public.as_mut_ptr(), secret.as_mut_ptr()), 0);
                (CStr::from_ptr(public.as_ptr()).to_owned(), CStr::from_ptr(secret.as_ptr()).to_owned())
            };
            assert_eq!(public_of(&secret).unwrap().as_bytes(), public.to_bytes());
            assert!(!seen.contains(&secret));
            seen.push(secret);
        }
    }

    /// The test keys of the manual, zmq_curve(7).
    #[test]
    fn known_key_pairs() {
        let server = public_of(c"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6");
        assert_eq!(server.as_deref(), Ok("rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"));
        let client = public_of(c"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs");
        assert_eq!(client.as_deref(), Ok("Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"));
    }

    #[test]
    fn invalid_keys_are_einval() {
        let short = c"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf";
        let long = c"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7rq:rM";
        let space = c"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf ";
        for secret in [c"", c"abc", short, long, space] {
            assert_eq!(public_of(secret), Err(errno::EINVAL), "{secret:?}");
        }
    }

    #[test]
    fn null_is_efault() {
        let mut text = [0; TEXT_LEN + 1];
        // SAFETY: null is allowed.
        unsafe {
            assert_eq!(zmq_curve_keypair(null_mut(), text.as_mut_ptr()), -1);
            assert_eq!(errno::last(), errno::EFAULT);
            assert_eq!(zmq_curve_keypair(text.as_mut_ptr(), null_mut()), -1);
            assert_eq!(zmq_curve_public(null_mut(), text.as_ptr()), -1);
            assert_eq!(zmq_curve_public(text.as_mut_ptr(), null()), -1);
        }
    }
}
