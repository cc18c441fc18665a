//! Checks the dynamic symbols of the built library: it exports the functions of zmq.h only, under the right soname.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Soname that programs linked with libzmq load.
const SONAME: &str = "libzmq.so.5";

/// Libraries that every supported system has. The library may need no others.
const SYSTEM: [&str; 13] = [
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "ld-linux-armhf.so.3",
    "ld-linux-riscv64-lp64d.so.1",
    "ld64.so.1",
    // musl.
    "libc.so",
];

/// Compares `library` with `xtask/functions.txt`. Prints the findings and a summary line.
pub fn run(root: &Path, library: &Path) -> ExitCode {
    let (checks, findings) = check(root, library);
    for finding in &findings {
        println!("{}: {finding}", library.display());
    }
    println!(
        "exports: {} passed, {} failed, 0 skipped",
        checks.saturating_sub(findings.len()),
        findings.len()
    );
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Number of checks, and their findings.
pub fn check(root: &Path, library: &Path) -> (usize, Vec<String>) {
    let functions = fs::read_to_string(root.join("xtask/functions.txt")).unwrap_or_default();
    let expected: BTreeSet<&str> = functions.lines().filter(|line| !line.is_empty()).collect();
    let (symbols, dynamic) =
        match (output("nm", &["-D", "--defined-only"], library), output("readelf", &["-d"], library)) {
            (Ok(symbols), Ok(dynamic)) => (symbols, dynamic),
            (Err(error), _) | (_, Err(error)) => return (1, vec![error]),
        };
    // One check per function. Three more: other symbols, the soname, the needed libraries.
    (expected.len() + 3, findings(&expected, &symbols, &dynamic))
}

/// Returns the symbols of `library` that `glibc`, a version such as `2.17`, may not have: symbols with a newer version, and strong
/// symbols without a version.
pub fn too_new(library: &Path, glibc: &str) -> Result<Vec<String>, String> {
    Ok(newer(&output("readelf", &["--dyn-syms", "-W"], library)?, glibc))
}

fn newer(symbols: &str, glibc: &str) -> Vec<String> {
    let number =
        |version: &str| -> Vec<u32> { version.split('.').map_while(|part| part.parse().ok()).collect() };
    let mut findings = Vec::new();
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Number, value, size, type, binding, visibility, section, name.
        let [_, _, _, _, binding, _, "UND", name, ..] = words.as_slice() else { continue };
        match name.split_once('@') {
            None if *binding == "GLOBAL" => findings.push(format!("{name} has no version")),
            Some((_, version)) => {
                let version = version.trim_start_matches('@');
                if version.strip_prefix("GLIBC_").is_none_or(|version| number(version) > number(glibc)) {
                    findings.push(format!("{name} is newer than glibc {glibc}"));
                }
            }
            None => {}
        }
    }
    findings
}

/// Runs a tool on a library and returns its output.
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

/// Returns missing functions and other symbols, from a list with a symbol name at the end of each line.
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

/// Returns findings in the output of `readelf -d`: a wrong soname, and needed libraries that some systems lack.
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

/// Returns the `[name]` of each line of `readelf -d` with this tag.
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

    #[test]
    fn symbols_that_an_old_glibc_lacks_are_found() {
        let symbols = "\
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND send@GLIBC_2.2.5 (2)
     2: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND gettid
     3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND clock_gettime@GLIBC_2.17 (3)
     4: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND getrandom
     5: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND dlsym@GLIBC_2.34 (4)
     6: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND _Unwind_Resume@GCC_3.0 (5)
     7: 0000000000012340    12 FUNC    GLOBAL DEFAULT   12 zmq_send
";
        let found = newer(symbols, "2.17");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("getrandom") && found[1].starts_with("dlsym") && found[2].contains("Unwind")
        );
        assert_eq!(newer(symbols, "2.34").len(), 2);
    }
}
