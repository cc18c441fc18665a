//! CURVE keys as text: RFC 32 (Z85) for 32 bytes.

/// Characters of a key.
pub(super) const KEY_LENGTH: usize = 40;

const DIGITS: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// The 40 characters of a key.
pub(super) fn encode_key(key: &[u8; 32]) -> [u8; KEY_LENGTH] {
    let mut text = [0; KEY_LENGTH];
    for (group, bytes) in text.chunks_exact_mut(5).zip(key.as_chunks().0) {
        let mut number = u32::from_be_bytes(*bytes);
        for character in group.iter_mut().rev() {
            *character = DIGITS[(number % 85) as usize];
            number /= 85;
        }
    }
    text
}

/// The key in 40 characters; `None` for another length, a foreign character or a group beyond 32 bits.
pub(super) fn decode_key(text: &[u8]) -> Option<[u8; 32]> {
    if text.len() != KEY_LENGTH {
        return None;
    }
    let mut key = [0; 32];
    for (bytes, group) in key.chunks_exact_mut(4).zip(text.chunks_exact(5)) {
        let mut number = 0u32;
        for character in group {
            let digit = DIGITS.iter().position(|known| known == character)?;
            number = number.checked_mul(85)?.checked_add(u32::try_from(digit).ok()?)?;
        }
        bytes.copy_from_slice(&number.to_be_bytes());
    }
    Some(key)
}
