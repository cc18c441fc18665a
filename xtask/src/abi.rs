//! What the built library shows to the dynamic linker: the functions of zmq.h, nothing else, under the right name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The name that programs linked against libzmq ask the loader for.
const SONAME: &str = "libzmq.so.5";

/// What the library may need from the system; anything else would be missing on somebody's machine.
const SYSTEM: [&str; 9] = [
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Checks `library` against `xtask/functions.txt`; prints the findings and a summary line.
pub fn run(root: &Path, library: &Path) -> ExitCode {
    let functions = fs::read_to_string(root.join("xtask/functions.txt")).unwrap_or_default();
    let expected: BTreeSet<&str> = functions.lines().filter(|line| !line.is_empty()).collect();
    let (symbols, dynamic) =
        match (output("nm", &["-D", "--defined-only"], library), output("readelf", &["-d"], library)) {
            (Ok(symbols), Ok(dynamic)) => (symbols, dynamic),
            (Err(error), _) | (_, Err(error)) => {
                println!("{error}\nexports: 0 passed, 1 failed, 0 skipped");
                return ExitCode::FAILURE;
            }
        };
    let findings = findings(&expected, &symbols, &dynamic);
    for finding in &findings {
        println!("{}: {finding}", library.display());
    }
    // One check per function, and that there are no others, the soname and the needed libraries.
    let checks = expected.len() + 3;
    println!(
        "exports: {} passed, {} failed, 0 skipped",
        checks.saturating_sub(findings.len()),
        findings.len()
    );
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a tool says of a library.
pub fn output(tool: &str, arguments: &[&str], library: &Path) -> Result<String, String> {
    let output = Command::new(tool)
        .args(arguments)
        .arg(library)
        .output()
        .map_err(|error| format!("{tool}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{tool}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn findings(expected: &BTreeSet<&str>, symbols: &str, dynamic: &str) -> Vec<String> {
    let mut findings = exports(expected, symbols);
    findings.extend(needs(dynamic, &SYSTEM));
    findings
}

/// Findings in a list of symbols, whose names are the last words of its lines: functions that are missing, and what is not one.
pub fn exports(expected: &BTreeSet<&str>, symbols: &str) -> Vec<String> {
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(|symbol| symbol.split('@').next().unwrap_or(symbol))
        .collect();
    let mut findings: Vec<String> =
        expected.difference(&exported).map(|name| format!("{name} is not exported")).collect();
    let others: Vec<&str> = exported.into_iter().filter(|name| !name.starts_with("zmq_")).collect();
    if !others.is_empty() {
        let some = &others[..others.len().min(10)];
        findings.push(format!("exports {} other symbols, such as {}", others.len(), some.join(" ")));
    }
    findings
}

/// Findings in the output of `readelf -d`: another soname, libraries that are not the system's.
pub fn needs(dynamic: &str, system: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    let soname = bracketed(dynamic, "(SONAME)");
    if soname != [SONAME] {
        findings.push(format!("the soname is {soname:?}, not {SONAME}"));
    }
    let foreign: Vec<&str> =
        bracketed(dynamic, "(NEEDED)").into_iter().filter(|name| !system.contains(name)).collect();
    if !foreign.is_empty() {
        findings.push(format!("needs other libraries: {}", foreign.join(" ")));
    }
    findings
}

/// The `[name]` of each line of `readelf -d` with this tag.
fn bracketed<'a>(dynamic: &'a str, tag: &str) -> Vec<&'a str> {
    let lines = dynamic.lines().filter(|line| line.contains(tag));
    lines.filter_map(|line| line.split_once('[')?.1.split(']').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_found() {
        let expected = BTreeSet::from(["zmq_send", "zmq_recv"]);
        let dynamic =
            " 0x1 (NEEDED) Shared library: [libc.so.6]\n 0xe (SONAME) Library soname: [libzmq.so.5]\n";
        let symbols = "0001 T zmq_send\n0002 T zmq_recv\n0003 T zmq_draft\n";
        assert!(findings(&expected, symbols, dynamic).is_empty());
        assert_eq!(findings(&expected, "0001 T zmq_send\n0002 T rust_x\n", "").len(), 3);
        assert_eq!(findings(&expected, symbols, &dynamic.replace("libc.so.6", "libsodium.so")).len(), 1);
    }
}
