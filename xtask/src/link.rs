//! Links the library for systems that this machine cannot run, and checks the result. `cargo run -p xtask -- link TARGET`.
//!
//! For FreeBSD, zig links, because it has that system's library. For macOS, LLVM's linker links with zig's list of that system's
//! symbols. Both tools come from package registries; zig is installed into `target/link`. If the toolchain has the target's standard
//! library (`rustup target add TARGET`), it compiles. Otherwise a Rust with its sources comes from Debian, and the standard library is
//! built together with the library.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::abi;

mod install;

/// Targets with the formats of their libraries.
const TARGETS: [(&str, Format); 3] = [
    ("aarch64-apple-darwin", Format::MachO),
    ("x86_64-apple-darwin", Format::MachO),
    ("x86_64-unknown-freebsd", Format::Elf),
];

/// Oldest macOS that the library supports: the first one on ARM.
const OLDEST_MACOS: &str = "11.0";

/// Packages from PyPI.
const TOOLS: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// Suite of Debian that Rust with its sources comes from.
const DEBIAN: &str = "forky";
const MIRROR: &str = "http://deb.debian.org/debian";

#[derive(Clone, Copy, PartialEq)]
enum Format {
    MachO,
    Elf,
}

/// Links for `target` (`all`: for each target), and prints `link: N passed, N failed, 0 skipped`.
pub fn run(root: &Path, target_folder: &Path, target: &str) -> ExitCode {
    let chosen: Vec<_> = TARGETS.iter().filter(|(name, _)| target == "all" || *name == target).collect();
    if chosen.is_empty() {
        let names = TARGETS.map(|(name, _)| name).join(" ");
        eprintln!("link: unknown target {target}; use {names} or all");
        return ExitCode::from(2);
    }
    let expected = fs::read_to_string(root.join("xtask/functions.txt")).unwrap_or_default();
    let expected: BTreeSet<&str> = expected.lines().filter(|line| !line.is_empty()).collect();
    let mut failed = 0;
    for (name, format) in &chosen {
        let findings = match link(root, &target_folder.join("link"), name, *format) {
            Ok(library) => {
                println!("{name}: {}", library.display());
                let mut findings = check_library(&library, *format, &expected);
                if *format == Format::MachO {
                    findings.extend(install::check(root, &target_folder.join("link"), name));
                }
                findings
            }
            Err(error) => vec![error],
        };
        failed += usize::from(!findings.is_empty());
        for finding in findings {
            println!("{name}: {finding}");
        }
    }
    println!("link: {} passed, {failed} failed, 0 skipped", chosen.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Builds the library, and returns its path.
fn link(root: &Path, folder: &Path, target: &str, format: Format) -> Result<PathBuf, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let tools = python_tools(root, folder)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cargo = Command::new("cargo");
    match format {
        Format::MachO => cargo.args(["rustc", "--crate-type", "staticlib"]),
        Format::Elf => cargo.arg("zigbuild"),
    };
    cargo
        .args(["--release", "--package", "tautline-libzmq", "--lib", "--target", target])
        .current_dir(root)
        .env("PATH", format!("{}:{path}", tools.join("bin").display()))
        .env("CARGO_TARGET_DIR", folder)
        .env("MACOSX_DEPLOYMENT_TARGET", OLDEST_MACOS);
    if !has_standard_library(target)? {
        // The options are unstable. With this variable, a stable compiler accepts them.
        cargo
            .args(["-Zbuild-std=std,panic_unwind"])
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC", debian_rust(root, folder)?);
    }
    run_command(&mut cargo)?;
    let built = folder.join(target).join("release");
    match format {
        Format::MachO => link_dylib(root, &tools, target, &built),
        Format::Elf => Ok(built.join("libzmq.so")),
    }
}

/// Links the archive with the options that rustc passes to macOS's linker. Zig's linker would export more symbols than the functions.
fn link_dylib(root: &Path, tools: &Path, target: &str, built: &Path) -> Result<PathBuf, String> {
    run_command(Command::new(root.join("scripts/need.sh")).args(["lld:lld", "llvm-objdump:llvm"]))?;
    let system = system_stub(tools, built)?;
    let functions = fs::read_to_string(root.join("xtask/functions.txt")).unwrap_or_default();
    let library = built.join("libzmq.dylib");
    let processor = if target.starts_with("aarch64") { "arm64" } else { "x86_64" };
    let mut linker = Command::new("lld");
    linker
        .args(["-flavor", "darwin", "-dylib", "-dead_strip", "-arch", processor])
        .args(["-platform_version", "macos", OLDEST_MACOS, OLDEST_MACOS])
        .args(["-install_name", INSTALL_NAME])
        .args(["-compatibility_version", "8.0.0", "-current_version", "8.5.0"])
        .arg("-headerpad_max_install_names");
    for function in functions.lines().filter(|line| !line.is_empty()) {
        let symbol = format!("_{function}");
        linker.args(["-u", &symbol, "-exported_symbol", &symbol]);
    }
    linker.arg("-o").arg(&library).arg(built.join("libzmq.a")).arg(system);
    run_command(&mut linker)?;
    Ok(library)
}

/// Writes zig's list of the symbols of macOS's library. Removes an architecture that older linkers do not know, and uses the usual
/// name of the other.
fn system_stub(tools: &Path, built: &Path) -> Result<PathBuf, String> {
    const LIST: &str = "ziglang/lib/libc/darwin/libSystem.tbd";
    let versions = fs::read_dir(tools.join("lib")).into_iter().flatten().flatten();
    let list =
        versions.map(|version| version.path().join("site-packages").join(LIST)).find(|file| file.exists());
    let list = list.ok_or_else(|| format!("no {LIST} in {}", tools.display()))?;
    let text = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let stub = built.join("libSystem.tbd");
    fs::write(&stub, without_unknown_targets(&text))
        .map_err(|error| format!("{}: {error}", stub.display()))?;
    Ok(stub)
}

fn without_unknown_targets(list: &str) -> String {
    let mut text = String::new();
    let mut rest = list;
    while let Some(at) = rest.find("arm64e.") {
        let end = rest[at..].find([',', ' ', ']']).map_or(rest.len(), |length| at + length);
        text += rest[..at].trim_end().trim_end_matches(',');
        rest = &rest[end..];
    }
    (text + rest).replace("arm64e-", "arm64-")
}

/// Returns the folder of zig and cargo-zigbuild. Their programs are in `bin`.
fn python_tools(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    let environment = folder.join("tools");
    let complete = environment.join(TOOLS.join("-").replace("==", "-"));
    if !complete.exists() {
        let need = ["python3:python3", "py=ensurepip:python3-venv"];
        run_command(Command::new(root.join("scripts/need.sh")).args(need))?;
        let _ = fs::remove_dir_all(&environment);
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let pip = environment.join("bin/pip");
        run_command(
            Command::new(pip)
                .args(["--quiet", "--disable-pip-version-check", "install", "--only-binary", ":all:"])
                .args(TOOLS),
        )?;
        fs::write(&complete, "").map_err(|error| format!("{}: {error}", complete.display()))?;
    }
    Ok(environment)
}

/// True if the toolchain in use has the standard library of the target.
fn has_standard_library(target: &str) -> Result<bool, String> {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Returns a rustc that has its sources. It is unpacked, not installed: its folder also has the libraries that it needs, with the C library.
fn debian_rust(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    let system = folder.join(DEBIAN);
    let program = folder.join(format!("rustc-{DEBIAN}"));
    if !program.exists() {
        run_command(Command::new(root.join("scripts/need.sh")).arg("mmdebstrap:mmdebstrap"))?;
        let _ = fs::remove_dir_all(&system);
        run_command(
            Command::new("mmdebstrap")
                .args(["--quiet", "--variant=extract", "--include=rustc,rust-src"])
                // The list of a mirror may be past its date of expiry.
                .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
                .arg(DEBIAN)
                .arg(&system)
                .arg(MIRROR),
        )?;
        let usr = system.join("usr");
        let libraries = usr.join("lib/x86_64-linux-gnu");
        let script = format!(
            "#!/bin/sh\nexec '{libraries}/ld-linux-x86-64.so.2' --library-path '{libraries}' '{usr}/bin/rustc' --sysroot '{usr}' \"$@\"\n",
            libraries = libraries.display(),
            usr = usr.display(),
        );
        fs::write(&program, script)
            .and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)))
            .map_err(|error| format!("{}: {error}", program.display()))?;
    }
    Ok(program)
}

/// Returns the faults of the library.
fn check_library(library: &Path, format: Format, expected: &BTreeSet<&str>) -> Vec<String> {
    let both = match format {
        Format::MachO => {
            abi::output("llvm-nm", &["--defined-only", "--extern-only"], library).and_then(|symbols| {
                Ok((symbols, abi::output("llvm-objdump", &["--macho", "--private-headers"], library)?))
            })
        }
        Format::Elf => abi::output("nm", &["-D", "--defined-only"], library)
            .and_then(|symbols| Ok((symbols, abi::output("readelf", &["-d"], library)?))),
    };
    match (both, format) {
        (Err(error), _) => vec![error],
        (Ok((symbols, headers)), Format::MachO) => mach_o(&symbols, &headers, expected),
        (Ok((symbols, headers)), Format::Elf) => {
            let mut findings = abi::exports(expected, &symbols);
            findings.extend(abi::needs(&headers, &FREEBSD));
            findings
        }
    }
}

/// Returns a field of each load command of this name, from the output of llvm-objdump.
fn fields(headers: &str, command: &str, field: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in headers.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["cmd", name] => inside = name == command,
            [name, value, ..] if inside && name == field => found.push(value.to_owned()),
            _ => {}
        }
    }
    found
}

fn mach_o(symbols: &str, headers: &str, expected: &BTreeSet<&str>) -> Vec<String> {
    // macOS puts an underscore before names of C.
    let mut findings = abi::exports(expected, &symbols.replace(" _", " "));
    let fields = |command: &str, field: &str| fields(headers, command, field);
    let name = fields("LC_ID_DYLIB", "name");
    if name != [INSTALL_NAME] {
        findings.push(format!("its name is {name:?}, not {INSTALL_NAME}"));
    }
    let oldest = fields("LC_BUILD_VERSION", "minos");
    if oldest != [OLDEST_MACOS] {
        findings.push(format!("the oldest macOS is {oldest:?}, not {OLDEST_MACOS}"));
    }
    let needed = fields("LC_LOAD_DYLIB", "name");
    if needed.iter().any(|name| !name.starts_with("/usr/lib/")) {
        findings.push(format!("needs other libraries: {}", needed.join(" ")));
    }
    findings
}

fn run_command(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Name under which programs load the library.
const INSTALL_NAME: &str = "@rpath/libzmq.5.dylib";

/// Libraries of FreeBSD that the library may need.
const FREEBSD: [&str; 7] =
    ["libc.so.7", "libthr.so.3", "libm.so.5", "libgcc_s.so.1", "librt.so.1", "libdl.so.1", "libutil.so.9"];

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: &str = "\
Load command 3
          cmd LC_ID_DYLIB
      cmdsize 56
         name @rpath/libzmq.5.dylib (offset 24)
Load command 8
      cmd LC_BUILD_VERSION
    minos 11.0
      sdk 11.0
Load command 9
          cmd LC_LOAD_DYLIB
         name /usr/lib/libSystem.B.dylib (offset 24)
";

    #[test]
    fn targets_that_a_linker_may_not_know_are_left_out() {
        let list = "targets: [ x86_64-macos, arm64e-macos, \n  arm64e.x1-macos, arm64e.x1-maccatalyst ]\nsymbols: [ _a, _b ]\n";
        let without = without_unknown_targets(list);
        assert_eq!(without, "targets: [ x86_64-macos, arm64-macos ]\nsymbols: [ _a, _b ]\n");
    }

    #[test]
    fn deviations_of_a_dylib_are_found() {
        let expected = BTreeSet::from(["zmq_send"]);
        let symbols = "0000000000001000 T _zmq_send\n";
        assert_eq!(mach_o(symbols, HEADERS, &expected), [""; 0]);
        for (what, instead) in [("@rpath/", "/tmp/"), ("minos 11.0", "minos 15.0"), ("/usr/lib/", "@rpath/")]
        {
            assert_eq!(mach_o(symbols, &HEADERS.replace(what, instead), &expected).len(), 1, "{what}");
        }
        assert_eq!(mach_o("0000000000001000 T _rust_send\n", HEADERS, &expected).len(), 2);
    }
}
