//! Bytes from the kernel's cryptographic generator, for keys, nonces and routing ids.

use std::io;

use crate::sys;

/// Fills `bytes`. May block once, early after boot, until the kernel has gathered entropy.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match sys::random(&mut bytes[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_all_of_it_with_something_new() {
        fill(&mut []).unwrap();
        // More than one call can deliver on any system.
        let (mut first, mut second) = ([0_u8; 1000], [0_u8; 1000]);
        fill(&mut first).unwrap();
        fill(&mut second).unwrap();
        assert_ne!(first, second);
        assert!(first[900..].iter().any(|&byte| byte != 0));
    }
}
