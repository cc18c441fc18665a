//! The name of this program for observers: `TAUT_NAME`, or the name of its file. Many services run
//! in the same interpreter, so an interpreter has the name of its script or module, or the title
//! that the program has given its process. Other arguments are never shown, because they may
//! contain secrets.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

/// Programs that run a script, without their versions: `python3.11` is `python`.
const INTERPRETERS: &str = "bash bun deno dotnet guile java julia lua luajit mono mono-sgen node \
                            nodejs perl php pypy python ruby sh tclsh";

/// Maximum number of characters of a given name.
const LONGEST: usize = 64;

/// The name that the environment gives this program (`TAUT_NAME`). Looked up once, by the first
/// context, because a program may change the environment later.
pub(super) fn given_name() -> Option<&'static str> {
    static GIVEN: OnceLock<Option<String>> = OnceLock::new();
    let given = || {
        let value = tautline_io::env::var_os("TAUT_NAME")?;
        let name: String = value.to_string_lossy().trim().chars().take(LONGEST).collect();
        Some(name).filter(|name| !name.is_empty())
    };
    GIVEN.get_or_init(given).as_deref()
}

/// Returns the name of this program.
pub(super) fn name() -> String {
    if let Some(name) = given_name() {
        return name.to_owned();
    }
    let path = std::env::current_exe().unwrap_or_default();
    name_of(&file_name(&path), &words())
}

/// Returns the name of a program with this file and these words of its command line.
fn name_of(program: &str, words: &[String]) -> String {
    let kind = kind_of(program);
    let name = is_interpreter(kind).then(|| script(kind, words.get(1..)?).or_else(|| title(&words[0])));
    name.flatten().unwrap_or_else(|| program.to_owned())
}

/// Returns the name of a program without its version.
fn kind_of(program: &str) -> &str {
    program.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.' || end == '-')
}

fn is_interpreter(kind: &str) -> bool {
    INTERPRETERS.split(' ').any(|name| name == kind)
}

/// Returns the first word of the title that an interpreted program has given its process, as by
/// `setproctitle` of Python, which replaces the command line. A forked or spawned worker often has
/// one.
fn title(line: &str) -> Option<String> {
    let title: String = line.split_whitespace().next()?.chars().take(LONGEST).collect();
    let is_file = title.contains('/') || is_interpreter(kind_of(&title));
    (!is_file).then_some(title)
}

/// Returns the name of the script or module that an interpreter runs: the first argument that is
/// the path of a file, or the module behind `-m` of Python.
fn script(interpreter: &str, arguments: &[String]) -> Option<String> {
    let has_modules = matches!(interpreter, "python" | "pypy");
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "-m" && has_modules {
            let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
            return arguments.next().filter(|name| name.chars().all(is_letter)).cloned();
        }
        let path = Path::new(argument);
        if !argument.starts_with('-') && path.is_file() {
            return Some(file_name(path)).filter(|name| !name.is_empty());
        }
    }
    None
}

fn file_name(path: &Path) -> String {
    path.file_name().map(OsStr::to_string_lossy).unwrap_or_default().into_owned()
}

/// Returns the command line of this process. The standard library does not know it in a library
/// that a program of musl loads.
fn words() -> Vec<String> {
    match std::fs::read("/proc/self/cmdline") {
        Ok(line) => {
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
        }
        Err(_) => std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_have_the_name_of_their_script() {
        let folder = std::env::temp_dir().join(format!("tautline-program-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let script = folder.join("orders.py");
        std::fs::write(&script, "").unwrap();
        let script = script.to_str().unwrap();
        for (program, arguments, name) in [
            ("python3.11", &["-u", script, "--password", "secret"][..], "orders.py"),
            ("pypy3", &["-W", "ignore", script], "orders.py"),
            ("node", &["--inspect", script], "orders.py"),
            ("java", &["-Xmx1g", "-jar", script], "orders.py"),
            ("python3.11", &["-m", "shop.orders", "--password", "secret"], "shop.orders"),
            // No argument other than a script or a module is shown.
            ("python3", &["-c", "import secret", "secret"], "python3"),
            ("python3", &["-m", "not a/module"], "python3"),
            ("node", &["-e", "secret()"], "node"),
            ("perl5.36.0", &[], "perl5.36.0"),
            ("bash", &[folder.to_str().unwrap()], "bash"),
            // A program that is no interpreter has its own name.
            ("orders", &[script], "orders"),
            ("pythonic", &[script], "pythonic"),
        ] {
            let words: Vec<String> =
                [program].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
            assert_eq!(name_of(program, &words), name, "{program} {words:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn interpreters_without_a_script_have_the_title_of_their_process() {
        for (program, line, name) in [
            ("python3.11", "VLLM::EngineCore", "VLLM::EngineCore"),
            ("python3.11", "celery worker --password secret", "celery"),
            ("python3.11", "/usr/bin/python3.11", "python3.11"),
            ("python3.11", "python", "python3.11"),
            ("python3.11", "", "python3.11"),
            ("orders", "title", "orders"),
        ] {
            assert_eq!(name_of(program, &[line.to_owned(), String::new()]), name, "{program} {line:?}");
        }
        assert_eq!(name_of("python3.11", &[]), "python3.11");
    }

    #[test]
    fn a_process_has_a_name() {
        assert!(!name().is_empty());
    }
}
