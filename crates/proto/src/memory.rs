//! Memory that a peer, or the program, decides about: asked for in such a way that the answer may
//! be no.

use crate::error::ProtocolError;

/// Whether there is memory for `bytes` bytes just now: asked before something that others decide
/// about goes into collections that could only end the process without it.
pub fn at_hand(bytes: usize) -> Result<(), ProtocolError> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| ProtocolError::NoMemory)?;
    // Not to be left out, though nothing is done with it.
    std::hint::black_box::<*mut u8>(room.as_mut_ptr());
    Ok(())
}

/// Makes room for `bytes` bytes more; for just these if there is not enough for the spare room that
/// growing adds.
pub(crate) fn reserve(out: &mut Vec<u8>, bytes: usize) -> Result<(), ProtocolError> {
    let reserved = out.try_reserve(bytes).or_else(|_| out.try_reserve_exact(bytes));
    reserved.map_err(|_| ProtocolError::NoMemory)
}

/// Appends `bytes`.
pub(crate) fn extend(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), ProtocolError> {
    reserve(out, bytes.len())?;
    out.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        assert_eq!((at_hand(0), at_hand(100_000)), (Ok(()), Ok(())));
        for size in [usize::MAX, isize::MAX as usize] {
            assert_eq!(at_hand(size), Err(ProtocolError::NoMemory));
        }
        let mut out = b"before".to_vec();
        assert_eq!(reserve(&mut out, isize::MAX as usize), Err(ProtocolError::NoMemory));
        assert_eq!(extend(&mut out, b" and after"), Ok(()));
        assert_eq!(out, b"before and after");
    }
}
