//! The harness with real namespaces and control groups: a cell runs in them, and every end of the run removes
//! them.
//!
//! Skipped if they cannot be created: without root, without `ip`, or in a restricted container. The peer
//! programs are scripts that start this test again, as `near_end` or `far_end`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tautline_testkit::with_watchdog;

/// Variables for the program that a script starts: its arguments, and the address that the far end connects
/// to.
const ARGUMENTS: &str = "TAUT_TEST_ARGUMENTS";
const CONNECT: &str = "TAUT_TEST_CONNECT";

/// Linux value on the processors that this test runs on.
const O_NONBLOCK: i32 = 0o4000;

/// A folder with a scenario, two peers with the same program, and an empty calibration.
struct Bench {
    folder: PathBuf,
}

impl Bench {
    /// `peer` is the script of the program.
    fn new(name: &str, environments: &str, peer: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("taut-environments-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let bench = Self { folder };
        for name in ["a", "b"] {
            bench.write(&format!("{name}.toml"), &format!("title = \"{name}\"\nprogram = \"peer\"\n"));
        }
        bench.write(
            "scenario.toml",
            &format!(
                "title = \"t\"\npeers = [\"a\", \"b\"]\npairs = 1\ntarget_ms = 1\ntimeout_s = 600\n\
                 calibration_ms = 1\n[[cells]]\npattern = [\"push_pull\"]\ntransport = [\"tcp\"]\nsize = [64]\n\
                 processes = [2]\nmillis = 1\nenvironment = [{environments}]\n"
            ),
        );
        let calibrate = r#"echo '{"ok":true,"line_ns":50,"tcp_mb_s":1000,"ping_pong_us":10}'"#;
        bench.script("calibrate", calibrate);
        bench.script("peer", peer);
        bench
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.write(name, &format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(self.folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn start(&self) -> Child {
        self.start_as(&["run"])
    }

    fn start_as(&self, command: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_tautline-bench"))
            .args(command)
            .args(["--scenario", "scenario.toml", "--peers", ".", "--programs", ".", "--out", "out"])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Starts the harness. Returns when its program has begun, with the program's process id.
    fn start_until_peer_runs(&self) -> (Child, String) {
        let harness = self.start();
        let file = self.folder.join("started");
        loop {
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => return (harness, text.trim().to_owned()),
                _ => std::thread::yield_now(),
            }
        }
    }

    fn results(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.folder.join("out/results.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the rates in the results, of each cell and library.
    fn rates(&self) -> Vec<serde_json::Value> {
        let results = self.results();
        let cells = results["cells"].as_array().unwrap();
        cells.iter().filter(|figure| figure["metric"] == "messages_per_second").cloned().collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the script of a program that reports its start and then never ends.
const ENDLESS: &str = "echo $$ >started.new; mv started.new started; exec sleep 100000";

/// Returns the script of a program that becomes `near_end` of this test.
fn real_peer() -> String {
    let this = std::env::current_exe().unwrap();
    format!("{ARGUMENTS}=\"$*\" exec '{}' --exact near_end --nocapture", this.display())
}

/// Returns the namespaces and groups of the harness with that process id.
fn left_by(harness: u32) -> Vec<PathBuf> {
    let groups = std::fs::read_to_string("/proc/mounts").unwrap();
    let groups =
        groups.lines().filter_map(|line| line.split(' ').nth(1)).filter(|path| path.contains("cgroup"));
    let stem = format!("taut-bench-{harness}-");
    ["/run/netns"]
        .into_iter()
        .chain(groups)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem)))
        .collect()
}

fn finish(harness: Child) -> (u32, Output) {
    (harness.id(), harness.wait_with_output().unwrap())
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().unwrap().success());
}

/// Runs the test if namespaces and groups can be created, and otherwise prints the reason. Tests run one
/// after the other, because each harness also removes the environments of killed ones.
fn where_allowed(test: &str, environments: &str, body: impl FnOnce()) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    with_watchdog(Duration::from_secs(600), test, || {
        let bench = Bench::new(&format!("{test}-allowed"), environments, "exit 1");
        let (_, output) = finish(bench.start());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match said.lines().find(|line| line.starts_with("not there: ")) {
            Some(reason) => println!("{test}: skipped: {reason}"),
            None => body(),
        }
    });
}

#[test]
fn a_cell_runs_between_two_namespaces() {
    where_allowed("a_cell_runs_between_two_namespaces", "\"veth\"", || {
        let bench = Bench::new("veth", "\"default\", \"veth\"", &real_peer());
        let (harness, output) = finish(bench.start());
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(left_by(harness), [] as [PathBuf; 0]);
        let results = bench.results();
        let rates = bench.rates();
        let mtu_of = |number: usize| rates[number]["samples"][0].as_f64().unwrap();
        assert_eq!(rates[2]["environment"], "veth");
        assert_eq!(rates[2]["library"], "a");
        assert_eq!((mtu_of(2), mtu_of(3)), (1500.0, 1500.0));
        assert_eq!(mtu_of(0), 65536.0);
        assert_eq!(results["environments"][1]["name"], "veth");
        assert_eq!(results["memory"]["near"], 2);
        assert!(said.contains("b by environment"), "{said}");
    });
}

#[test]
fn a_signal_ends_the_run_and_nothing_is_left() {
    where_allowed("a_signal_ends_the_run_and_nothing_is_left", "\"veth\", \"half-core\"", || {
        for name in ["-INT", "-TERM"] {
            let bench = Bench::new(&format!("signal{name}"), "\"half-core\", \"veth\"", ENDLESS);
            let (harness, peer) = bench.start_until_peer_runs();
            assert_eq!(left_by(harness.id()).len(), 3);
            signal(name, &harness.id().to_string());
            let (harness, output) = finish(harness);
            assert_eq!(output.status.code(), Some(130), "{output:?}");
            assert_eq!(left_by(harness), [] as [PathBuf; 0]);
            assert!(!Path::new("/proc").join(&peer).exists(), "{name}: its program still runs");
        }
    });
}

#[test]
fn a_program_that_crashes_leaves_nothing() {
    where_allowed("a_program_that_crashes_leaves_nothing", "\"veth\", \"half-core\"", || {
        // The program has a child that outlives it, in the group and in the namespace.
        let crash = "sleep 100000 1<>held & kill -SEGV $$; wait";
        let bench = Bench::new("crash", "\"half-core\", \"veth\"", crash);
        assert!(Command::new("mkfifo").arg(bench.folder.join("held")).status().unwrap().success());
        let (harness, output) = finish(bench.start());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(left_by(harness), [] as [PathBuf; 0]);
        assert_eq!(bench.results()["problems"].as_array().unwrap().len(), 4);
        // A non-blocking read fails as long as a process has the other end open.
        let mut held = std::fs::File::options();
        let mut held = held.read(true).custom_flags(O_NONBLOCK).open(bench.folder.join("held")).unwrap();
        while held.read(&mut [0]).is_err() {
            std::thread::yield_now();
        }
    });
}

#[test]
fn next_harness_removes_leftovers_of_killed_one() {
    where_allowed("what_a_killed_harness_left_is_removed_by_the_next", "\"veth\", \"half-core\"", || {
        let bench = Bench::new("killed", "\"half-core\", \"veth\"", ENDLESS);
        let (harness, _) = bench.start_until_peer_runs();
        signal("-KILL", &harness.id().to_string());
        let (killed, _) = finish(harness);
        let next = Bench::new("next", "\"one-core\", \"half-core\"", &real_peer());
        let (harness, output) = finish(next.start());
        assert!(output.status.success(), "{output:?}");
        assert_eq!((left_by(killed), left_by(harness)), (Vec::new(), Vec::new()));
    });
}

/// Returns the script of a program that reports the rate in `$rate`, after these lines.
fn reporting(lines: &str) -> String {
    format!(
        r#"{lines}
echo "{{\"ok\":true,\"messages\":2,\"seconds\":1,\"cpu_seconds\":1,\"lost\":0,\"reordered\":0,\"corrupted\":0,\
\"metrics\":{{\"messages_per_second\":$rate}}}}""#
    )
}

/// The stand-in of `busy` notes the number of neighbours.
#[test]
fn program_runs_beside_busy_neighbours_in_their_environments_only() {
    let bench = Bench::new("busy", "\"default\", \"busy-4\"", &reporting("rate=1000"));
    bench.script("busy", "echo $1 >>neighbours; shift; exec \"$@\"");
    let (_, output) = finish(bench.start());
    assert!(output.status.success(), "{output:?}");
    // One line is of the test whether a program starts there.
    assert_eq!(std::fs::read_to_string(bench.folder.join("neighbours")).unwrap(), "4\n4\n4\n");
    assert_eq!(bench.rates()[2]["environment"], "busy-4");
    assert_eq!(bench.rates()[2]["megabytes_per_second"], 0.064);
    let results = bench.results();
    assert_eq!(results["cells"][1]["metric"], "processor_us");
    assert_eq!(results["cells"][1]["median"], 500_000.0);
}

#[test]
fn environment_without_its_program_says_why() {
    let bench = Bench::new("no-busy", "\"default\", \"busy-2\"", &reporting("rate=1000"));
    let (_, output) = finish(bench.start());
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("not there: busy-2: "), "{said}");
    assert_eq!(bench.rates().len(), 2);
}

/// The rate of the smaller messages alternates between 100 and 200, so their ratio never becomes narrow.
#[test]
fn only_open_cells_run_again() {
    let noisy = r#"rate=100
case "$*" in *'--size 64 '*) echo >>runs; [ $(($(wc -l <runs) / 2 % 2)) = 0 ] || rate=200 ;; esac"#;
    let bench = Bench::new("growing", "", &reporting(noisy));
    bench.write(
        "scenario.toml",
        "title = \"t\"\npeers = [\"a\", \"b\"]\npairs = 3\nmost_pairs = 5\nwidest_percent = 10\ntarget_ms = 1\n\
         timeout_s = 600\ncalibration_ms = 1\n[[cells]]\npattern = [\"push_pull\"]\ntransport = [\"tcp\"]\n\
         size = [64, 128]\nmillis = 1\n",
    );
    let runs = |command: &[&str]| {
        let (_, output) = finish(bench.start_as(command));
        assert!(output.status.success(), "{output:?}");
        bench.rates().iter().map(|figure| figure["runs"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(runs(&["run"]), [5, 5, 3, 3]);
    let results = bench.results();
    let standing = |number: usize| results["ratios"][number]["standing"].as_str().unwrap();
    assert!(standing(0).starts_with("open: \u{b1}"), "{}", standing(0));
    assert_eq!(standing(2), "level");
    let wins = &results["wins"][0];
    assert_eq!((&wins["cells"], &wins["open"], &wins["won"]), (&2.into(), &1.into(), &1.into()));
    // A number of pairs on the command line is exact.
    assert_eq!(runs(&["run", "--pairs", "4"]), [4, 4, 4, 4]);
    assert_eq!(runs(&["run", "--pairs", "3", "--most-pairs", "4"]), [4, 4, 3, 3]);
}

/// The stand-in is twice as fast with the rule `lull`, and equally fast with `hold`.
#[test]
fn ablation_compares_a_side_with_itself_without_a_rule() {
    let fast = reporting("rate=200\ncase ,$TAUT_WITHOUT, in *,lull,*) rate=100 ;; esac");
    let bench = Bench::new("ablate", "\"default\", \"one-core\"", &fast);
    let (_, output) = finish(bench.start_as(&["ablate", "lull", "hold", "--pairs", "3", "--peer", "a"]));
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(bench.folder.join("out/ablation.txt")).unwrap();
    for line in [
        "lull: wins >= 5 % beyond doubt in 2 of 2 environments (default, one-core), loses as much in 0: stays",
        "hold: wins >= 5 % beyond doubt in 0 of 2 environments, loses as much in 0: goes",
    ] {
        assert!(text.contains(line), "{text}");
    }
    // A program without the switch would run the same twice.
    bench.script("peer", "exit 1");
    let (_, output) = finish(bench.start_as(&["ablate", "lull", "--peer", "a"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("TAUT_WITHOUT"), "{output:?}");
}

/// The program at the near end, which this test starts as a process. Its rate is its MTU.
#[test]
fn near_end() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let words: Vec<&str> = arguments.split(' ').collect();
    let value = |key: &str| words.iter().position(|word| *word == key).map(|at| words[at + 1]);
    let address = value("--near-address").unwrap_or("127.0.0.1");
    let listener = TcpListener::bind((address, 0)).unwrap();
    let this = std::env::current_exe().unwrap();
    let mut far = match value("--far-netns") {
        None => Command::new(&this),
        Some(namespace) => {
            let mut far = Command::new("ip");
            far.args(["netns", "exec", namespace]).arg(&this);
            far
        }
    };
    far.args(["--exact", "far_end", "--nocapture"]).env_remove(ARGUMENTS);
    far.env(CONNECT, listener.local_addr().unwrap().to_string()).stdout(Stdio::null());
    let mut far = far.spawn().unwrap();
    let (mut stream, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), value("--far-address").unwrap_or("127.0.0.1"));
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(far.wait().unwrap().success());
    assert_eq!(text, "hello from afar");
    let device = if value("--far-netns").is_some() { "wire" } else { "lo" };
    let mtu = std::fs::read_to_string(format!("/sys/class/net/{device}/mtu")).unwrap();
    println!(
        "\n{{\"ok\":true,\"messages\":1,\"seconds\":1,\"cpu_seconds\":1,\"lost\":0,\"reordered\":0,\"corrupted\":0,\
         \"metrics\":{{\"messages_per_second\":{}}}}}",
        mtu.trim()
    );
}

/// The program at the far end, which this test starts as a process.
#[test]
fn far_end() {
    let Ok(address) = std::env::var(CONNECT) else { return };
    TcpStream::connect(address).unwrap().write_all(b"hello from afar").unwrap();
}
