//! Checks the dependencies between the packages of the workspace, from the manifests.

use std::fs;
use std::path::Path;

/// Folder of each package, and the packages of this workspace that it may depend on, apart from dev-dependencies.
///
/// `proto` and `io` do not depend on each other; only `queue`, `config` and `core` use both. `mem` and `observe`, the reader for
/// tools, depend on no package of the workspace. No package may depend on `libzmq`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("crates/proto", &[]),
    ("crates/mem", &[]),
    ("crates/io", &["tautline-mem"]),
    ("crates/observe", &[]),
    ("crates/policy", &[]),
    ("crates/names", &["tautline-policy"]),
    ("crates/queue", &["tautline-io", "tautline-mem", "tautline-proto"]),
    ("crates/timing", &["tautline-mem"]),
    ("crates/config", &["tautline-io", "tautline-mem", "tautline-proto"]),
    (
        "crates/core",
        &[
            "tautline-proto",
            "tautline-io",
            "tautline-mem",
            "tautline-queue",
            "tautline-timing",
            "tautline-config",
        ],
    ),
    (
        "crates/host",
        &[
            "tautline-config",
            "tautline-core",
            "tautline-io",
            "tautline-names",
            "tautline-observe",
            "tautline-policy",
            "tautline-proto",
            "tautline-queue",
        ],
    ),
    ("crates/abi", &["tautline-core", "tautline-host", "tautline-io"]),
    ("crates/libzmq", &["tautline-abi"]),
    ("crates/tautline", &["tautline-core", "tautline-host"]),
    ("crates/bridge", &["tautline", "tautline-names"]),
    (
        "crates/cli",
        &[
            "tautline",
            "tautline-bridge",
            "tautline-names",
            "tautline-observe",
            "tautline-policy",
            "tautline-proto",
        ],
    ),
    ("crates/testkit", &[]),
    (
        "crates/sim",
        &["tautline", "tautline-core", "tautline-host", "tautline-io", "tautline-mem", "tautline-observe"],
    ),
    ("bench/harness", &[]),
    ("xtask", &[]),
    (
        "fuzz",
        &[
            "tautline-abi",
            "tautline-core",
            "tautline-io",
            "tautline-names",
            "tautline-observe",
            "tautline-policy",
            "tautline-proto",
            "tautline-testkit",
        ],
    ),
    ("bindings/node", &["tautline-core", "tautline-host"]),
    ("bindings/python", &["tautline", "tautline-abi", "tautline-core"]),
];

/// Package that every test may use.
const TEST_ONLY: &str = "tautline-testkit";

/// Returns dependencies that [`ALLOWED`] does not list, and members that it does not know.
pub fn check(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for member in members(&read(root, "Cargo.toml")) {
        let Some((_, allowed)) = ALLOWED.iter().find(|(folder, _)| *folder == member) else {
            findings.push(format!("{member}: not in the table of xtask/src/crates.rs"));
            continue;
        };
        let manifest = read(root, &format!("{member}/Cargo.toml"));
        findings.extend(
            forbidden(&manifest, allowed)
                .into_iter()
                .map(|name| format!("{member}: may not depend on {name}")),
        );
    }
    findings
}

fn read(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap_or_default()
}

/// Returns the quoted strings of `members = [...]`.
fn members(manifest: &str) -> Vec<String> {
    let list =
        manifest.split_once("members = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or(""));
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the dependencies of a manifest on our packages that are not allowed.
fn forbidden(manifest: &str, allowed: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    let mut section = String::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        }
        // `[dependencies]` with a line each, or `[dependencies.name]`; the same under `[target.'cfg(..)'.…]`.
        let (table, inline_name) = match section.rsplit_once("dependencies.") {
            Some((before, name)) => (format!("{before}dependencies"), Some(name.to_owned())),
            None => (section.clone(), None),
        };
        let name = match inline_name {
            Some(name) if line.starts_with('[') => name,
            None if !line.starts_with('[') => line.split(['.', '=', ' ']).next().unwrap_or("").to_owned(),
            _ => continue,
        };
        let is_test =
            table.ends_with("dev-dependencies") && (name == TEST_ONLY || allowed.contains(&name.as_str()));
        if table.ends_with("dependencies")
            && name.starts_with("tautline")
            && !allowed.contains(&name.as_str())
            && !is_test
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_dependencies_are_found() {
        let manifest = "[dependencies]\ntautline-io.workspace = true\nlibc = \"1\"\n\
                        [target.'cfg(unix)'.dependencies]\ntautline-core = { path = \"x\" }\n\
                        [dependencies.tautline-libzmq]\npath = \"y\"\n\
                        [dev-dependencies]\ntautline-testkit.workspace = true\n";
        assert_eq!(forbidden(manifest, &["tautline-io"]), ["tautline-core", "tautline-libzmq"]);
    }

    #[test]
    fn members_are_read() {
        assert_eq!(members("[workspace]\nmembers = [\n \"a\",\n \"b/c\",\n]\n"), ["a", "b/c"]);
    }
}
