//! Files with CURVE keys, as `taut keygen` writes them: `public = "..."`, and in a key pair
//! `secret = "..."`, each of 40 characters of Z85 (RFC 32). A line that begins with `#` is a
//! comment. One that is a key and nothing else is a public key.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// The characters of a key in Z85.
const LENGTH: usize = 40;
/// The longest file, in bytes: thousands of keys.
const LONGEST: u64 = 1 << 20;

/// A key pair; both in Z85. The secret one is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The public key.
    pub public: String,
    /// The secret key.
    pub secret: Zeroizing<String>,
}

/// Reads a key pair.
///
/// # Errors
/// The system's; `InvalidData` for a file that has not exactly one of each key.
pub fn pair(path: &Path) -> io::Result<Pair> {
    let text = read(path)?;
    let keys = |name| lines(&text).filter(move |line| line.name == name).map(|line| line.key);
    let (mut publics, mut secrets) = (keys("public"), keys("secret"));
    match (publics.next(), secrets.next(), publics.next(), secrets.next()) {
        (Some(Some(public)), Some(Some(secret)), None, None) => {
            Ok(Pair { public: public.to_owned(), secret: Zeroizing::new(secret.to_owned()) })
        }
        _ => Err(wrong(path, "has no key pair: `public = \"...\"` and `secret = \"...\"`")),
    }
}

/// Reads the public keys of a file, or of all files of a folder but hidden ones.
///
/// # Errors
/// The system's; `InvalidData` for a line that is no key. A key that is not understood must not
/// shut its owner out without a word.
pub fn publics(path: &Path) -> io::Result<Vec<String>> {
    Ok(owners(path)?.into_iter().map(|(key, _)| key).collect())
}

/// As [`publics`], with the user id of each key's owner: the name of the file that has the key,
/// without its extension. Files come in the order of their names.
///
/// # Errors
/// As [`publics`].
pub fn owners(path: &Path) -> io::Result<Vec<(String, String)>> {
    let mut files: Vec<PathBuf> = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if !is_hidden && entry.path().is_file() {
                let place = files.partition_point(|other| *other < entry.path());
                files.insert(place, entry.path());
            }
        }
    } else {
        files.push(path.to_owned());
    }
    let mut all = Vec::new();
    for file in files {
        let mut keys = Vec::new();
        publics_of(&file, &mut keys)?;
        all.extend(keys.into_iter().map(|key| (key, owner(&file))));
    }
    Ok(all)
}

/// The user id of those whose keys are in this file.
pub(crate) fn owner(file: &Path) -> String {
    file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn publics_of(path: &Path, all: &mut Vec<String>) -> io::Result<()> {
    let text = read(path)?;
    for line in lines(&text).filter(|line| line.name != "secret") {
        match line {
            Line { name: "public" | "", key: Some(key) } => all.push(key.to_owned()),
            _ => return Err(wrong(path, "has a line that is no public key of 40 characters")),
        }
    }
    Ok(())
}

fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let file = crate::file::open(path).map_err(|error| with(path, &error))?;
    // In one piece, so that no copy is left in memory.
    text.reserve(file.metadata()?.len().min(LONGEST) as usize + 1);
    let length = file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| with(path, &error))?;
    if length as u64 > LONGEST { Err(wrong(path, "is longer than 1 MiB")) } else { Ok(text) }
}

struct Line<'a> {
    name: &'a str,
    /// `None`: what stands there is no key.
    key: Option<&'a str>,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_comment(line)).map(|line| {
        let (name, key) =
            match line.split_once(" = ").or_else(|| line.split_once("=\"").filter(|_| quoted(line))) {
                Some((name, key)) => (name.trim(), key.trim().trim_matches('"')),
                None => ("", line),
            };
        Line { name, key: is_key(key).then_some(key) }
    })
}

/// Z85 has a `#`, too.
fn is_comment(line: &str) -> bool {
    line.starts_with('#') && !is_key(line)
}

fn quoted(line: &str) -> bool {
    line.ends_with('"')
}

fn is_key(text: &str) -> bool {
    let is_z85 = |byte: u8| byte.is_ascii_alphanumeric() || b".-:+=^!/*?&<>()[]{}@%$#".contains(&byte);
    text.len() == LENGTH && text.bytes().all(is_z85)
}

fn wrong(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {what}", path.display()))
}

fn with(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
