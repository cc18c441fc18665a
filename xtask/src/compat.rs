//! Checks that the pages of `docs/reference` name every constant and function of `zmq.h`, with the same numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Macros that only the header itself uses.
const INTERNAL: [&str; 9] = [
    "ZMQ_VERSION_MAJOR",
    "ZMQ_VERSION_MINOR",
    "ZMQ_VERSION_PATCH",
    "ZMQ_MAKE_VERSION",
    "ZMQ_DEFINED_STDINT",
    "ZMQ_EXPORT",
    "ZMQ_HAS_CAPABILITIES",
    "ZMQ_HAVE_TIMERS",
    "ZMQ_HAVE_POLLER",
];

/// Returns constants and functions that the pages leave out, and rows with another number.
pub fn check(root: &Path) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    findings(&read("include/zmq.h"), &read("xtask/functions.txt"), &pages(root))
}

/// Returns the text of all pages of the reference.
fn pages(root: &Path) -> String {
    let entries = fs::read_dir(root.join("docs/reference")).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap_or_default() + "\n").collect()
}

fn findings(header: &str, functions: &str, page: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let words: std::collections::BTreeSet<&str> =
        page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let constants = constants(header);
    for name in constants.keys().copied().chain(functions.split_whitespace()) {
        let known = words.contains(name)
            // A table of names with a long common prefix shows only their ends.
            || name.strip_prefix("ZMQ_PROTOCOL_ERROR_").is_some_and(|rest| words.contains(rest));
        if !known && !INTERNAL.contains(&name) {
            findings.push(format!("docs/reference does not describe {name}"));
        }
    }
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, value, ..] = cells.as_slice() else { continue };
        let name = name.split(' ').next().unwrap_or_default();
        let full = format!("ZMQ_PROTOCOL_ERROR_{name}");
        let defined = constants.get(name).or_else(|| constants.get(full.as_str()));
        if let (Some(Some(defined)), Some(value)) = (defined, number(value))
            && *defined != value
        {
            findings.push(format!("docs/reference says {value} of {name}, zmq.h {defined}"));
        }
    }
    findings
}

/// Returns the names that the header defines for users, with their values if these are plain numbers.
fn constants(header: &str) -> BTreeMap<&str, Option<i64>> {
    let mut constants = BTreeMap::new();
    for line in header.lines() {
        let mut words = line.trim_start_matches('#').split_whitespace();
        if !line.starts_with('#') || words.next() != Some("define") {
            continue;
        }
        let name = words.next().unwrap_or_default();
        let name = name.split('(').next().unwrap_or_default();
        if name.starts_with("ZMQ_") {
            constants.insert(name, words.next().and_then(number));
        }
    }
    constants
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::findings;

    #[test]
    fn missing_or_differing_constant_is_found() {
        let header =
            "#define ZMQ_A 1\n#define ZMQ_B 0x10\n#define ZMQ_C 3\n#define ZMQ_PROTOCOL_ERROR_X 0x2\n";
        let page = "`zmq_f`\n| ZMQ_A | 1 |\n| ZMQ_B (draft) | 17 | int |\n| X | 0x3 |\n";
        assert_eq!(
            findings(header, "zmq_f\nzmq_g\n", page),
            [
                "docs/reference does not describe ZMQ_C",
                "docs/reference does not describe zmq_g",
                "docs/reference says 17 of ZMQ_B, zmq.h 16",
                "docs/reference says 3 of X, zmq.h 2",
            ]
        );
    }
}
