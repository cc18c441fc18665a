//! Z85: binary keys as printable text, five characters for four bytes (RFC 32).
//!
//! Only this file knows the alphabet. Keys of CURVE have 32 bytes, which are 40 characters.

/// Characters of a 32-byte key.
pub const KEY_LENGTH: usize = 40;

/// The 85 digits in order of their value.
const DIGITS: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Value of a character that is not a digit.
const NONE: u8 = 0xFF;

/// The value of each character.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Encodes four bytes, most significant first, as five digits.
pub fn encode_group(bytes: [u8; 4]) -> [u8; 5] {
    let mut rest = u32::from_be_bytes(bytes);
    let mut text = [0; 5];
    for place in text.iter_mut().rev() {
        *place = DIGITS[(rest % 85) as usize];
        rest /= 85;
    }
    text
}

/// Decodes five digits to four bytes. Returns `None` if a character is not a digit or the value
/// does not fit.
pub fn decode_group(text: [u8; 5]) -> Option<[u8; 4]> {
    let mut sum = 0_u32;
    for character in text {
        let value = VALUES[usize::from(character)];
        if value == NONE {
            return None;
        }
        sum = sum.checked_mul(85)?.checked_add(u32::from(value))?;
    }
    Some(sum.to_be_bytes())
}

/// Returns the text of a key.
pub fn encode_key(key: &[u8; 32]) -> [u8; KEY_LENGTH] {
    let mut text = [0; KEY_LENGTH];
    for (group, bytes) in text.as_chunks_mut::<5>().0.iter_mut().zip(key.as_chunks::<4>().0) {
        *group = encode_group(*bytes);
    }
    text
}

/// Returns the key in 40 characters, or `None` for another length, a character that is not a digit,
/// or a group beyond 32 bits.
pub fn decode_key(text: &[u8]) -> Option<[u8; 32]> {
    let text: &[u8; KEY_LENGTH] = text.try_into().ok()?;
    let mut key = [0; 32];
    for (bytes, group) in key.as_chunks_mut::<4>().0.iter_mut().zip(text.as_chunks::<5>().0) {
        *bytes = decode_group(*group)?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_example() {
        assert_eq!(encode_group([0x86, 0x4F, 0xD2, 0x6F]), *b"Hello");
        assert_eq!(decode_group(*b"World"), Some([0xB5, 0x59, 0xF7, 0x5B]));
    }

    #[test]
    fn every_digit_survives() {
        for value in (0..=u32::MAX).step_by(104_729) {
            let bytes = value.to_be_bytes();
            assert_eq!(decode_group(encode_group(bytes)), Some(bytes));
        }
    }

    #[test]
    fn keys_go_both_ways() {
        let key: [u8; 32] = std::array::from_fn(|i| (i * 37) as u8);
        let text = encode_key(&key);
        assert_eq!(decode_key(&text), Some(key));
        assert_eq!(decode_key(&text[..39]), None);
        let mut bad = text;
        bad[7] = b' ';
        assert_eq!(decode_key(&bad), None);
        assert_eq!(decode_key(&[b'#'; 40]), None, "a group beyond 32 bits");
    }
}
