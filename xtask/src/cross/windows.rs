//! Differences for Windows: the library is called `libzmq.dll`, and programs are linked with an import library for that name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Counts, Run};
use crate::abi;

/// Name of the library that programs load.
pub const LIBRARY: &str = "libzmq.dll";
/// Name of the import library that programs are linked with.
pub const IMPORT_LIBRARY: &str = "libzmq.dll.a";
/// Other linker options of programs that use the library.
pub const LIBRARIES: [&str; 3] = ["-static", "-lpthread", "-lws2_32"];

/// Libraries of Windows 10 and later, in lower case. The library may need no others.
const SYSTEM: [&str; 10] = [
    "advapi32.dll",
    "api-ms-win-core-synch-l1-2-0.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "iphlpapi.dll",
    "kernel32.dll",
    "msvcrt.dll",
    "ntdll.dll",
    "userenv.dll",
    "ws2_32.dll",
];

pub fn build(run: &Run) -> Result<Counts, String> {
    let built = run.out.join("cargo");
    let mut cargo = run.tools.cargo(run.target, "build");
    cargo.args(["--release", "-p", "tautline-libzmq"]).env("CARGO_TARGET_DIR", &built);
    run.steps.step("building the library", &mut cargo)?;
    let release = built.join(run.target.triple).join("release");
    for (from, to) in [("zmq.dll", LIBRARY), ("libzmq.a", "libzmq.a")] {
        let from = release.join(from);
        fs::copy(&from, run.out.join(to)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let functions = fs::read_to_string(run.steps.root.join("xtask/functions.txt")).unwrap_or_default();
    let functions: BTreeSet<&str> = functions.lines().filter(|line| !line.is_empty()).collect();
    write_import_library(run, &functions)?;

    let headers = abi::output("x86_64-w64-mingw32-objdump", &["-p"], &run.out.join(LIBRARY))?;
    let mut findings = abi::exports(&functions, &exported(&headers));
    let needed = headers.lines().filter_map(|line| line.trim().strip_prefix("DLL Name: "));
    for name in needed.filter(|name| !SYSTEM.contains(&name.to_lowercase().as_str())) {
        findings.push(format!("needs {name}"));
    }
    for finding in &findings {
        println!("FAILED {LIBRARY}: {finding}");
    }
    let failed = u32::try_from(findings.len()).unwrap_or(u32::MAX);
    // One check per function, one for other functions, one for the needed libraries.
    let checks = u32::try_from(functions.len() + 2).unwrap_or(u32::MAX);
    Ok(Counts { passed: checks.saturating_sub(failed), failed, skipped: 0 })
}

/// Writes an import library. The one from rustc has the name that Cargo gives to the library.
fn write_import_library(run: &Run, functions: &BTreeSet<&str>) -> Result<(), String> {
    let definitions = run.out.join("libzmq.def");
    let mut text = format!("LIBRARY {LIBRARY}\nEXPORTS\n");
    for function in functions {
        text += &format!("    {function}\n");
    }
    fs::write(&definitions, text).map_err(|error| format!("{}: {error}", definitions.display()))?;
    let mut dlltool = Command::new("x86_64-w64-mingw32-dlltool");
    dlltool.arg("-d").arg(&definitions).args(["-D", LIBRARY, "-l"]).arg(run.out.join(IMPORT_LIBRARY));
    run.steps.step("making the import library", &mut dlltool)?;
    Ok(())
}

/// Returns the exported names of a library, one a line.
fn exported(headers: &str) -> String {
    let table = headers.split("[Ordinal/Name Pointer] Table").nth(1).unwrap_or_default();
    let lines = table.lines().skip(1).take_while(|line| line.trim_start().starts_with('['));
    lines.filter_map(|line| line.split_whitespace().last()).collect::<Vec<_>>().join("\n")
}

/// Programs, each with its files in `tests`.
const PROGRAMS: [(&str, &[&str]); 2] = [
    (
        "runtime",
        &["abi/runtime", "abi/handles", "abi/messages", "abi/endings", "abi/routing_ids", "abi/check"],
    ),
    ("windows", &["cross/windows", "abi/handles", "abi/check"]),
];

pub fn abi(run: &Run) -> Result<Counts, String> {
    let mut counts = Counts::default();
    for (name, files) in PROGRAMS {
        let files = files.iter().map(|file| format!("tests/{file}.c"));
        let program = run.compile(name, files)?;
        run.steps.step(&format!("tests of the C interface: {name}"), &mut run.start(&program))?;
        counts += Counts::PASSED;
    }
    Ok(counts)
}

/// libzmq's own tests, built with MinGW and run under wine.
pub fn upstream(run: &Run) -> Result<Counts, String> {
    let mut suite = Command::new(run.steps.root.join("tests/wire/upstream/windows.sh"));
    // In `target/cross/TARGET`, because the script searches wine's folder in `target/cross`.
    let target = run.out.parent().and_then(Path::parent).unwrap_or(&run.out);
    suite.arg(&run.out).env("CARGO_TARGET_DIR", target);
    Ok(Counts::of(&run.steps.step("tests of libzmq", &mut suite)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_read_from_what_objdump_prints() {
        let text = "Export Address Table -- Ordinal Base 1\n\t[   0] +base[   1] 1000 Export RVA\n\n\
                    [Ordinal/Name Pointer] Table\n\t[   0] zmq_bind\n\t[   1] zmq_close\n\nThe Function Table\n\t[  3] no\n";
        assert_eq!(exported(text), "zmq_bind\nzmq_close");
    }
}
