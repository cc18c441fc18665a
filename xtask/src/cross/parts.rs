//! The parts that run for each target.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Counts, Run, addon, command, module, taut, windows};
use crate::abi;

/// A part and its function.
pub struct Part {
    pub name: &'static str,
    pub run: fn(&Run) -> Result<Counts, String>,
}

/// All parts, in order of execution.
pub static PARTS: [Part; 9] = [
    Part { name: "build", run: build },
    Part { name: "unit", run: unit },
    Part { name: "abi", run: abi },
    Part { name: "upstream", run: upstream },
    Part { name: "interop", run: interop },
    Part { name: "addon", run: addon::build },
    Part { name: "node", run: addon::exchange },
    Part { name: "module", run: module::build },
    Part { name: "taut", run: taut::build },
];

fn build(run: &Run) -> Result<Counts, String> {
    if run.target.is_windows() {
        return windows::build(run);
    }
    let built = run.out.join("cargo");
    let mut cargo = run.tools.cargo(run.target, "zigbuild");
    cargo.args(["--release", "-p", "tautline-libzmq"]).env("CARGO_TARGET_DIR", &built);
    if run.target.is_packaged() {
        cargo.args(["--features", "tls,names"]);
    }
    run.steps.step("building the library", &mut cargo)?;
    for name in ["libzmq.so", "libzmq.a"] {
        let from = built.join(run.target.triple).join("release").join(name);
        fs::copy(&from, run.out.join(name)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let link = run.out.join("libzmq.so.5");
    let _ = fs::remove_file(&link);
    symlink("libzmq.so", &link).map_err(|error| format!("{}: {error}", link.display()))?;

    let library = run.library()?;
    let (mut checks, mut findings) = abi::check(&run.steps.root, &library);
    if let Some(glibc) = run.target.glibc {
        checks += 1;
        findings.extend(abi::too_new(&library, glibc)?);
    }
    for finding in &findings {
        println!("FAILED {}: {finding}", library.display());
    }
    let failed = u32::try_from(findings.len()).unwrap_or(u32::MAX);
    let checks = u32::try_from(checks).unwrap_or(u32::MAX);
    let mut counts = Counts { passed: checks.saturating_sub(failed), failed, skipped: 0 };
    if let Some(wheel) = run.target.wheel {
        let mut python = run.tools.python();
        python.arg("tests/ship/cross/wheel.py").args([&library, &run.out]).arg(wheel);
        run.steps.step("asking auditwheel", &mut python)?;
        counts += Counts::PASSED;
    }
    Ok(counts)
}

fn unit(run: &Run) -> Result<Counts, String> {
    let mut cargo = run.tools.cargo(run.target, "test");
    cargo.args([
        "-p",
        "tautline-mem",
        "-p",
        "tautline-proto",
        "-p",
        "tautline-io",
        "-p",
        "tautline-queue",
        "-p",
        "tautline-timing",
        "-p",
        "tautline-config",
        "-p",
        "tautline-core",
        "-p",
        "tautline-host",
        "--lib",
        "--no-fail-fast",
    ]);
    cargo.env("CARGO_TARGET_DIR", run.out.join("cargo")).arg("--");
    let hopeless = run.target.expected_failures();
    for (test, reason) in hopeless {
        println!("skipped {test}: {reason}");
        cargo.args(["--skip", test]);
    }
    let mut counts = Counts::of(&run.steps.step("unit tests", &mut cargo)?);
    counts.skipped += u32::try_from(hopeless.len()).unwrap_or(u32::MAX);
    Ok(counts)
}

/// Programs of tests/abi/c, each with its files.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("runtime", &["runtime", "handles", "messages", "traffic", "fork", "drafts", "endings", "routing_ids"]),
    ("descriptors", &["descriptors"]),
    ("resolver", &["resolver"]),
];

fn abi(run: &Run) -> Result<Counts, String> {
    run.library()?;
    if run.target.is_windows() {
        return windows::abi(run);
    }
    if run.tools.runner(run.target).is_none() {
        let suite = run.steps.root.join("tests/abi/c/run.sh");
        return Ok(Counts::of(
            &run.steps.step("tests of the C interface", &mut command([&suite, &run.out]))?,
        ));
    }
    let mut counts = Counts::default();
    for (name, files) in PROGRAMS {
        let program = run.compile(name, sources(files))?;
        run.steps.step(&format!("tests of the C interface: {name}"), &mut run.start(&program))?;
        counts += Counts::PASSED;
    }
    Ok(counts)
}

/// Runs libzmq's own tests for Windows. `make test` runs them on Linux.
fn upstream(run: &Run) -> Result<Counts, String> {
    if run.target.is_windows() {
        run.library()?;
        return windows::upstream(run);
    }
    println!("skipped {}: libzmq's own tests are built for this machine and for Windows", run.target.name());
    Ok(Counts { skipped: 1, ..Counts::default() })
}

fn sources(files: &[&'static str]) -> Vec<String> {
    files.iter().copied().chain(["check"]).map(|file| format!("tests/abi/c/{file}.c")).collect()
}

fn interop(run: &Run) -> Result<Counts, String> {
    run.library()?;
    let root = &run.steps.root;
    let baseline = root.join("target/baseline");
    let script = root.join("scripts/libzmq-baseline.sh");
    run.steps.step("libzmq 4.3.5", &mut command([&script, &baseline]))?;
    let theirs = run.out.join("exchange-theirs");
    let library = baseline.join("libzmq/lib");
    let mut cc = Command::new("cc");
    cc.args(WARNINGS).args(["-I", "include", "tests/ship/cross/exchange.c", "-o"]).arg(&theirs);
    cc.arg(library.join("libzmq.so")).arg(format!("-Wl,-rpath,{}", library.display()));
    run.steps.step("compiling for libzmq", &mut cc)?;
    let ours = run.compile("exchange", ["tests/ship/cross/exchange.c".to_owned()])?;
    let mut words = run.tools.runner(run.target).unwrap_or_default();
    words.push(ours.display().to_string());
    let mut exchanges = Command::new(root.join("tests/ship/cross/interop.sh"));
    exchanges.arg(words.join(" ")).arg(&theirs);
    Ok(Counts::of(&run.steps.step("exchanges with libzmq", &mut exchanges)?))
}

const WARNINGS: [&str; 6] = ["-std=c99", "-D_DEFAULT_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"];

impl Run {
    /// Returns the path of the built library.
    fn library(&self) -> Result<PathBuf, String> {
        let name = if self.target.is_windows() { windows::LIBRARY } else { "libzmq.so" };
        let library = self.out.join(name);
        if library.exists() { Ok(library) } else { Err(format!("{} is not built", library.display())) }
    }

    /// Compiles a program against the library.
    pub fn compile(&self, name: &str, files: impl IntoIterator<Item = String>) -> Result<PathBuf, String> {
        let program = self.out.join(name).with_extension(if self.target.is_windows() { "exe" } else { "" });
        let mut cc = self.tools.cc(self.target);
        cc.args(WARNINGS).args(["-I", "include"]).args(files).arg("-o").arg(&program);
        if self.target.is_windows() {
            cc.arg(self.out.join(windows::IMPORT_LIBRARY)).args(windows::LIBRARIES);
        } else {
            cc.arg(self.out.join("libzmq.so")).args(["-pthread", "-ldl"]);
            cc.arg(format!("-Wl,-rpath,{}", self.out.display()));
        }
        self.steps.step(&format!("compiling {name}"), &mut cc)?;
        Ok(program)
    }

    pub fn start(&self, program: &Path) -> Command {
        let mut words = self.tools.runner(self.target).unwrap_or_default();
        words.push(program.display().to_string());
        command(words)
    }
}
