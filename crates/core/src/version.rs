//! Version of this library, for programs that ask and for `strings` on the library file.

use std::hint::black_box;

/// Version text in the shared library, between two NULs. `strip` does not remove it.
static MARK: &str = concat!("\0Tautline ", env!("CARGO_PKG_VERSION"), "\0");

/// The version as text. Read from the mark, so that the linker keeps the mark.
pub fn version() -> &'static str {
    // `black_box` hides the text from the compiler, which would otherwise copy it to its uses.
    let mark = black_box(MARK);
    mark.trim_matches('\0').split_once(' ').map_or("", |(_, version)| version)
}

/// The version as one number, as ZMQ_MAKE_VERSION makes it: 10000 times the first part, 100 times
/// the second, and the third.
pub(crate) const NUMBER: i32 = 10_000 * part(env!("CARGO_PKG_VERSION_MAJOR"))
    + 100 * part(env!("CARGO_PKG_VERSION_MINOR"))
    + part(env!("CARGO_PKG_VERSION_PATCH"));

const fn part(digits: &str) -> i32 {
    match i32::from_str_radix(digits, 10) {
        Ok(part) => part,
        Err(_) => panic!("a part of the version is not a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_are_those_of_the_crate() {
        assert_eq!(version(), env!("CARGO_PKG_VERSION"));
        let mut parts = version().split(['.', '-']).map(|part| part.parse::<i32>().unwrap());
        let mut next = || parts.next().unwrap();
        assert_eq!(NUMBER, 10_000 * next() + 100 * next() + next());
    }
}
