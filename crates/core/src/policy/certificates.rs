//! TLS that a policy puts on: certificates and keys in files, read again when they change.
//!
//! A stream takes what there is when it begins. Files that have changed into something of no use
//! leave it as it was until they are good again: of a certificate and its key one may be there
//! before the other.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::trust::stamps;
use super::{Asked, LOOK, Proof, Stamp, complaint};
use crate::error::Error;
use crate::options::Options;
use crate::sync::{Arc, Mutex, lock};
use crate::transport::{Carrying, tls};
use tautline_policy::{Call, TlsTrust, TlsWrap, Wrap};
use tautline_proto::Secret;
use tautline_proto::tls::{BadCredentials, Identity, TlsConfig, Versions};

/// The longest file, in bytes: as many certificates as a system trusts.
const LONGEST: u64 = 1 << 20;

/// The certificates of one endpoint.
pub(crate) struct Certificates {
    files: TlsWrap,
    side: Side,
    known: Mutex<Known>,
}

enum Side {
    Server,
    /// A client of the server that has to prove this name.
    Client(String),
}

struct Known {
    config: TlsConfig,
    /// How often they have been read.
    number: u64,
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    looked: Instant,
    /// What was told last.
    told: String,
}

impl Certificates {
    /// Reads them. The error says what is wrong.
    pub(super) fn open(wrap: &Wrap, asked: &Asked<'_>) -> Result<Arc<Self>, String> {
        let files = wrap.tls.clone().unwrap_or_default();
        let side = match asked.call {
            Call::Bind => Side::Server,
            _ => Side::Client(name(&files, asked).ok_or_else(|| {
                format!("`servers` of `{}` has no name for it, and the endpoint has no host", wrap.name)
            })?),
        };
        let stamps = files.paths().flat_map(stamps).collect();
        let config = read(&files, &side).map_err(|what| format!("`{}`: {what}", wrap.name))?.numbered(1);
        let known = Known { config, number: 1, stamps, looked: Instant::now(), told: String::new() };
        Ok(Arc::new(Certificates { files, side, known: Mutex::new(known) }))
    }

    /// Carries the streams of the endpoint.
    pub(super) fn carrying(
        self: &Arc<Self>,
        asked: &Asked<'_>,
        options: &Options,
    ) -> Result<Carrying, Error> {
        let own = self.clone();
        tls::around(asked.parsed, matches!(self.side, Side::Server), options, Arc::new(move || own.now().0))
    }

    /// Whether a client may be here, by the certificates that it has shown.
    pub(super) fn admit(&self, proof: &mut Proof) -> bool {
        if self.files.clients.is_none() {
            return true;
        }
        let (config, number) = self.now();
        proof.passes(number, |certificates| config.admits(certificates))
    }

    /// What they are now, and its number.
    fn now(&self) -> (TlsConfig, u64) {
        let mut known = lock(&self.known);
        if known.looked.elapsed() >= LOOK {
            known.looked = Instant::now();
            let stamps: Vec<_> = self.files.paths().flat_map(stamps).collect();
            if stamps != known.stamps {
                match read(&self.files, &self.side) {
                    Ok(config) => {
                        known.number += 1;
                        known.config = config.numbered(known.number);
                        known.stamps = stamps;
                        known.told.clear();
                    }
                    // Looked at again: the other half may come.
                    Err(fault) if fault == known.told => {}
                    Err(fault) => {
                        drop(complaint::say_later(&format!("{fault}; the certificates stay as they were")));
                        known.told = fault;
                    }
                }
            }
        }
        (known.config.clone(), known.number)
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The name that the server has to prove.
fn name(files: &TlsWrap, asked: &Asked<'_>) -> Option<String> {
    files.server(asked.endpoint).map(str::to_owned).or_else(|| tls::host(asked.parsed))
}

fn read(files: &TlsWrap, side: &Side) -> Result<TlsConfig, String> {
    let pem = |path: &Option<PathBuf>| path.as_deref().map(all_of).transpose().map(Option::unwrap_or_default);
    let (certificates, key) = (pem(&files.certificate)?, pem(&files.key)?);
    let own = Identity { certificates: &certificates, key: &key };
    let config = match side {
        Side::Server => {
            if files.certificate.is_none() {
                return Err("it has no `certificate` and `key`, which a server needs".into());
            }
            let clients = files.clients.as_deref().map(all_of).transpose()?;
            TlsConfig::server(own, clients.as_ref().map(|pem| &pem[..]), Versions::Tls13)
        }
        Side::Client(name) => {
            let (trusted, further) = match &files.trust {
                Some(TlsTrust::File(path)) => {
                    let trusted = all_of(path)?;
                    if trusted.is_empty() {
                        return Err(format!("{}: there is nothing in it to trust", path.display()));
                    }
                    (trusted, Vec::new())
                }
                Some(TlsTrust::System) => (Secret::default(), tls::of_system()),
                None => return Err("it has no `trust`, which a client needs".into()),
            };
            let own = files.certificate.is_some().then_some(own);
            TlsConfig::client(&trusted, further, own, Some(name), name, Versions::Tls13)
        }
    };
    config.map_err(|fault| {
        let path = match (fault, side, &files.trust) {
            (BadCredentials::Trust, Side::Client(_), Some(TlsTrust::File(path))) => Some(path),
            (BadCredentials::Trust, ..) => files.clients.as_ref(),
            (BadCredentials::Key, ..) => files.key.as_ref(),
            _ => files.certificate.as_ref(),
        };
        path.map_or_else(|| fault.to_string(), |path| format!("{}: {fault}", path.display()))
    })
}

/// The text of a file, or of all files of a folder but hidden ones; wiped after use.
fn all_of(path: &Path) -> Result<Secret<Vec<u8>>, String> {
    let with = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut all = Secret::new(Vec::new());
    if !path.is_dir() {
        append(path, &mut all).map_err(|error| with(path, error))?;
        return Ok(all);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| with(path, error))? {
        let entry = entry.map_err(|error| with(path, error))?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    for file in files {
        append(&file, &mut all).map_err(|error| with(&file, error))?;
        all.push(b'\n');
    }
    Ok(all)
}

fn append(path: &Path, all: &mut Vec<u8>) -> std::io::Result<()> {
    let file = tautline_policy::file::open(path)?;
    // In one piece, so that no copy is left in memory.
    all.reserve(file.metadata()?.len().min(LONGEST) as usize + 1);
    let length = file.take(LONGEST + 1).read_to_end(all)?;
    if length as u64 > LONGEST {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is longer than 1 MiB"));
    }
    Ok(())
}
