//! `taut names`: prints the endpoints of names, as each resolver knows them.

use std::collections::BTreeSet;
use std::fmt::Write;

use tautline_names::{NamesConfig as Known, RESOLVERS, is_name, known_names};

use crate::args::Names;
use crate::failure::{Failure, Result};

/// Prints the names, or serves them.
pub fn run(args: &Names) -> Result<()> {
    let names = Known::read(&args.file, &can_be_connected).map_err(Failure::failed)?;
    if args.serve {
        return crate::bridge::serve_names(&args.file, &names);
    }
    let asked: BTreeSet<String> = match args.names.as_slice() {
        [] => known_names(&names).map_err(|error| {
            let folder = names.folder.as_ref().map(|folder| folder.path.display().to_string());
            Failure::failed(format!("{}: {error}", folder.unwrap_or_default()))
        })?,
        given => given.iter().map(|name| name.trim_start_matches("name://").to_owned()).collect(),
    };
    let mut text = String::new();
    let mut away = 0;
    for name in &asked {
        if !is_name(name) {
            return Err(Failure::usage(format!(
                "{name:?} is not a valid name: use letters, digits, `-`, `_`, and dots between them"
            )));
        }
        let _ = writeln!(text, "{name}");
        for resolver in RESOLVERS {
            let title = resolver.title();
            match resolver.resolve(&names, name) {
                Ok(answer) => {
                    for entry in answer.entries {
                        let _ = writeln!(text, "  {}  ({title})", entry.endpoints.join("  "));
                    }
                    for endpoint in answer.refused {
                        let _ = writeln!(
                            text,
                            "  {:?} is ignored, because a name must not contain it  ({title})",
                            endpoint
                        );
                    }
                }
                Err(why) => {
                    away += 1;
                    let _ = writeln!(text, "  {title} failed: {why}");
                }
            }
        }
    }
    crate::print(&text)?;
    if away > 0 { Err(Failure::failed(String::new())) } else { Ok(()) }
}

/// True if a program would accept an endpoint of the file.
fn can_be_connected(endpoint: &str) -> bool {
    tautline::endpoint::check(endpoint).is_ok() && !endpoint.contains('*') && !endpoint.ends_with(":0")
}
