//! Counts the import cycles between the files of the engine.
//!
//! A file imports another if it names an item of it by a path (`crate::a::B`, `super::B`, `self::b::C`, or `b::C` of its own module
//! `b`), outside of tests. A re-export (`pub(crate) use b::C;`) is no import: a file that names `a::C` then imports the file of `b`.
//! A module and the modules inside it are one unit, so imports between them do not count. A cycle is a largest set of at least two files
//! that import each other, directly or through others of the set.
//!
//! The number must not grow beyond the line `import-cycles` of `xtask/layers.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::scan::{self, Source};

/// For each module, the modules that it imports. `a/b` is `crate::a::b`; the crate root is empty.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the cycles, if their number is not that of the table.
pub fn check(root: &Path, table: &str) -> Vec<String> {
    let sources = scan::sources(&root.join("crates/core/src"));
    let sources: Vec<&Source> = sources.iter().filter(|source| !source.is_test).collect();
    let found = cycles(&graph(&sources));
    let line = table.lines().find_map(|line| line.strip_prefix("import-cycles:"));
    let Some(allowed) = line.and_then(|number| number.trim().parse::<usize>().ok()) else {
        return vec!["xtask/layers.txt: no line `import-cycles: NUMBER`".to_owned()];
    };
    if found.len() == allowed {
        return Vec::new();
    }
    let mut findings =
        vec![format!("{} import cycles in crates/core/src, xtask/layers.txt says {allowed}:", found.len())];
    findings.extend(found.iter().map(|files| files.join(" ")));
    findings
}

fn graph(sources: &[&Source]) -> Graph {
    let modules: BTreeSet<String> =
        sources.iter().map(|source| scan::module_path(&source.path).join("/")).collect();
    let mut exports: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut imports: Vec<(String, Vec<String>)> = Vec::new();
    for source in sources {
        let module = scan::module_path(&source.path).join("/");
        let code: String = source.lines().flat_map(|(_, code, _)| [code, "\n"]).collect();
        for (path, exported) in paths(&code, &module, &modules) {
            match (exported, path.last()) {
                (true, Some(name)) => {
                    let of = resolve(&path, &modules).0;
                    exports.insert((module.clone(), name.clone()), of);
                }
                _ => imports.push((module.clone(), path)),
            }
        }
    }
    let mut graph = Graph::new();
    for (module, path) in imports {
        let (mut to, mut item) = resolve(&path, &modules);
        // A re-export may be of another one.
        while let Some(next) = item.as_ref().and_then(|name| exports.get(&(to.clone(), name.clone()))) {
            if *next == to || *next == module {
                item = None;
            }
            to.clone_from(next);
        }
        if !is_inside(&to, &module) && !is_inside(&module, &to) {
            graph.entry(module).or_default().insert(to);
        }
    }
    graph
}

/// True if a module is another one, or lies in it.
fn is_inside(inner: &str, outer: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// Returns the module of a path from the crate root, and the item in it, if one is named.
fn resolve(path: &[String], modules: &BTreeSet<String>) -> (String, Option<String>) {
    let mut module = String::new();
    for (at, name) in path.iter().enumerate() {
        let next = if at == 0 { name.clone() } else { format!("{module}/{name}") };
        if !modules.contains(&next) {
            return (module, Some(name.clone()));
        }
        module = next;
    }
    (module, None)
}

/// Returns the paths from the crate root that a module names, and true for those that it re-exports.
fn paths(code: &str, module: &str, modules: &BTreeSet<String>) -> Vec<(Vec<String>, bool)> {
    let own: Vec<String> = module.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let mut found = Vec::new();
    for word in scan::words(code) {
        let at = word.as_ptr() as usize - code.as_ptr() as usize;
        let before = code[..at].trim_end();
        let after = &code[at + word.len()..];
        if before.ends_with("::") || before.ends_with('$') || !after.trim_start().starts_with("::") {
            continue;
        }
        let child = [own.as_slice(), &[word.to_owned()]].concat();
        let start = match word {
            "crate" => Vec::new(),
            "self" => own.clone(),
            "super" => own[..own.len().saturating_sub(1)].to_vec(),
            // A child, except in a group, whose first names are of another module.
            _ if modules.contains(&child.join("/")) && !before.ends_with(['{', ',']) => child,
            _ => continue,
        };
        let statement = before.rsplit([';', '}', '{']).next().unwrap_or_default().trim();
        let exported = statement.starts_with("pub") && statement.ends_with("use");
        let mut tree = Vec::new();
        expand(after, start, &mut tree);
        found.extend(tree.into_iter().map(|path| (path, exported)));
    }
    found
}

/// Reads the rest of a path behind its first name: `::a::{b, c::D}`. Adds each path. Returns the text behind it.
fn expand<'a>(text: &'a str, start: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let Some(rest) = text.trim_start().strip_prefix("::").map(str::trim_start) else {
        found.push(start);
        return text;
    };
    if let Some(mut group) = rest.strip_prefix('{') {
        loop {
            group = group.trim_start().trim_start_matches(',').trim_start();
            if group.is_empty() || group.starts_with('}') {
                return group.strip_prefix('}').unwrap_or(group);
            }
            let behind = expand_name(group, start.clone(), found);
            // A rename, a star, or text that is no path.
            let end = behind.find([',', '}']).unwrap_or(behind.len());
            group = &behind[end..];
        }
    }
    expand_name(rest, start, found)
}

fn expand_name<'a>(text: &'a str, start: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    match scan::words(text).next().filter(|name| text.starts_with(name)) {
        Some("self") => {
            found.push(start);
            &text["self".len()..]
        }
        Some("super") => {
            expand(&text["super".len()..], start[..start.len().saturating_sub(1)].to_vec(), found)
        }
        Some(name) => expand(&text[name.len()..], [start, vec![name.to_owned()]].concat(), found),
        None => {
            found.push(start);
            text
        }
    }
}

/// Returns the sets of modules that reach each other, each sorted.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let all: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|from| (from, reached(graph, from))).collect();
    let mut found = BTreeSet::new();
    for (from, to) in &all {
        let mutual = to.iter().filter(|to| all.get(*to).is_some_and(|back| back.contains(from)));
        let set: BTreeSet<String> = mutual.map(|name| (*name).clone()).collect();
        if set.len() > 1 {
            found.insert(set.into_iter().collect());
        }
    }
    found.into_iter().collect()
}

/// Returns the modules that one imports, directly or through others.
fn reached<'g>(graph: &'g Graph, from: &'g String) -> BTreeSet<&'g String> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        next.extend(graph.get(module).into_iter().flatten().filter(|to| seen.insert(*to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| {
                let code = scan::blank(text);
                let lines_before_tests = code.lines().count();
                Source {
                    path: (*path).into(),
                    text: (*text).into(),
                    code,
                    is_test: false,
                    lines_before_tests,
                }
            })
            .collect();
        cycles(&graph(&sources.iter().collect::<Vec<_>>()))
    }

    #[test]
    fn files_that_import_each_other_are_a_cycle() {
        let files = [("a.rs", "use crate::{b::{self, B}, c};"), ("b.rs", "use super::a::A;"), ("c.rs", "")];
        assert_eq!(found(&files), [["a", "b"]]);
        let files =
            [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "fn f(a: crate::a::A) {}")];
        assert_eq!(found(&files), [["a", "b", "c"]]);
    }

    #[test]
    fn a_parent_and_a_child_are_no_cycle() {
        assert!(found(&[("a.rs", "mod b;\nuse b::C;"), ("a/b.rs", "use super::A;")]).is_empty());
        let siblings =
            [("a.rs", "mod b; mod c;"), ("a/b.rs", "use super::c;"), ("a/c.rs", "use super::b::B;")];
        assert_eq!(found(&siblings), [["a/b", "a/c"]]);
    }

    #[test]
    fn a_reexport_leads_to_its_file() {
        let parent = ("a.rs", "mod b; mod c;\npub(crate) use b::B;\npub(crate) use c::C;");
        assert!(found(&[parent, ("a/b.rs", "use super::C;"), ("a/c.rs", "")]).is_empty());
        assert_eq!(
            found(&[parent, ("a/b.rs", "use super::C;"), ("a/c.rs", "use super::B;")]),
            [["a/b", "a/c"]]
        );
    }
}
