//! `taut keygen`: a CURVE key pair, or certificates for tests.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use tautline::curve::KeyPair;
use tautline_proto::Secret;

use crate::args::Keygen;
use crate::config::expand;
use crate::failure::{Failure, Result};

#[cfg_attr(not(feature = "tls"), path = "keygen/no_authority.rs")]
mod authority;

/// Prints the pair, or writes it into a file that only its owner may read.
pub fn run(args: &Keygen) -> Result<()> {
    if let Some(folder) = args.ca.as_deref().map(expand) {
        return authority::make(args, &folder);
    }
    let pair = KeyPair::generate()?;
    let secret = Secret::new(pair.secret.expose_z85());
    let text = Secret::new(format!(
        "# A CURVE key pair, made by `taut keygen`. Give only the public key to others.\n\
         public = \"{}\"\nsecret = \"{}\"\n",
        pair.public, *secret
    ));
    let Some(path) = args.out.as_deref().map(expand) else { return crate::print(&text) };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    match written {
        Ok(()) => crate::print(&format!("{}\n", pair.public)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Failure::failed(format!("{}: the file exists already", path.display())).hint(
                "this protects a key that may be in use: choose another name, or remove the file first",
            ))
        }
        Err(error) => Err(Failure::file(&path, &error)),
    }
}
