//! Files with CURVE keys, as `taut keygen` writes them: `public = "..."`, and in a key pair also
//! `secret = "..."`. Each key has 40 characters of Z85 (RFC 32). A line that begins with `#` is a
//! comment. A line that is only a key is a public key.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Number of characters of a key in Z85.
const LENGTH: usize = 40;
/// Maximum size of a file in bytes: enough for thousands of keys.
const MAX_FILE_SIZE: u64 = 1 << 20;
/// Description of a fault in a file of public keys.
const NO_KEY: &str = "has a line that is not a public key of 40 characters";

/// A key pair, both keys in Z85. The secret key is overwritten in memory when it is dropped.
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
/// The system's error, or `InvalidData` for a file without exactly one key of each kind.
pub fn read_pair(path: &Path) -> io::Result<Pair> {
    let text = read(path).map_err(|error| with_path(path, &error))?;
    let keys = |name| lines(&text).filter(move |line| line.name == name).map(|line| line.key);
    let (mut publics, mut secrets) = (keys("public"), keys("secret"));
    match (publics.next(), secrets.next(), publics.next(), secrets.next()) {
        (Some(Some(public)), Some(Some(secret)), None, None) => {
            Ok(Pair { public: public.to_owned(), secret: Zeroizing::new(secret.to_owned()) })
        }
        _ => Err(invalid_data(path, "has no key pair: `public = \"...\"` and `secret = \"...\"`")),
    }
}

/// Reads the public keys of one file.
///
/// # Errors
/// The system's error, or `InvalidData` for a line that is not a key.
pub fn read_public_keys(path: &Path) -> io::Result<Vec<String>> {
    let (keys, is_whole) = read_valid_keys(path).map_err(|error| with_path(path, &error))?;
    if is_whole { Ok(keys) } else { Err(invalid_data(path, NO_KEY)) }
}

/// The clients that may connect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clients {
    /// Public keys, each with the user id of its owner, which is the name of the file without its
    /// extension. Sorted by file name.
    pub keys: Vec<(String, String)>,
    /// Error messages: one for each file that cannot be read or has an invalid line.
    pub faults: Vec<String>,
    /// Files of the folder whose name is not `NAME.pub`, and which therefore admit no client.
    pub ignored: Vec<PathBuf>,
    /// True if the system could not read one of the files, so that another try may help.
    pub is_partial: bool,
}

/// Reads the public keys of a file, or of the files `NAME.pub` of a folder. Each line and each file
/// counts separately: a malformed one admits no client and does not affect the others.
///
/// # Errors
/// The system's error: the file or the folder is missing or cannot be read, or the process lacks a
/// descriptor or memory for one of the files.
pub fn read_clients(path: &Path) -> io::Result<Clients> {
    let mut clients = Clients::default();
    if !path.is_dir() {
        match read_valid_keys(path) {
            Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(with_path(path, &error)),
            read => clients.add(path, read),
        }
        return Ok(clients);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| with_path(path, &error))? {
        let entry = entry.map_err(|error| with_path(path, &error))?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    for file in files {
        if file.extension().is_none_or(|extension| extension != "pub") {
            clients.ignored.push(file);
            continue;
        }
        match read_valid_keys(&file) {
            Err(error) if is_out_of_resources(&error) => return Err(with_path(&file, &error)),
            // The file was removed a moment ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => clients.add(&file, read),
        }
    }
    Ok(clients)
}

impl Clients {
    /// Adds the keys of a file, or the reason why it has no keys.
    fn add(&mut self, file: &Path, read: io::Result<(Vec<String>, bool)>) {
        match read {
            Ok((keys, is_whole)) => {
                self.keys.extend(keys.into_iter().map(|key| (key, user_id_of(file))));
                if !is_whole {
                    self.faults.push(invalid_data(file, NO_KEY).to_string());
                }
            }
            Err(error) => {
                self.is_partial |= error.kind() != io::ErrorKind::InvalidData;
                self.faults.push(with_path(file, &error).to_string());
            }
        }
    }
}

/// Returns the user id of the clients whose keys are in this file.
pub(crate) fn user_id_of(file: &Path) -> String {
    file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads the valid public keys of a file. The flag is true if all its lines are valid.
fn read_valid_keys(path: &Path) -> io::Result<(Vec<String>, bool)> {
    let (mut keys, mut is_whole) = (Vec::new(), true);
    for line in lines(&read(path)?).filter(|line| line.name != "secret") {
        match line {
            Line { name: "public" | "", key: Some(key) } => keys.push(key.to_owned()),
            _ => is_whole = false,
        }
    }
    Ok((keys, is_whole))
}

fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let file = crate::file::open(path)?;
    // Reserve the whole length first, so that growing leaves no copy of a key in memory.
    let length = file.metadata()?.len().min(MAX_FILE_SIZE) as usize;
    text.try_reserve_exact(length + 1).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let length = file.take(MAX_FILE_SIZE + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_FILE_SIZE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is longer than 1 MiB"));
    }
    Ok(text)
}

/// True if the process has run out of descriptors or memory, so that the error does not concern the
/// file.
pub fn is_out_of_resources(error: &io::Error) -> bool {
    // Numbers of ENFILE and EMFILE on every Unix.
    let descriptors = cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24));
    descriptors || error.kind() == io::ErrorKind::OutOfMemory
}

struct Line<'a> {
    name: &'a str,
    /// `None` if the text is not a key.
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

/// A key in Z85 may also begin with `#`.
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

/// Makes an error about the content of a file.
fn invalid_data(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {what}", path.display()))
}

/// Adds the path of the file to an error.
fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
