//! TLS that a policy adds: certificates and keys in files, read again when they change.
//!
//! A stream uses the configuration at its start. If a certificate and key are unusable, the former
//! ones stay in force until the new ones are valid, because one of the two may be replaced before
//! the other. Authorities take effect independently of them: each file counts separately, and an
//! authority whose file is removed is no longer trusted.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::trust::PATIENCE;
use crate::reload::{Read, ReloadedValue};
use tautline_core::Error;
use tautline_core::host::{CallRequest, Permission, Proof};
use tautline_io::certificates::of_system;
use tautline_io::stderr_report;
use tautline_policy::file::append;
use tautline_policy::keys::is_out_of_resources;
use tautline_policy::{TlsTrust, TlsWrap, Wrap};
use tautline_proto::Secret;
use tautline_proto::tls::{CredentialPart, Identity, TlsConfig, Versions, trusted_certificates};
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum size of a file in bytes: room for as many certificates as a system trusts.
const LONGEST: u64 = 1 << 20;

/// The certificates of one endpoint.
pub(super) struct Certificates {
    files: TlsWrap,
    side: TlsRole,
    known: Mutex<CertificateState>,
}

enum TlsRole {
    Server,
    /// A client. The server has to prove this name.
    Client(String),
}

struct CertificateState {
    config: TlsConfig,
    /// Revision of the current configuration. Changes with each reload.
    revision: u64,
    own: ReloadedValue<Own>,
    authorities: ReloadedValue<Authorities>,
    /// The faults of authorities that were reported last.
    reported_faults: Vec<String>,
}

/// Certificate and key of this host, in PEM.
#[derive(Default)]
struct Own {
    certificate: Secret<Vec<u8>>,
    key: Secret<Vec<u8>>,
}

/// Authorities for the certificates of peers, in PEM.
#[derive(Default)]
struct Authorities {
    pem: Vec<u8>,
    /// Files that are not trusted, with the reasons.
    faults: Vec<String>,
}

/// Returns the faults of the files of a wrap, for `taut policy`.
pub fn certificate_faults(files: &TlsWrap) -> Vec<String> {
    let mut faults = Vec::new();
    if files.certificate.is_some() {
        faults.extend(own(files, &TlsRole::Server).err());
    }
    let trust = match &files.trust {
        Some(TlsTrust::File(path)) => Some(path),
        _ => None,
    };
    for path in trust.into_iter().chain(&files.clients) {
        match authorities(path) {
            Ok((found, _)) => faults.extend(found.faults),
            Err(error) => faults.push(format!("{}: {error}", path.display())),
        }
    }
    faults
}

impl Certificates {
    /// Reads the files. The error describes the fault.
    pub(super) fn open(wrap: &Wrap, asked: &CallRequest<'_>) -> Result<Arc<Self>, String> {
        let files = wrap.tls.clone().unwrap_or_default();
        let side = match asked.is_bind() {
            true => TlsRole::Server,
            false => TlsRole::Client(name(&files, asked).ok_or_else(|| {
                format!(
                    "`servers` of `{}` has no name for this endpoint, and the endpoint has no host",
                    wrap.name
                )
            })?),
        };
        let by = |what| format!("`{}`: {what}", wrap.name);
        if let Some(lack) = side.missing_part(&files) {
            return Err(by(lack.to_owned()));
        }
        let own_paths = [&files.certificate, &files.key].into_iter().flatten().cloned().collect();
        let own = ReloadedValue::open(own_paths, || own(&files, &side)).map_err(by)?;
        let path = side.authorities(&files);
        let authorities = ReloadedValue::open(path.into_iter().cloned().collect(), || match path {
            Some(path) => {
                let all = authorities(path).map_err(|error| format!("{}: {error}", path.display()))?;
                if all.0.pem.is_empty() && matches!(side, TlsRole::Client(_)) {
                    return Err(format!("{}: the file contains no certificate to trust", path.display()));
                }
                // A fault in the only file is a fault of the whole set.
                match all.0.faults.first() {
                    Some(fault) if all.0.pem.is_empty() => Err(fault.clone()),
                    _ => Ok(all),
                }
            }
            None => Ok(Default::default()),
        });
        let authorities = authorities.map_err(by)?;
        let config = config(&files, &side, own.get(), &authorities.get().pem).map_err(by)?.with_revision(1);
        let mut known =
            CertificateState { config, revision: 1, own, authorities, reported_faults: Vec::new() };
        known.report_faults();
        Ok(Arc::new(Certificates { files, side, known: Mutex::new(known) }))
    }

    /// Wraps the endpoint in TLS with these certificates.
    pub(super) fn wrap(
        self: &Arc<Self>,
        asked: &CallRequest<'_>,
        permission: &mut Permission,
    ) -> Result<(), Error> {
        let own = self.clone();
        permission.wrap_in_tls(asked, Arc::new(move || own.current_config().0))
    }

    /// True if the certificates that a client has shown are trusted.
    pub(super) fn admit(&self, proof: &mut Proof) -> bool {
        if self.files.clients.is_none() {
            return true;
        }
        let (config, revision) = self.current_config();
        proof.passes(revision, |certificates| config.admits(certificates))
    }

    /// False if the authorities have changed and could not be read for a long time, so that new
    /// peers cannot be checked against them.
    pub(super) fn is_current(&self) -> bool {
        drop(self.current_config());
        !lock(&self.known).authorities.has_failed_for(PATIENCE)
    }

    /// Returns the current configuration and its revision.
    fn current_config(&self) -> (TlsConfig, u64) {
        let mut known = lock(&self.known);
        let CertificateState { own: mine, authorities: theirs, .. } = &mut *known;
        let stay = |fault: String, what| {
            drop(stderr_report::report_in_background(&format!("{fault}; the last valid {what} in force")))
        };
        let renewed = mine.refresh(|| own(&self.files, &self.side)).unwrap_or_else(|fault| {
            stay(fault, "certificate and key stay");
            false
        });
        let path = self.side.authorities(&self.files);
        let changed = theirs.refresh(|| path.map_or_else(|| Ok(Default::default()), |path| read(path)));
        let changed = changed.unwrap_or_else(|fault| {
            stay(fault, "authorities stay");
            false
        });
        if changed {
            known.report_faults();
        }
        if renewed || changed {
            // Both parts were checked when they were read.
            match config(&self.files, &self.side, known.own.get(), &known.authorities.get().pem) {
                Ok(config) => {
                    known.revision += 1;
                    known.config = config.with_revision(known.revision);
                }
                Err(fault) => stay(fault, "certificates stay"),
            }
        }
        (known.config.clone(), known.revision)
    }
}

impl CertificateState {
    /// Reports new faults.
    fn report_faults(&mut self) {
        let faults = &self.authorities.get().faults;
        for fault in faults.iter().filter(|fault| !self.reported_faults.contains(fault)) {
            drop(stderr_report::report_in_background(&format!("{fault}; the file is not trusted")));
        }
        self.reported_faults.clone_from(faults);
    }
}

impl TlsRole {
    /// The file or folder of the authorities for the certificates of peers.
    fn authorities<'f>(&self, files: &'f TlsWrap) -> Option<&'f PathBuf> {
        match (self, &files.trust) {
            (TlsRole::Server, _) => files.clients.as_ref(),
            (TlsRole::Client(_), Some(TlsTrust::File(path))) => Some(path),
            (TlsRole::Client(_), _) => None,
        }
    }

    /// Returns the missing part of a wrap for this side.
    fn missing_part(&self, files: &TlsWrap) -> Option<&'static str> {
        match self {
            TlsRole::Server if files.certificate.is_none() => {
                Some("a server needs `certificate` and `key`, which are missing")
            }
            TlsRole::Client(_) if files.trust.is_none() => Some("a client needs `trust`, which is missing"),
            _ => None,
        }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The name that the server has to prove.
fn name(files: &TlsWrap, asked: &CallRequest<'_>) -> Option<String> {
    files.server(asked.endpoint()).map(str::to_owned).or_else(|| asked.host())
}

/// Certificate and key, which belong together.
fn own(files: &TlsWrap, side: &TlsRole) -> Read<Own> {
    let pem = |path: &Option<PathBuf>| {
        let mut pem = Secret::new(Vec::new());
        if let Some(path) = path {
            append(path, LONGEST, &mut pem).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok::<_, String>(pem)
    };
    let own = Own { certificate: pem(&files.certificate)?, key: pem(&files.key)? };
    config(files, side, &own, &[])?;
    Ok((own, true))
}

fn config(files: &TlsWrap, side: &TlsRole, own: &Own, authorities: &[u8]) -> Result<TlsConfig, String> {
    let own = Identity { certificates: &own.certificate, key: &own.key };
    let config = match side {
        TlsRole::Server => {
            let clients = files.clients.as_ref().map(|_| authorities);
            TlsConfig::server(own, clients, Versions::Tls13)
        }
        TlsRole::Client(name) => {
            let further = match &files.trust {
                Some(TlsTrust::System) => of_system(),
                _ => Vec::new(),
            };
            let own = files.certificate.is_some().then_some(own);
            TlsConfig::client(authorities, further, own, Some(name), name, Versions::Tls13)
        }
    };
    config.map_err(|fault| {
        let path = match fault.part() {
            CredentialPart::Certificate => files.certificate.as_ref(),
            CredentialPart::Key => files.key.as_ref(),
            CredentialPart::Trust => side.authorities(files),
            CredentialPart::Name => None,
        };
        path.map_or_else(|| fault.to_string(), |path| format!("{}: {fault}", path.display()))
    })
}

/// Reads changed authorities. If the file or folder is gone, no authority is trusted.
fn read(path: &Path) -> Read<Authorities> {
    authorities(path).or_else(|error| match error.kind() {
        ErrorKind::NotFound => {
            let faults = vec![format!("{}: {error}", path.display())];
            Ok((Authorities { faults, ..Authorities::default() }, true))
        }
        _ => Err(format!("{}: {error}", path.display())),
    })
}

/// The authorities in a file, or in the files `NAME.pem` and `NAME.crt` of a folder. Each file
/// counts separately. The boolean is false if the system could not read one of them.
fn authorities(path: &Path) -> std::io::Result<(Authorities, bool)> {
    let (mut all, mut is_whole) = (Authorities::default(), true);
    let is_folder = path.is_dir();
    let mut files = Vec::new();
    if is_folder {
        for entry in std::fs::read_dir(path)? {
            let file = entry?.path();
            let is_hidden = file.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
            let is_pem = file.extension().is_some_and(|extension| extension == "pem" || extension == "crt");
            if is_pem && !is_hidden && file.is_file() {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    for file in files {
        let mut pem = Vec::new();
        let fault = match append(&file, LONGEST, &mut pem) {
            Ok(()) => match trusted_certificates(&pem) {
                Ok(_) => {
                    all.pem.append(&mut pem);
                    all.pem.push(b'\n');
                    continue;
                }
                Err(fault) => fault.to_string(),
            },
            Err(error) if error.kind() == ErrorKind::InvalidData => error.to_string(),
            Err(error) if !is_folder || is_out_of_resources(&error) => return Err(error),
            Err(error) => {
                is_whole = false;
                error.to_string()
            }
        };
        all.faults.push(format!("{}: {fault}", file.display()));
    }
    Ok((all, is_whole))
}
