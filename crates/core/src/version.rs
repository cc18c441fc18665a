//! Which Tautline this is: for programs that ask, and for `strings` on the library.

use std::hint::black_box;

/// What stands in the shared library, between two NULs, and outlives `strip`.
static MARK: &str = concat!("\0Tautline ", env!("CARGO_PKG_VERSION"), "\0");

/// The version as text. Read from the mark, so that the linker keeps it.
pub fn version() -> &'static str {
    // Not known to the compiler, which would else copy the text to where it is used.
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
        Err(_) => panic!("a part of the version is no number"),
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
