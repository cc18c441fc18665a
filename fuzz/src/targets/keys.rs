//! Keys as text: `zmq_z85_encode`, `zmq_z85_decode`, `zmq_curve_public`.

use crate::abi::{text, zmq_curve_public, zmq_z85_decode, zmq_z85_encode};
use std::ffi::CStr;

/// Handles any bytes as data and as text.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(1000)];
    let mut encoded = vec![0; input.len() * 5 / 4 + 1];
    // SAFETY: the buffer has room for five characters per four bytes, and a NUL.
    let done = unsafe { zmq_z85_encode(encoded.as_mut_ptr().cast(), input.as_ptr(), input.len()) };
    assert_eq!(done.is_null(), !input.len().is_multiple_of(4));
    if !done.is_null() {
        let mut back = vec![0; input.len() + 1];
        // SAFETY: the encoded text ends with a NUL, and decodes to the same number of
        // bytes.
        assert!(
            !unsafe { zmq_z85_decode(back.as_mut_ptr(), encoded.as_ptr().cast()) }.is_null()
                || input.is_empty()
        );
        assert_eq!(&back[..input.len()], input);
    }
    let text = text(input);
    let mut bytes = vec![0xA7; text.count_bytes() * 4 / 5 + 8];
    let room = text.count_bytes() * 4 / 5;
    // SAFETY: the buffer has room for four bytes per five characters.
    let done = unsafe { zmq_z85_decode(bytes.as_mut_ptr(), text.as_ptr()) };
    assert!(bytes[room..].iter().all(|byte| *byte == 0xA7));
    assert!(done.is_null() || text.count_bytes().is_multiple_of(5));
    let mut public = [0xA7_u8; 48];
    // SAFETY: the buffer has room for 40 characters and a NUL.
    let derived = unsafe { zmq_curve_public(public.as_mut_ptr().cast(), text.as_ptr()) };
    assert!(public[41..].iter().all(|byte| *byte == 0xA7));
    if derived == 0 {
        // SAFETY: the text ends with a NUL.
        assert_eq!(unsafe { CStr::from_ptr(public.as_ptr().cast()) }.count_bytes(), 40);
    }
}

/// A key, the example of the RFC, and invalid lengths.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6".to_vec(),
        b"HelloWorld".to_vec(),
        vec![0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B],
        b"#####".to_vec(),
        b"abc".to_vec(),
    ]
}
