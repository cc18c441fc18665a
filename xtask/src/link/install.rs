//! Runs `make install` with a library for macOS on another system: into a folder, whose files are checked.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{abi, fields, run_command};

const LIBRARY: &str = "libzmq.5.dylib";

/// Installs the library for `target` into `folder`. Returns the faults of the result.
pub fn check(root: &Path, folder: &Path, target: &str) -> Vec<String> {
    let place = folder.join(target).join("installed");
    let mut found = Vec::new();
    match check_installed(root, &folder.join(target), &place) {
        Ok(findings) => found.extend(findings),
        Err(error) => found.push(error),
    }
    found.into_iter().map(|finding| format!("make install: {finding}")).collect()
}

fn check_installed(root: &Path, built: &Path, place: &Path) -> Result<Vec<String>, String> {
    let _ = fs::remove_dir_all(place);
    let mut install = Command::new(root.join("packaging/install.sh"));
    install
        .arg("install")
        .env("SYSTEM", "Darwin")
        .env("CARGO_TARGET_DIR", built)
        .env("DESTDIR", place)
        .env("PREFIX", "/usr/local")
        .env("PATH", with_llvm()?)
        .env_remove("LIBDIR")
        .env_remove("DRAFTS");
    run_command(&mut install)?;
    let lib = place.join("usr/local/lib");
    let read = |name: &str| {
        fs::read_to_string(lib.join(name)).map_err(|error| format!("{}: {error}", lib.join(name).display()))
    };
    let mut findings = Vec::new();
    let name = fields(
        &abi::output("llvm-objdump", &["--macho", "--private-headers"], &lib.join(LIBRARY))?,
        "LC_ID_DYLIB",
        "name",
    );
    if name != [format!("/usr/local/lib/{LIBRARY}")] {
        findings.push(format!("programs would ask for {name:?}"));
    }
    if !fs::read_link(lib.join("libzmq.dylib")).is_ok_and(|to| to == Path::new(LIBRARY)) {
        findings.push(format!("libzmq.dylib does not lead to {LIBRARY}"));
    }
    let cmake = read("cmake/ZeroMQ/ZeroMQConfig.cmake")?;
    if !cmake.contains("/libzmq.dylib\"") || cmake.contains("libzmq.so") || cmake.contains('@') {
        findings.push("ZeroMQConfig.cmake does not name libzmq.dylib".to_owned());
    }
    let flags = read("pkgconfig/libzmq.pc")?;
    if !flags.contains("-lzmq") || flags.contains("-lrt") || flags.contains('@') {
        findings.push(format!("libzmq.pc has other flags than macOS: {flags}"));
    }
    let mut uninstall = Command::new(root.join("packaging/install.sh"));
    uninstall.arg("uninstall").env("SYSTEM", "Darwin").env("DESTDIR", place).env("PREFIX", "/usr/local");
    run_command(&mut uninstall)?;
    if place.exists() {
        findings.push(format!("make uninstall leaves {}", place.display()));
    }
    Ok(findings)
}

/// Returns a PATH that ends with LLVM's own folder. Debian gives only some of its programs a name without a version.
fn with_llvm() -> Result<OsString, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = env::split_paths(&path).collect();
    let tool = folders.iter().map(|folder| folder.join("llvm-objdump")).find(|file| file.exists());
    let tool = tool.and_then(|file| fs::canonicalize(file).ok()).ok_or("there is no llvm-objdump")?;
    folders.extend(tool.parent().map(Path::to_owned));
    env::join_paths(folders).map_err(|error| error.to_string())
}
