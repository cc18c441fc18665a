//! What `cargo xtask cross` needs and this machine may lack: installed into `target/cross`, but for Debian's packages.
//!
//! zig links for every target, and has every glibc's symbols. The standard library of a target is the installed compiler's, if it has it
//! (`rustup target add`); otherwise everything is from Debian: its Rust compiler, the standard libraries of its processors, the sources
//! for musl, and the C libraries to run programs on. They are unpacked, not installed, so the compiler is started by its own loader.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Steps;
use super::target::Target;

/// Of PyPI.
const PYTHON: [&str; 3] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1", "auditwheel==6.8.2"];
/// The release that is unpacked: the first whose Rust is newer than our oldest.
const DEBIAN: &str = "forky";
const MIRROR: &str = "http://deb.debian.org/debian";
/// Its packages for this machine, and for the targets.
const PACKAGES: &str = "rustc,cargo,rust-src,libstd-rust-dev:arm64,libstd-rust-dev:armhf,libstd-rust-dev:riscv64,libstd-rust-dev:s390x,\
                        musl:amd64,musl:arm64";

/// Where they are.
pub struct Tools {
    /// zig, as `python -m ziglang`, and cargo-zigbuild.
    python: PathBuf,
    /// Debian, unpacked: for a target that the installed compiler cannot do, or that does not run here as it is.
    debian: Option<PathBuf>,
    /// Its compiler does it, not the installed one.
    borrowed: bool,
}

impl Tools {
    /// Installs what is missing for `target`; `directory` is for what is not Debian's.
    pub fn prepare(steps: &Steps, directory: &Path, target: &Target) -> Result<Self, String> {
        let borrowed = !is_installed(target);
        let unpacks = borrowed || target.emulator.is_some() || target.glibc.is_none();
        let mut wanted = vec!["cargo:cargo", "cc:gcc", "readelf:binutils", "py=ensurepip:python3-venv"];
        let emulator = target.emulator.map(|emulator| format!("{emulator}:qemu-user-static"));
        wanted.extend(emulator.as_deref());
        if unpacks {
            wanted.push("mmdebstrap:mmdebstrap");
            wanted.push("file=/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring");
        }
        let mut need = Command::new(steps.root.join("scripts/need.sh"));
        need.args(wanted);
        if !need.status().is_ok_and(|status| status.success()) {
            return Err("tools are missing".to_owned());
        }
        let python = directory.join("python");
        install_python(steps, &python)?;
        let debian = unpacks.then(|| directory.join("debian"));
        if let Some(debian) = &debian {
            unpack_debian(steps, debian)?;
        }
        Ok(Tools { python: python.join("bin"), debian, borrowed })
    }

    /// `cargo-zigbuild`, as the compiler for `target`.
    pub fn cargo(&self, target: &Target, command: &str) -> Command {
        let mut cargo = Command::new(self.python.join("cargo-zigbuild"));
        cargo.arg(command).arg("--target").arg(target.name());
        // Those of the cargo that has started this program.
        for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
            cargo.env_remove(variable);
        }
        let mut path = vec![self.python.clone()];
        if self.borrowed
            && let Some(debian) = &self.debian
        {
            path.insert(0, debian.join("run"));
            cargo.env("RUSTC", debian.join("run/rustc"));
            if target.glibc.is_none() {
                // Debian has musl, but no standard library for it: it is built along, which only an unstable option does.
                cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_unwind,test,proc_macro");
            }
        }
        if target.glibc.is_none() {
            // Otherwise there is no shared library, nor does anybody say so.
            cargo.env(target.variable("RUSTFLAGS"), "-C target-feature=-crt-static");
        }
        if let Some(runner) = self.runner(target) {
            cargo.env(target.variable("RUNNER"), runner.join(" "));
        }
        path.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
        if let Ok(path) = std::env::join_paths(path) {
            cargo.env("PATH", path);
        }
        cargo
    }

    /// The C compiler for `target`.
    pub fn cc(&self, target: &Target) -> Command {
        let mut cc = Command::new(self.python.join("python"));
        cc.args(["-m", "ziglang", "cc", "-target", &target.for_zig()]);
        cc
    }

    /// The Python that has auditwheel.
    pub fn python(&self) -> Command {
        Command::new(self.python.join("python"))
    }

    /// What starts a program of `target`, its first words. `None`: nothing has to.
    pub fn runner(&self, target: &Target) -> Option<Vec<String>> {
        let system = self.debian.as_deref()?.join("usr");
        if let Some(emulator) = target.emulator {
            return Some(vec![emulator.to_owned(), "-L".to_owned(), system.display().to_string()]);
        }
        let loader = target.musl_loader()?;
        Some(vec![system.join("lib").join(loader).display().to_string()])
    }
}

/// Whether the compiler that is installed has the standard library of `target`.
fn is_installed(target: &Target) -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target.triple]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn install_python(steps: &Steps, directory: &Path) -> Result<(), String> {
    let stamp = directory.join("stamp");
    let wanted = PYTHON.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|has| has == wanted) {
        return Ok(());
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(directory);
    steps.step("making a virtual environment", &mut venv)?;
    let mut pip = Command::new(directory.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet"]).args(PYTHON);
    steps.step("installing zig and cargo-zigbuild", &mut pip)?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn unpack_debian(steps: &Steps, directory: &Path) -> Result<(), String> {
    let stamp = directory.join("stamp");
    let wanted = format!("{DEBIAN} {PACKAGES}");
    if fs::read_to_string(&stamp).is_ok_and(|has| has == wanted) {
        return Ok(());
    }
    let describe = |error: std::io::Error| format!("{}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(describe)?;
    }
    let mut unpack = Command::new("mmdebstrap");
    // Mirrors of a release in the making may be older than they should.
    unpack.args(["--variant=extract", "--aptopt=Acquire::Check-Valid-Until \"false\""]);
    unpack.args(["--architectures=amd64,arm64,armhf,riscv64,s390x", "--include", PACKAGES, DEBIAN]);
    unpack.arg(directory).arg(MIRROR);
    steps.step("unpacking Rust and the C libraries of Debian (some 500 MB)", &mut unpack)?;
    let run = directory.join("run");
    fs::create_dir_all(&run).map_err(describe)?;
    for tool in ["rustc", "cargo", "rustdoc"] {
        let usr = directory.join("usr");
        let text = format!(
            "#!/bin/sh\nexec '{usr}/lib64/ld-linux-x86-64.so.2' --library-path '{usr}/lib/x86_64-linux-gnu' \
             --argv0 '{usr}/bin/{tool}' '{usr}/bin/{tool}' \"$@\"\n",
            usr = usr.display()
        );
        let script = run.join(tool);
        fs::write(&script, text).map_err(describe)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(describe)?;
    }
    fs::write(&stamp, wanted).map_err(describe)
}
