//! `--policy`: restricts the sockets of the program. The policy is checked before the program
//! starts, so that an error is reported here. The library reads it again.

use std::ffi::OsString;
use std::path::Path;

use tautline_policy::file::read_text;
use tautline_policy::{BUILT_IN, Policy};

use crate::config::{Config, expand};
use crate::failure::{Failure, Result};

/// Returns the value of `TAUT_POLICY` for a built-in policy, a file, or `@NAME` of a saved policy.
pub fn value(named: &str) -> Result<OsString> {
    let named = match named.strip_prefix('@') {
        Some(name) => Config::load()?.policy(name)?.to_owned(),
        None => named.to_owned(),
    };
    if Policy::built_in(&named).is_some() {
        return Ok(named.into());
    }
    let path = expand(Path::new(&named));
    let text = read_text(&path).map_err(|error| {
        let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        Failure::file(&path, &error)
            .hint(format!("--policy needs {}, a file, or @NAME of a saved policy", known.join(", ")))
    })?;
    Policy::parse(&text).map_err(|fault| Failure::usage(format!("{}: {fault}", path.display())))?;
    let path = std::path::absolute(&path).map_err(|error| Failure::file(&path, &error))?;
    Ok(path.into())
}
