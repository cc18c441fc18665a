//! Counts the source files that a call enters: `cargo xtask walk [--check | --write] [CASE...]`.
//!
//! A *walk* is one call of the C interface and all that the library does in it: the first `zmq_send` of a PUSH socket over tcp, whose peer is
//! connected, and so on ([`CASES`], `bench/budget/walk.c`). Valgrind's tool lackey writes down each instruction, in order. (Callgrind
//! adds up the calls, so it does not know their order.) The library is built with the profile `walk`: without optimisation each call of
//! the source is a call of the program, so the counts do not depend on the compiler's inlining. Functions that are inlined anyway
//! (`#[inline(always)]`) count like others. `--library FILE` walks through another build: an optimised one has fewer files.
//!
//! The counts are defined by the trace alone. Only files of `crates/` count. Functions of the standard library, of other
//! packages and of the system have no file. If they call a function of the workspace, their own caller counts as its caller.
//!
//! - A file is *entered* if one of its functions, inlined or not, executes an instruction.
//! - A file is on the *spine* if it is entered, and one of its functions is on the call stack when the message or the connection is
//!   handed over: at an access to the caller's message, or at a system call that sends, receives, reads, writes or connects.
//! - A *return* is a pair of spine files, A and B, where a function of A calls one of B although the walk has entered B before.
//!   Repeated calls from A to B are one return. A function that ends and goes back to its caller does not count.
//!
//! The walk of a call ends when the call returns. `connect` goes on, on the I/O thread, until the first byte of the greeting is sent.
//! A steady case has many walks in a row: the most frequent one counts. Under Valgrind the library is slow and system calls are not, so a
//! steady `zmq_send` writes each message at once.
//!
//! `bench/budget/walk.txt` has the counts and the files. `--check` fails if a count has grown, and names the new files and returns.
//! `scripts/budget.sh` calls it.

mod count;
mod ratchet;
mod symbols;
mod trace;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use self::count::Counts;
use self::trace::{Code, Reader};
use crate::report;

const CASES: [&str; 6] =
    ["first_send", "steady_send", "empty_recv", "waiting_recv", "steady_recv", "connect"];

/// Cases whose counts depend on the clock: a waiting receiver that spins for too long falls asleep. `--check` leaves them out.
const UNCHECKED: [&str; 1] = ["waiting_recv"];

/// Table of the counts.
const TABLE: &str = "bench/budget/walk.txt";

/// A walk that is longer than the table allows is repeated so often: a busy machine may have lengthened it.
const ATTEMPTS: usize = 3;

enum Action {
    Print,
    Check,
    Write,
}

/// Walks the named cases, by default all.
pub fn run(root: &Path, target: &Path, arguments: &[&str]) -> ExitCode {
    let (mut action, mut library, mut cases) = (Action::Print, None, Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--check" => action = Action::Check,
            "--write" => action = Action::Write,
            "--library" => library = words.next().map(|file| root.join(file)),
            case if CASES.contains(&case) => cases.push(case),
            other => {
                eprintln!("walk: unknown argument `{other}`. Cases: {}", CASES.join(" "));
                return ExitCode::from(2);
            }
        }
    }
    if cases.is_empty() {
        cases = CASES.to_vec();
        if let Action::Check = action {
            cases.retain(|case| !UNCHECKED.contains(case));
        }
    }
    match Walker::new(root, target, library.as_deref()).and_then(|walker| walker.act(&action, &cases)) {
        Ok(code) => code,
        Err(reason) => {
            eprintln!("walk: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Folder with the library and the program that calls it.
struct Walker<'a> {
    root: &'a Path,
    folder: std::path::PathBuf,
}

impl Walker<'_> {
    fn new<'a>(root: &'a Path, target: &Path, library: Option<&Path>) -> Result<Walker<'a>, String> {
        if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            return Err("runs only on Linux for x86-64".into());
        }
        let folder = target.join("walk");
        let built = folder.join("libzmq.so");
        if library.is_none() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let arguments = ["build", "--quiet", "--profile", "walk", "-p", "tautline-libzmq"];
            succeed(Command::new(cargo).args(arguments).current_dir(root))?;
        }
        let library = library.unwrap_or(&built);
        let folder = folder.join("calls");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let linked = folder.join("libzmq.so.5");
        fs::copy(library, &linked).map_err(|error| format!("{}: {error}", library.display()))?;
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut compile = Command::new(compiler);
        compile.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-I"]).arg(root.join("include"));
        compile
            .arg("-o")
            .arg(folder.join("walk"))
            .arg(root.join("bench/budget/walk.c"))
            .arg(linked)
            .arg("-ldl");
        succeed(&mut compile)?;
        Ok(Walker { root, folder })
    }

    fn act(&self, action: &Action, cases: &[&str]) -> Result<ExitCode, String> {
        let table = fs::read_to_string(self.root.join(TABLE)).unwrap_or_default();
        let mut rows = ratchet::read(&table);
        let mut findings = Vec::new();
        for case in cases {
            eprintln!("walk: {case}");
            let mut counts = self.walk(case)?;
            if let Action::Check = action {
                let row = rows.get(*case);
                for _ in 1..ATTEMPTS {
                    if ratchet::findings(case, row, &counts).is_empty() {
                        break;
                    }
                    counts = self.walk(case)?;
                }
                findings.extend(ratchet::findings(case, row, &counts));
            }
            let text = ratchet::row(case, &counts);
            match action {
                Action::Print => print!("{text}"),
                Action::Check => println!("{}", text.lines().next().unwrap_or_default()),
                Action::Write => {
                    rows.insert((*case).to_owned(), counts);
                }
            }
        }
        if let Action::Write = action {
            let text = ratchet::table(&CASES, &rows);
            fs::write(self.root.join(TABLE), text).map_err(|error| format!("{TABLE}: {error}"))?;
        }
        Ok(report("walks", &findings))
    }

    /// Makes the calls of a case and counts the most frequent walk.
    fn walk(&self, case: &str) -> Result<Counts, String> {
        let program = self.folder.join("walk");
        let library = self.folder.join("libzmq.so.5");
        let mut peer = start(
            Command::new(&program)
                .arg("peer")
                .env("LD_LIBRARY_PATH", &self.folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        )?;
        let (input, output) = (peer.0.stdin.take(), peer.0.stdout.take());
        let mut lines = BufReader::new(output.ok_or("the peer has no output")?).lines();
        let mut endpoint = || lines.next().and_then(Result::ok).ok_or("the peer has no endpoint");
        let endpoints = [endpoint()?, endpoint()?];
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=lackey", "--trace-mem=yes", "--log-fd=2"]).arg(&program).arg(case);
        valgrind.args(&endpoints).env("LD_LIBRARY_PATH", &self.folder);
        if case == "waiting_recv" {
            // The message comes while the call polls, and never after it has gone to sleep.
            valgrind.env("TAUT_SPIN_US", "1000000");
        }
        let mut calls = start(valgrind.stdout(input.ok_or("the peer has no input")?).stderr(Stdio::piped()))?;
        let trace = calls.0.stderr.take().ok_or("no trace")?;
        let code = fs::read(&library).ok().and_then(Code::new).ok_or("the library is no ELF file")?;
        let mut reader = Reader::new(code, case == "connect");
        reader
            .read(BufReader::with_capacity(1 << 20, trace))
            .map_err(|error| format!("cannot read the trace: {error}"))?;
        let ended = calls.0.wait().map_err(|error| format!("valgrind: {error}"))?;
        if !ended.success() || reader.walks.is_empty() {
            return Err(format!("{case} has failed ({ended}):\n{}", reader.rest.join("\n")));
        }
        let addresses = count::addresses(&reader.walks, &reader.activations);
        let functions = symbols::functions(&library, &addresses, self.root)?;
        let counts: Vec<Counts> =
            reader.walks.iter().map(|walk| count::count(walk, &reader.activations, &functions)).collect();
        count::most_frequent(counts).ok_or_else(|| format!("{case} has no walk"))
    }
}

/// A process that ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Result<Process, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.spawn().map(Process).map_err(|error| format!("{name}: {error}"))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
