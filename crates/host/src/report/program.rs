//! The name of this program for observers: `TAUT_NAME`, or the name of its file. Many services run
//! in the same interpreter, so an interpreter has the name of its script, module or class, or the
//! title that the program has given its process. Other arguments are never shown, because they may
//! contain secrets.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

/// Programs that run a script, without their versions: `python3.11` is `python`.
const INTERPRETERS: &str = "bash bun dart dash deno dotnet escript guile java jruby julia lua luajit mono \
                            mono-sgen node nodejs perl php pypy python racket ruby Rscript sh tclsh zsh";

/// Options of interpreters whose value is the next argument. The value may be the path of a file,
/// which is not the script.
const VALUED: &[(&str, &str)] = &[
    ("bash sh dash zsh", "-o -O --init-file --rcfile"),
    ("bun deno", "-r --require --preload --config -c --import-map --cert --env-file --cwd"),
    (
        "dotnet",
        "--runtimeconfig --depsfile --additional-deps --additionalprobingpath --fx-version --roll-forward",
    ),
    (
        "java",
        "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --add-reads \
         --add-exports --add-opens --limit-modules --patch-module --source --enable-native-access",
    ),
    ("mono mono-sgen", "--config"),
    (
        "node nodejs",
        "-r --require --import --loader --experimental-loader -C --conditions --env-file --icu-data-dir \
         --openssl-config --title --input-type --redirect-warnings --snapshot-blob --trace-event-file-pattern",
    ),
    ("perl", "-I"),
    ("php", "-c -d -z"),
    ("python pypy", "-W -X --check-hash-based-pycs"),
    ("ruby jruby", "-I -r -C -E -F"),
];

/// Options of interpreters whose value is code. Such a program has no script.
const CODE: &[(&str, &str)] = &[
    ("bash sh dash zsh python pypy racket", "-c"),
    ("dart deno", "eval"),
    ("bun node nodejs", "-e --eval -p --print -pe"),
    ("guile", "-c"),
    ("julia lua luajit Rscript ruby jruby", "-e"),
    ("julia", "-E"),
    ("perl", "-e -E"),
    ("php", "-r"),
];

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

/// Returns the name of the script, module or class that an interpreter runs: the first argument
/// that is the path of a file and not the value of an option, the module behind `-m` of Python, or
/// the class or module of Java.
fn script(interpreter: &str, arguments: &[String]) -> Option<String> {
    let is_among = |names: &str| names.split_whitespace().any(|name| name == interpreter);
    let is_in = |table: &[(&str, &str)], argument: &str| {
        let has = |options: &str| options.split_whitespace().any(|one| one == argument);
        table.iter().any(|(names, options)| is_among(names) && has(options))
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if is_among("python pypy")
            && let Some(module) = python_module(argument)
        {
            let name = if module.is_empty() { arguments.next()? } else { module };
            return is_name(name, ".").then(|| name.to_owned());
        }
        if interpreter == "java" {
            match &**argument {
                "-jar" => return arguments.next().map(|jar| file_name(Path::new(jar))),
                "-m" | "--module" => return arguments.next().and_then(|name| java_class(name)),
                _ if argument.starts_with("--module=") => return java_class(&argument["--module=".len()..]),
                _ => {}
            }
        }
        if is_in(CODE, argument) {
            return None;
        }
        if is_in(VALUED, argument) {
            arguments.next();
        } else if !argument.starts_with('-') {
            if Path::new(argument).is_file() {
                return Some(file_name(Path::new(argument))).filter(|name| !name.is_empty());
            }
            // The arguments after the class are those of the program.
            if interpreter == "java" && !argument.starts_with('@') {
                return java_class(argument);
            }
        }
    }
    None
}

/// Returns the module in an argument of Python that asks for one, as `-mshop.orders` does. The name
/// is empty if it is the next argument, as in `-m shop.orders` and `-um shop.orders`.
fn python_module(argument: &str) -> Option<&str> {
    let letters = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let (flags, module) = letters.split_once('m')?;
    // Letters before it are flags without a value.
    flags.chars().all(|flag| "bBdEiIOPqRsSuvx".contains(flag)).then_some(module)
}

/// Returns the class of a Java program: `Orders` of `shop.orders/com.shop.Orders`, or the module if
/// it has no class.
fn java_class(name: &str) -> Option<String> {
    let class = name.rsplit_once('/').map_or(name, |(_, class)| class);
    is_name(class, ".$").then(|| class.to_owned())
}

/// True if a text consists of letters, digits, underscores and these characters, as the names of
/// modules do.
fn is_name(text: &str, others: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || others.contains(letter))
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
        let other = folder.join("other");
        std::fs::write(&other, "").unwrap();
        let other = other.to_str().unwrap();
        for (program, arguments, name) in [
            ("python3.11", &["-u", script, "--password", "secret"][..], "orders.py"),
            ("pypy3", &["-W", "ignore", script], "orders.py"),
            ("node", &["--inspect", script], "orders.py"),
            ("java", &["-Xmx1g", "-jar", script], "orders.py"),
            ("python3.11", &["-m", "shop.orders", "--password", "secret"], "shop.orders"),
            // No argument other than a script or a module is shown.
            ("python3", &["-c", "import secret", script], "python3"),
            ("python3", &["-m", "not a/module"], "python3"),
            ("python3", &["-m"], "python3"),
            ("python3", &["-um", "shop.orders", "secret"], "shop.orders"),
            ("python3", &["-mshop.orders", "secret"], "shop.orders"),
            ("python3", &["-X", script, "-Wignore", "-m", "shop"], "shop"),
            ("pypy3.10", &["-m", "shop.orders"], "shop.orders"),
            ("node", &["-e", "secret()"], "node"),
            ("node", &["--require", other, "--import", other, script], "orders.py"),
            ("nodejs", &["-r", other, script, other], "orders.py"),
            ("bun", &["run", script], "orders.py"),
            ("deno", &["run", "--config", other, "--allow-net", script], "orders.py"),
            ("java", &["-cp", other, "-Dpassword=secret", "com.shop.Orders", other], "com.shop.Orders"),
            ("java", &["-classpath", "a:b", "com.shop.Orders$Main", "secret"], "com.shop.Orders$Main"),
            ("java", &["-p", other, "-m", "shop.orders/com.shop.Orders", "secret"], "com.shop.Orders"),
            ("java", &["--module-path", other, "--module=shop.orders"], "shop.orders"),
            ("java", &["-javaagent:agent.jar", "-jar", "/srv/gone.jar", other], "gone.jar"),
            ("java", &["@options", "com.shop.Orders"], "com.shop.Orders"),
            ("java", &["--source", "21", script], "orders.py"),
            ("java", &["not a class", script], "java"),
            ("dotnet", &["exec", "--runtimeconfig", other, "--depsfile", other, script], "orders.py"),
            ("dotnet", &[script, other], "orders.py"),
            ("mono", &["--debug", "--config", other, script], "orders.py"),
            ("ruby3.1", &["-I", other, "-r", other, script], "orders.py"),
            ("perl", &["-w", "-I", other, "-MPOSIX", script], "orders.py"),
            ("perl", &["-e", "secret()", script], "perl"),
            ("bash", &["-c", "secret", script], "bash"),
            ("php8.2", &["-c", other, "-f", script], "orders.py"),
            ("Rscript", &["--vanilla", script], "orders.py"),
            ("bash", &["--rcfile", other, script], "orders.py"),
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
