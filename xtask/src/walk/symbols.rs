//! Finds the functions of instructions with addr2line: also those that were inlined.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// For an address, the files of the functions of the workspace that it lies in, the outermost first.
pub type Functions = HashMap<u64, Vec<String>>;

/// Returns the functions of each address.
pub fn functions(library: &Path, addresses: &BTreeSet<u64>, root: &Path) -> Result<Functions, String> {
    let mut child = Command::new("addr2line")
        .args(["--addresses", "--functions", "--inlines", "--demangle", "--exe"])
        .arg(library)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("addr2line: {error}"))?;
    let mut input = child.stdin.take().ok_or("addr2line: no input")?;
    let asked: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(asked.as_bytes()));
    let output = child.wait_with_output().map_err(|error| format!("addr2line: {error}"))?;
    writer.join().map_err(|_| "addr2line: no writer")?.map_err(|error| format!("addr2line: {error}"))?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout), &format!("{}/", root.display())))
}

/// Reads the output of addr2line: the address, then for each function, the innermost first, its name and its `file:line`.
fn parse(text: &str, root: &str) -> Functions {
    let mut found = Functions::new();
    let mut lines = text.lines();
    let (mut address, mut chain) = (None, Vec::new());
    while let Some(line) = lines.next() {
        if let Some(next) = line.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            store(&mut found, address.replace(next), &mut chain);
        } else if let Some(place) = lines.next() {
            // `line` is the name of the function.
            let (file, number) = place.split_once(':').unwrap_or_default();
            let inside = file.strip_prefix(root).filter(|file| file.starts_with("crates/"));
            // Code that the compiler has added has the line 0, or no line.
            let has_line = number.starts_with(|digit| matches!(digit, '1'..='9'));
            chain.extend(inside.filter(|_| has_line).map(str::to_owned));
        }
    }
    store(&mut found, address, &mut chain);
    found
}

fn store(found: &mut Functions, address: Option<u64>, chain: &mut Vec<String>) {
    chain.reverse();
    if let Some(address) = address {
        found.insert(address, std::mem::take(chain));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlined_functions_follow_their_callers() {
        let text = "0x0000000000000010\ninner\n/r/crates/a/src/b.rs:3\nmap\n/rustc/x/option.rs:1\nouter\n/r/crates/a/src/c.rs:9 (discriminator 2)\n0x0000000000000020\n??\n??:0\n";
        let found = parse(text, "/r/");
        assert_eq!(found[&0x10], ["crates/a/src/c.rs", "crates/a/src/b.rs"]);
        assert!(found[&0x20].is_empty());
    }
}
