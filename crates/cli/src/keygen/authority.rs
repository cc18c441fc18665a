//! `taut keygen --ca`: an authority for tests, and certificates that it has signed.
//!
//! | file | |
//! |---|---|
//! | `ca.pem`, `ca-key.pem` | the authority: authority that both ends trust, and what signs |
//! | `server.pem`, `server-key.pem` | a server's, by the names of its hosts |
//! | `NAME.pem`, `NAME-key.pem` | a client's, by its name |
//!
//! Each file is replaced atomically, because a program may be watching it. A key is written before
//! its certificate.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tautline_proto::Secret;

use crate::args::Keygen;
use crate::failure::{Failure, Result};

const AUTHORITY: &str = "ca";
const SERVER: &str = "server";
/// Default hosts of the server certificate.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Start of the validity before now, because clocks differ.
const EARLIER: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Creates the files and prints their names.
pub fn make(args: &Keygen, folder: &Path) -> Result<()> {
    check(args, folder)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Failure::file(folder, &error))?;
    let key = if args.renew { old_key(folder)? } else { KeyPair::generate().map_err(wrong)? };
    let authority = authority(args)?;
    if !args.renew {
        let certificate = authority.self_signed(&key).map_err(wrong)?;
        write(folder, AUTHORITY, &certificate.pem(), &key)?;
    }
    let issuer = Issuer::new(authority, key);
    let hosts: Vec<String> =
        if args.host.is_empty() { HOSTS.map(str::to_owned).into() } else { args.host.clone() };
    sign(args, folder, SERVER, hosts, ExtendedKeyUsagePurpose::ServerAuth, &issuer)?;
    for client in &args.client {
        sign(args, folder, client, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth, &issuer)?;
    }
    crate::print(&describe(args, folder))
}

/// Checks the names of the clients. Fails if an existing file would be overwritten without
/// `--force`.
fn check(args: &Keygen, folder: &Path) -> Result<()> {
    for client in &args.client {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        let is_taken = [AUTHORITY, SERVER].contains(&client.as_str()) || client.ends_with("-key");
        if client.is_empty() || client.starts_with('.') || !client.chars().all(is_name) || is_taken {
            return Err(Failure::usage(format!("{client:?} is not a valid name of a client"))
                .hint("use letters, digits and -_.@, but not `ca`, `server`, or a name that ends in -key"));
        }
    }
    if args.force || args.renew {
        return Ok(());
    }
    let names = [AUTHORITY, SERVER].into_iter().chain(args.client.iter().map(String::as_str));
    let mut files = names.flat_map(|name| [path(folder, name), key_path(folder, name)]);
    match files.find(|file| fs::symlink_metadata(file).is_ok()) {
        None => Ok(()),
        Some(file) => Err(Failure::failed(format!("{}: the file exists already", file.display()))
            .hint("--renew keeps the authority and replaces the other files; --force replaces all files")),
    }
}

/// Returns the parameters of the authority, without its key.
fn authority(args: &Keygen) -> Result<CertificateParams> {
    let mut params = params(args, Vec::new(), "taut keygen --ca")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn params(args: &Keygen, hosts: Vec<String>, name: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(hosts).map_err(wrong)?;
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    params.not_before = (now - EARLIER).into();
    params.not_after = (now + DAY * args.days).into();
    Ok(params)
}

fn sign(
    args: &Keygen,
    folder: &Path,
    name: &str,
    hosts: Vec<String>,
    purpose: ExtendedKeyUsagePurpose,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<()> {
    let mut params = params(args, hosts, name)?;
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate().map_err(wrong)?;
    let certificate = params.signed_by(&key, issuer).map_err(wrong)?;
    write(folder, name, &certificate.pem(), &key)
}

/// Reads the key of the existing authority.
fn old_key(folder: &Path) -> Result<KeyPair> {
    let file = key_path(folder, AUTHORITY);
    let text = crate::security::read(&file)?;
    let text = std::str::from_utf8(&text).ok().and_then(|text| KeyPair::from_pem(text).ok());
    text.ok_or_else(|| {
        Failure::failed(format!("{}: the file contains no key", file.display()))
            .hint("--force makes a new authority")
    })
}

fn write(folder: &Path, name: &str, certificate: &str, key: &KeyPair) -> Result<()> {
    write_file(&key_path(folder, name), &Secret::new(key.serialize_pem()), 0o600)?;
    write_file(&path(folder, name), certificate, 0o644)
}

fn write_file(file: &Path, text: &str, mode: u32) -> Result<()> {
    let new = file.with_extension("new");
    let write = || -> io::Result<()> {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut into = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        into.write_all(text.as_bytes())?;
        into.sync_all()?;
        fs::rename(&new, file)
    };
    write().map_err(|error| Failure::file(file, &error))
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pem"))
}

fn key_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-key.pem"))
}

/// Describes the files and how to use them.
fn describe(args: &Keygen, folder: &Path) -> String {
    let folder = folder.display();
    let hosts = if args.host.is_empty() { HOSTS.join(", ") } else { args.host.join(", ") };
    let mut text =
        format!("{folder}/ca.pem      authority that both ends trust\n{folder}/server.pem  {hosts}\n");
    for client in &args.client {
        text.push_str(&format!("{folder}/{client}.pem  client {client}\n"));
    }
    text
}

fn wrong(error: rcgen::Error) -> Failure {
    Failure::failed(format!("no certificate: {error}"))
}
