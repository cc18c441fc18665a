//! Finds risky lines in a source tree: quoted endpoints that bind to every interface, and received
//! messages that are deserialized into objects.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use ignore::WalkBuilder;
use regex::Regex;

use super::{Finding, Level};
use crate::failure::{Failure, Result};

/// File name extensions of source code.
const SOURCES: [&str; 19] = [
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "py", "pyx", "ipynb", "go", "js", "mjs", "cjs", "ts", "tsx",
    "rs", "cs", "java",
];
/// Size limit of a scanned file, in bytes.
const LONGEST: u64 = 4 << 20;

static OPEN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"["'`]((?:tcp|ws|wss|udp)://(?:\*|0\.0\.0\.0|\[::\])[^"'`\s]*)["'`]"#));
static SECURE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)curve_?server|curve_?secret|curve_?apply|set_curve|curveserver|curve_keypair|wss_key_pem")
});
static OBJECTS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\brecv_pyobj\b|\bpickle\.loads\s*\(|\bcloudpickle\.loads\s*\("));
static ZEROMQ: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\bzmq|zeromq|tautline"));

fn pattern(text: &str) -> Regex {
    #[allow(clippy::expect_used, reason = "a constant, which the tests use")]
    Regex::new(text).expect("a regular expression")
}

/// Scans a folder or a file. Skips the files that `.gitignore` lists.
pub fn scan(path: &Path) -> Result<(Vec<Finding>, String)> {
    if let Err(error) = fs::metadata(path) {
        return Err(Failure::failed(format!("{}: {error}", path.display())));
    }
    let (mut all, mut files) = (Vec::new(), 0);
    for entry in WalkBuilder::new(path).build().flatten() {
        let is_source =
            entry.path().extension().and_then(|end| end.to_str()).is_some_and(|end| SOURCES.contains(&end));
        let is_file = entry.metadata().is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
        if !is_source || !is_file {
            continue;
        }
        if let Ok(bytes) = fs::read(entry.path()) {
            files += 1;
            all.extend(findings(&entry.path().display().to_string(), &String::from_utf8_lossy(&bytes)));
        }
    }
    Ok((all, format!("{files} files")))
}

fn findings(path: &str, text: &str) -> Vec<Finding> {
    let finding = |line: usize, level, what: String, advice: &str| Finding {
        level,
        at: format!("{path}:{}", line + 1),
        pid: None,
        program: None,
        socket_type: None,
        mechanism: None,
        what,
        advice: advice.to_owned(),
    };
    let (secure, zeromq) = (SECURE.is_match(text), ZEROMQ.is_match(text));
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for found in OPEN.captures_iter(line) {
            let endpoint = &found[1];
            all.push(if secure {
                finding(number, Level::Note, format!("{endpoint} is open to others; the file mentions CURVE"), "")
            } else {
                finding(
                    number,
                    Level::Warning,
                    format!("{endpoint} is open to every machine that can reach this one"),
                    "tcp://127.0.0.1 for peers of this machine, CURVE for others; or TAUT_POLICY=loopback (docs/operate/policy.md)",
                )
            });
        }
        if zeromq && let Some(found) = OBJECTS.find(line) {
            all.push(finding(
                number,
                Level::Warning,
                format!("{} executes data that a peer sends", found.as_str().trim_end_matches('(')),
                "use JSON or MessagePack for received messages, or accept them only over CURVE with a list of clients",
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Level, String)> {
        findings("a.py", text).into_iter().map(|finding| (finding.level, finding.at)).collect()
    }

    #[test]
    fn open_endpoints_are_found_in_each_language() {
        for line in [
            "socket.bind(\"tcp://*:5555\")",
            "zmq_bind(socket, \"tcp://0.0.0.0:5555\");",
            "await sock.bind('ws://*:80')",
            "s.bind(f'tcp://*:{port}')",
            "publisher.Bind(`tcp://[::]:9`)",
        ] {
            assert_eq!(found(line), [(Level::Warning, "a.py:1".to_owned())], "{line}");
            assert_eq!(found(&format!("\n# CURVE_SERVER\n{line}")), [(Level::Note, "a.py:3".to_owned())]);
        }
        for line in
            ["bind(\"tcp://127.0.0.1:5555\")", "connect(\"tcp://host:5555\")", "# tcp://*:5555", "ipc://*"]
        {
            assert_eq!(found(line), [], "{line}");
        }
    }

    #[test]
    fn objects_are_found_where_there_are_sockets() {
        assert_eq!(found("import zmq\nx = s.recv_pyobj()"), [(Level::Warning, "a.py:2".to_owned())]);
        assert_eq!(found("import zmq\nx = pickle.loads(s.recv())"), [(Level::Warning, "a.py:2".to_owned())]);
        assert_eq!(found("x = pickle.loads(open('f').read())"), []);
    }
}
