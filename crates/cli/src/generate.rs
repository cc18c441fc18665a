//! Generates completion scripts and manual pages from the description of the command line. Also
//! prints the saved contexts.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, Completions, Contexts, Man};
use crate::config::{Config, expand};
use crate::endpoint;
use crate::failure::{Failure, Result};

/// Runs `taut completions`.
pub fn completions(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "taut", &mut script);
    crate::print(&String::from_utf8_lossy(&script))
}

/// Runs `taut man`.
pub fn man(args: &Man) -> Result<()> {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = args.out.as_deref().map(expand) else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command).render(&mut page);
        rendered.map_err(|error| Failure::failed(error.to_string()))?;
        return crate::print(&String::from_utf8_lossy(&page));
    };
    fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    clap_mangen::generate_to(Cli::command(), &folder).map_err(|error| Failure::file(&folder, &error))?;
    crate::print(&format!("{}\n", written(&folder)?))
}

fn written(folder: &Path) -> Result<String> {
    let entries = fs::read_dir(folder).map_err(|error| Failure::file(folder, &error))?;
    let pages =
        entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "1")).count();
    Ok(format!("{pages} pages in {0}: man -l {0}/taut.1", folder.display()))
}

/// Runs `taut contexts`.
pub fn contexts(args: &Contexts) -> Result<()> {
    let config = Config::load()?;
    if args.path {
        return crate::print(&format!("{}\n", config.path()?.display()));
    }
    let mut text = String::new();
    match &args.name {
        Some(name) if !args.save.is_empty() => {
            let endpoints = args.save.iter().map(|text| endpoint::resolve(text, false, &config));
            let endpoints: Vec<_> = endpoints.collect::<Result<_>>()?;
            let addresses = endpoints.into_iter().flat_map(|(found, _)| found).map(|one| one.address);
            config.save(name, &addresses.collect::<Vec<_>>())?;
        }
        Some(name) => {
            let shown =
                toml::to_string(config.context(name)?).map_err(|error| Failure::failed(error.to_string()))?;
            text += &shown;
        }
        None => {
            let width = config.contexts.keys().map(|name| name.len()).max().unwrap_or(0);
            for (name, saved) in &config.contexts {
                let endpoints: Vec<&str> = saved.endpoints().collect();
                text += &format!("@{name:width$}  {}\n", endpoints.join(" "));
            }
            if config.contexts.is_empty() {
                notice!("taut: no contexts are saved in {}", config.path()?.display());
            }
        }
    }
    crate::print(&text)
}
