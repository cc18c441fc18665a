//! Memory whose size a peer or the program decides. Allocating it may fail with an error.

use crate::error::ProtocolError;

/// Checks that `bytes` bytes of memory are available now. Callers check this before they put data
/// of a size that others decide into collections, which would abort the process if there is no
/// memory.
pub fn check_available(bytes: usize) -> Result<(), ProtocolError> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| ProtocolError::NoMemory)?;
    // Keep the compiler from removing the allocation, which is never used.
    std::hint::black_box::<*mut u8>(room.as_mut_ptr());
    Ok(())
}

/// Reserves room for `bytes` more bytes. If there is not enough memory for the usual spare
/// capacity, reserves exactly these bytes.
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
        assert_eq!((check_available(0), check_available(100_000)), (Ok(()), Ok(())));
        for size in [usize::MAX, isize::MAX as usize] {
            assert_eq!(check_available(size), Err(ProtocolError::NoMemory));
        }
        let mut out = b"before".to_vec();
        assert_eq!(reserve(&mut out, isize::MAX as usize), Err(ProtocolError::NoMemory));
        assert_eq!(extend(&mut out, b" and after"), Ok(()));
        assert_eq!(out, b"before and after");
    }
}
