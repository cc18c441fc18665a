//! `run`: C programs with two fake libraries, one that claims to be Tautline and one that claims to
//! be libzmq. `libzmq.rs` has the tests with the real libraries.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::observed::{Told, World};
use crate::support::{Running, TempDir, run, taut, test};

/// Builds a library that contains this text and whose contexts have a thread with this name.
fn library(folder: &Path, thread: &str, text: &str) -> String {
    let source = format!(
        "#define _GNU_SOURCE\n#include <pthread.h>\n#include <unistd.h>\n\
         const char *text(void) {{ return \"{text}\"; }}\n\
         static void *work(void *unused) {{ pthread_setname_np(pthread_self(), \"{thread}\"); for (;;) pause(); return unused; }}\n\
         void *zmq_ctx_new(void) {{ pthread_t thread; pthread_create(&thread, 0, work, 0); return (void *) 1; }}\n"
    );
    let name = format!("{}/libzmq.so.5", folder.display());
    compile(folder, "libzmq.so.5", &source, &["-shared", "-fPIC", "-Wl,-soname,libzmq.so.5"]);
    name
}

fn compile(folder: &Path, name: &str, source: &str, args: &[&str]) -> String {
    std::fs::create_dir_all(folder).unwrap();
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).unwrap();
    let status = Command::new("cc").arg(&file).arg("-o").arg(&program).args(args).status().unwrap();
    assert!(status.success());
    program.to_str().unwrap().to_owned()
}

/// Creates a context, prints a word, and reads until its input ends.
const PROGRAM: &str = "#include <stdio.h>\nvoid *zmq_ctx_new(void);\n\
                       int main(int count, char **words) { zmq_ctx_new(); puts(words[count - 1]); fflush(stdout); \
                       while (getchar() != EOF); return 7; }\n";

/// Both libraries, and a program linked with the fake libzmq.
struct Set {
    folder: TempDir,
    ours: String,
    program: String,
}

impl Set {
    fn new() -> Set {
        let folder = TempDir::new();
        let ours = library(&folder.path().join("ours"), "ZMQbg/IO/0", "tautline");
        let theirs = folder.path().join("theirs");
        library(&theirs, "ZMQbg/Reaper", "ZMQbg/Reaper");
        let theirs = theirs.to_str().unwrap();
        let link = [&format!("-Wl,-rpath,{theirs}"), "-L", theirs, "-l:libzmq.so.5"];
        let program = compile(folder.path(), "program", PROGRAM, &link);
        Set { folder, ours, program }
    }

    fn taut(&self, args: &[&str]) -> Running {
        let mut command = taut(&[&["run", "--library", &self.ours][..], args].concat());
        command.stdin(std::process::Stdio::piped());
        Running::start(command)
    }
}

#[test]
fn a_program_runs_on_tautline_and_that_is_proved() {
    test("a_program_runs_on_tautline_and_that_is_proved", || {
        let set = Set::new();
        let mut running = set.taut(&[&set.program, "--count", "an argument"]);
        assert_eq!(running.line(), "an argument");
        let told = running.notice("runs on Tautline");
        assert!(told.contains("program (") && told.ends_with(&set.ours), "{told}");
        // `taut` exits with the status of the program.
        assert_eq!(running.end().code, Some(7));
        // Start it through an interpreter, with a relative path, and with the environment variable.
        let script = set.folder.path().join("script");
        std::fs::write(&script, format!("#!/usr/bin/env sh\n{} \"$@\"; exit $?\n", set.program)).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = taut(&["run", "./script", "word"]);
        command.current_dir(set.folder.path()).env("TAUT_LIBRARY", &set.ours);
        command.stdin(std::process::Stdio::piped());
        let mut running = Running::start(command);
        assert_eq!(running.line(), "word");
        running.notice("runs on Tautline");
        assert_eq!(running.end().code, Some(7));
    });
}

#[test]
fn program_does_not_outlive_taut() {
    test("program_does_not_outlive_taut", || {
        let set = Set::new();
        let mut running = set.taut(&["-q", &set.program, "ready"]);
        assert_eq!(running.line(), "ready");
        running.signal(Signal::KILL);
        // The program holds its end of the pipe, and its input stays open.
        let ended = running.end_with_open_input();
        assert_eq!((ended.code, ended.text()), (None, String::new()));

        // `taut` may end before the new process has made its request to the kernel. Process 1
        // stands for the parent that it finds then.
        let other = taut(&["run", "--parent", "1", "--library", &set.ours, "--", &set.program, "started"]);
        let ended = Running::start(other).end();
        ended.failed(1, &["taut run has ended, so the program was not started"]);
        assert_eq!(ended.text(), "");
    });
}

#[test]
fn a_program_that_loads_another_libzmq_is_told() {
    test("a_program_that_loads_another_libzmq_is_told", || {
        let set = Set::new();
        let theirs = set.folder.path().join("theirs/libzmq.so.5");
        let source = format!(
            "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {{ void *all = dlopen(\"{}\", RTLD_NOW | RTLD_LOCAL);\n\
             ((void *(*)(void)) dlsym(all, \"zmq_ctx_new\"))(); while (getchar() != EOF); return 0; }}\n",
            // Use a name that the loader does not know.
            theirs.with_file_name("other.so").display()
        );
        let text = "ZMQbg/Reaper";
        let other = format!(
            "#define _GNU_SOURCE\n#include <pthread.h>\n#include <unistd.h>\nstatic void *work(void *unused) {{ \
             pthread_setname_np(pthread_self(), \"{text}\"); for (;;) pause(); return unused; }}\n\
             void *zmq_ctx_new(void) {{ pthread_t thread; pthread_create(&thread, 0, work, 0); return (void *) 1; }}\n"
        );
        compile(theirs.parent().unwrap(), "other.so", &other, &["-shared", "-fPIC", "-Wl,-soname,other.so"]);
        let program = compile(set.folder.path(), "loader", &source, &["-ldl"]);
        let mut running = set.taut(&[&program]);
        let told = running.notice("does NOT run on Tautline");
        assert!(told.contains("other.so contains a separate copy of libzmq"), "{told}");
        assert_eq!(running.end().code, Some(0));
    });
}

#[test]
fn signals_go_to_the_program() {
    test("signals_go_to_the_program", || {
        let set = Set::new();
        for (signal, code) in
            [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::USR1, 138)]
        {
            let mut running = set.taut(&[&set.program, "here"]);
            assert_eq!(running.line(), "here");
            running.signal(signal);
            assert_eq!(running.end_with_open_input().code, Some(code), "{signal:?}");
        }
    });
}

#[test]
fn unsupported_programs_are_refused() {
    test("unsupported_programs_are_refused", || {
        let set = Set::new();
        let own = "void *zmq_ctx_new(void) { return 0; }\nint main(void) { return zmq_ctx_new() != 0; }\n";
        let with_its_own = compile(set.folder.path(), "own", own, &[]);
        let stripped = "const char *volatile name = \"ZMQbg/Reaper\";\nint main(void) { return !name; }\n";
        let stripped = compile(set.folder.path(), "stripped", stripped, &["-s"]);
        let fixed = compile(set.folder.path(), "fixed", "int main(void) { return 0; }\n", &["-static"]);
        let text = set.folder.path().join("text");
        std::fs::write(&text, "just text\n").unwrap();
        let text_path = text.to_str().unwrap();
        let refused = |program: &str, code: i32, texts: &[&str]| {
            run(&["run", "--library", &set.ours, program]).failed(code, texts);
        };
        refused(&with_its_own, 1, &["own has its own statically linked libzmq", "link it with libzmq.so"]);
        refused(&stripped, 1, &["stripped has its own statically linked libzmq"]);
        refused(&fixed, 1, &["fixed is linked statically, so its libraries cannot be replaced"]);
        refused(text_path, 1, &["not a program"]);
        std::fs::set_permissions(&text, PermissionsExt::from_mode(0o755)).unwrap();
        refused(text_path, 1, &["not a program for this system"]);
        refused("/nonexistent/program", 1, &["/nonexistent/program", "No such file"]);
        refused("no-such-program-anywhere", 1, &["there is no such program in PATH"]);
        let script = set.folder.path().join("script");
        std::fs::write(&script, format!("#!{with_its_own} -x\n")).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        refused(script.to_str().unwrap(), 1, &["own has its own statically linked libzmq"]);
        for (library, texts) in [
            ("/nonexistent/libzmq.so.5", &["/nonexistent/libzmq.so.5", "No such file"][..]),
            (&set.program, &["it is not Tautline's libzmq.so.5", "make build"]),
            (set.folder.path().join("theirs/libzmq.so.5").to_str().unwrap(), &["it is not Tautline's"]),
            (text_path, &["not a program for this system"]),
        ] {
            run(&["run", "--library", library, "true"]).failed(1, texts);
        }
        run(&["run"]).failed(2, &["PROGRAM"]);
    });
}

#[test]
fn a_program_without_zeromq_is_told_of() {
    test("a_program_without_zeromq_is_told_of", || {
        let set = Set::new();
        let ended = run(&["run", "--library", &set.ours, "true"]);
        assert_eq!(ended.code, Some(0));
        assert!(ended.err.contains("ended without a visible use of ZeroMQ"), "{ended:?}");
        let quiet = run(&["run", "-q", "--library", &set.ours, "false"]);
        assert_eq!((quiet.code, quiet.err.as_str()), (Some(1), ""));
    });
}

#[test]
fn new_variables_precede_existing_values() {
    test("new_variables_precede_existing_values", || {
        let set = Set::new();
        let show = "echo $LD_LIBRARY_PATH; echo $TAUT_OBSERVE$TAUT_NAME; echo $LD_PRELOAD";
        let mut command =
            taut(&["run", "-q", "--observe", "--name", "orders", "--library", &set.ours, "sh", "-c", show]);
        command.env("LD_LIBRARY_PATH", "/before").env_remove("LD_PRELOAD");
        let folder = Path::new(&set.ours).parent().unwrap().display().to_string();
        let ended = Running::start(command).end();
        assert_eq!(ended.lines(), [format!("{folder}:/before"), "1orders".to_owned(), set.ours.clone()]);
        run(&["run", "--name", "orders", "sh"]).failed(2, &["--observe"]);
        let mut command = taut(&["run", "-q", "--library", &set.ours, "sh", "-c", show]);
        for name in ["LD_LIBRARY_PATH", "LD_PRELOAD", "TAUT_OBSERVE", "TAUT_NAME"] {
            command.env_remove(name);
        }
        assert_eq!(Running::start(command).end().lines(), [folder, String::new(), set.ours.clone()]);
    });
}

/// Copies a file of counters for its own process, as the library would write it, and ends as its last
/// argument says: by an exit status, or by a signal if the number is negative.
const ENDS: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *zmq_ctx_new(void);
int main(int count, char **words) {
    static char bytes[1 << 26], stat[4096], name[4096];
    unsigned long long ticks = 0;
    unsigned pid = getpid();
    zmq_ctx_new();
    FILE *file = fopen("/proc/self/stat", "r");
    fread(stat, 1, sizeof stat - 1, file);
    sscanf(strrchr(stat, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks);
    file = fopen(words[1], "r");
    size_t length = fread(bytes, 1, sizeof bytes, file);
    memcpy(bytes + 16, &pid, 4);
    memcpy(bytes + 24, &ticks, 8);
    snprintf(name, sizeof name, "%s/%u", words[2], pid);
    file = fopen(name, "w");
    fwrite(bytes, 1, length, file);
    fclose(file);
    int end = atoi(words[count - 1]);
    if (end < 0)
        kill(pid, -end);
    _exit(end);
}
"#;

#[test]
fn the_end_of_a_program_is_recorded() {
    test("the_end_of_a_program_is_recorded", || {
        let set = Set::new();
        let theirs = set.folder.path().join("theirs");
        let theirs = theirs.to_str().unwrap();
        let link = [&format!("-Wl,-rpath,{theirs}"), "-L", theirs, "-l:libzmq.so.5"];
        let program = compile(set.folder.path(), "ends", ENDS, &link);
        for (end, code, told, crash) in [
            ("3", 3, "exit status 3, ", ""),
            ("0", 0, "exit status 0, ", ""),
            (
                "-9",
                137,
                "killed by signal 9 (SIGKILL), ",
                "crashed or was killed: killed by signal 9 (SIGKILL)",
            ),
            (
                "-11",
                139,
                "killed by signal 11 (SIGSEGV), ",
                "crashed or was killed: killed by signal 11 (SIGSEGV)",
            ),
            ("-15", 143, "killed by signal 15 (SIGTERM), ", ""),
        ] {
            let world = World::new();
            let mut output = world.file(None);
            Told::new("orders").write(&mut output);
            let template = set.folder.path().join("template");
            std::fs::rename(output.path(), &template).unwrap();
            let place = world.place();
            let mut command = world.command(&["run", "--library", &set.ours, &program]);
            command.args([&template, &place]).arg(end);
            let ended = Running::start(command).end();
            assert_eq!(ended.code, Some(code), "{ended:?}");
            assert_eq!(ended.err.contains("crashed or was killed"), !crash.is_empty(), "{ended:?}");
            assert!(ended.err.contains(crash), "{ended:?}");
            let listed = world.run(&["ps"]).text();
            assert!(listed.contains(told) && listed.trim_end().ends_with(" ago"), "{listed}");
        }
    });
}

/// Prints the value of its policy variable.
const TELLS: &str = "#include <stdio.h>\n#include <stdlib.h>\nvoid *zmq_ctx_new(void);\n\
                     int main(void) { zmq_ctx_new(); puts(getenv(\"TAUT_POLICY\")); fflush(stdout); getchar(); }\n";

#[test]
fn a_program_has_the_policy_that_is_named() {
    test("a_program_has_the_policy_that_is_named", || {
        let set = Set::new();
        let theirs = set.folder.path().join("theirs");
        let theirs = theirs.to_str().unwrap();
        let link = [&format!("-Wl,-rpath,{theirs}"), "-L", theirs, "-l:libzmq.so.5"];
        let program = compile(set.folder.path(), "tells", TELLS, &link);
        let path = |name: &str| set.folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("taut")).unwrap();
        let saved = format!("[policies]\ninside = {:?}\nclosed = \"strict\"\n", path("policy.toml"));
        std::fs::write(path("taut/config.toml"), saved).unwrap();
        std::fs::write(path("policy.toml"), "extends = \"loopback\"\n").unwrap();
        std::fs::write(path("bad.toml"), "\nextnds = \"loopback\"\n").unwrap();
        let with = |policy: &str| {
            let mut command = taut(&["run", "--library", &set.ours, "--policy", policy, &program]);
            command.current_dir(set.folder.path()).env("XDG_CONFIG_HOME", set.folder.path());
            Running::start(command)
        };
        for (policy, value) in [
            ("loopback", "loopback"),
            ("policy.toml", &*path("policy.toml")),
            ("@inside", &*path("policy.toml")),
            ("@closed", "strict"),
        ] {
            assert_eq!(with(policy).line(), value, "{policy}");
        }
        with("missing.toml").end().failed(1, &["missing.toml", "audit, loopback, strict, a file"]);
        with("bad.toml").end().failed(2, &["bad.toml: line 2", "extnds"]);
        with("@other").end().failed(2, &["there is no policy other", "[policies]"]);
    });
}
