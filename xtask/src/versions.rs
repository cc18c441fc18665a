//! Checks that the packages for all registries have the version of the workspace.

use std::fs;
use std::path::Path;

/// Places of a version: the file, the text before it, and the text after it. The first match in the file counts.
const PLACES: [(&str, &str, &str); 5] = [
    ("bindings/node/package.json", "\"version\": \"", "\""),
    ("bindings/node/zeromq/package.json", "\"version\": \"", "\""),
    ("bindings/node/Cargo.toml", "version = \"", "\""),
    ("bindings/python/Cargo.toml", "version = \"", "\""),
    ("bindings/dotnet/Tautline/Tautline.csproj", "<Version>", "</Version>"),
];

/// Returns the places whose version differs from the workspace.
pub fn check(root: &Path) -> Vec<String> {
    let read = |file: &str| fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"));
    let manifest = match read("Cargo.toml") {
        Ok(manifest) => manifest,
        Err(error) => return vec![error],
    };
    let Some(version) = workspace(&manifest) else {
        return vec!["Cargo.toml: no version in [workspace.package]".to_owned()];
    };
    let mut findings: Vec<String> = manifest
        .lines()
        .filter(|line| line.starts_with("tautline-") && line.contains("version = "))
        .filter(|line| between(line, "version = \"", "\"") != Some(version))
        .map(|line| format!("Cargo.toml: {line}: not {version}"))
        .collect();
    for (file, before, behind) in PLACES {
        findings.extend(match read(file) {
            Ok(text) => match between(&text, before, behind) {
                Some(found) if found == version => None,
                found => Some(format!("{file}: {}, not {version}", found.unwrap_or("no version"))),
            },
            Err(error) => Some(error),
        });
    }
    findings
}

/// Returns the version of the workspace's packages.
fn workspace(manifest: &str) -> Option<&str> {
    let (_, package) = manifest.split_once("[workspace.package]")?;
    between(package, "version = \"", "\"")
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(behind).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_stands_between() {
        let manifest =
            "[package]\nversion = \"9\"\n[workspace.package]\nedition = \"2024\"\nversion = \"0.1.0\"\n";
        assert_eq!(workspace(manifest), Some("0.1.0"));
        assert_eq!(between("<Version>1.2</Version>", "<Version>", "</Version>"), Some("1.2"));
        assert_eq!(between("<Version>1.2", "<Version>", "</Version>"), None);
    }
}
