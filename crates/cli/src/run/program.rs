//! Finds the file of a program, and checks that libzmq can be replaced in it.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use object::read::{ReadCache, ReadCacheOps};
use object::{Object, ObjectSection, ObjectSymbol};

use super::library::{Library, System};
use crate::failure::{Failure, Result};

/// Function that every libzmq exports.
const FUNCTION: &[u8] = b"zmq_ctx_new";
/// Thread name that only libzmq uses. Every libzmq contains it, even without symbols.
pub const MARK: &[u8] = b"ZMQbg/Reaper";
/// Maximum length of the first line of a script on Linux.
const LINE: u64 = 256;
/// Maximum depth of scripts that interpret scripts.
const DEPTH: usize = 4;

/// Finds the file of a program like a shell.
pub fn find(name: &OsStr) -> Result<PathBuf> {
    let runs = |path: &Path| {
        fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match fs::metadata(&path) {
            Ok(_) if runs(&path) => Ok(path),
            Ok(_) => Err(Failure::failed(format!("{}: not a program", path.display()))
                .hint("run a script with its interpreter: taut run python3 script.py")),
            Err(error) => Err(Failure::file(&path, &error)),
        };
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| runs(path)).ok_or_else(|| {
        Failure::failed(format!("{}: there is no such program in PATH", name.to_string_lossy()))
    })
}

/// Checks that the library can replace libzmq in the program. Returns the reason if it cannot.
pub fn check(path: &Path, library: &Library) -> Result<()> {
    let mut path = path.to_owned();
    for _ in 0..DEPTH {
        check_rights(&path)?;
        match interpreter(&path)? {
            Some(next) => path = next,
            None => return check_file(&path, library),
        }
    }
    Err(Failure::failed(format!("{}: too many nested script interpreters", path.display())))
}

/// Fails for a setuid program: the system ignores `LD_PRELOAD` for a program with more rights than
/// its user.
fn check_rights(path: &Path) -> Result<()> {
    let data = fs::metadata(path).map_err(|error| Failure::file(path, &error))?;
    let is_root = rustix::process::geteuid().is_root();
    if data.mode() & 0o6000 != 0 && !is_root {
        return Err(Failure::failed(format!(
            "{}: it runs with the rights of another user (setuid), so the system ignores LD_PRELOAD",
            path.display()
        ))
        .hint("run it as that user, or install Tautline's package for the whole system"));
    }
    Ok(())
}

/// Returns the interpreter of a script: python3 for `#!/usr/bin/env python3`.
fn interpreter(path: &Path) -> Result<Option<PathBuf>> {
    let mut line = Vec::new();
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    file.take(LINE).read_to_end(&mut line).map_err(|error| Failure::file(path, &error))?;
    let Some(line) = line.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return Ok(None) };
    let first = PathBuf::from(OsStr::from_bytes(first));
    if first.file_name() != Some(OsStr::new("env")) {
        return Ok(Some(first));
    }
    let is_name = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
    words.find(is_name).map(|name| find(OsStr::from_bytes(name))).transpose()
}

/// Checks a binary program.
fn check_file(path: &Path, library: &Library) -> Result<()> {
    let shown = path.display();
    let found = inspect(path)?;
    if found.architecture != library.architecture {
        return Err(Failure::failed(format!(
            "{shown} is for {}, and {} is for {}",
            found.architecture,
            library.path.display(),
            library.architecture
        ))
        .hint("use --library with the file for this architecture"));
    }
    let Some(system) = found.system else {
        return Err(Failure::failed(format!(
            "{shown} is linked statically, so its libraries cannot be replaced"
        ))
        .hint("link it with libzmq.so, or with Tautline's libzmq.a"));
    };
    if system != library.system {
        return Err(Failure::failed(format!(
            "{shown} is for {}, and {} is for {}",
            system.name(),
            library.path.display(),
            library.system.name()
        ))
        .hint("use --library with the file for this architecture"));
    }
    if found.has_its_own {
        return Err(Failure::failed(format!(
            "{shown} has its own statically linked libzmq, which cannot be replaced"
        ))
        .hint("link it with libzmq.so or with Tautline's libzmq.a"));
    }
    Ok(())
}

/// Facts about a program or a library.
pub struct Inspected {
    pub architecture: String,
    /// `None` if the file is linked statically.
    pub system: Option<System>,
    /// True if the file contains a libzmq that it calls directly.
    pub has_its_own: bool,
    /// True if the file has the functions of libzmq and the name of Tautline, but no mark of
    /// libzmq.
    pub is_tautline: bool,
}

/// Reads an ELF file.
pub fn inspect(path: &Path) -> Result<Inspected> {
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    let cache = ReadCache::new(file);
    inspect_read(&cache).ok_or_else(|| {
        Failure::failed(format!("{}: not a program for this system", path.display()))
            .hint("run a script with its interpreter: taut run python3 script.py")
    })
}

fn inspect_read<R: ReadCacheOps>(cache: &ReadCache<R>) -> Option<Inspected> {
    let file = object::File::parse(cache).ok()?;
    let section = |name: &str| file.section_by_name(name).and_then(|section| section.data().ok());
    let has = |name: &str, text: &[u8]| {
        section(name).is_some_and(|bytes| bytes.windows(text.len()).any(|part| part == text))
    };
    let is_dynamic = section(".dynamic").is_some();
    let system =
        if has(".interp", b"ld-musl") || has(".dynstr", b"libc.musl-") || has(".dynstr", b"\0libc.so\0") {
            Some(System::Musl)
        } else {
            (is_dynamic && (section(".interp").is_some() || has(".dynstr", b"libc.so.6")))
                .then_some(System::Glibc)
        };
    let named = |name: object::Result<&[u8]>| name.is_ok_and(|name| name == FUNCTION);
    let dynamic = file.dynamic_symbols().find(|symbol| named(symbol.name_bytes()));
    let has_its_own = match dynamic {
        Some(symbol) => symbol.is_definition(),
        None => {
            file.symbols().any(|symbol| symbol.is_definition() && named(symbol.name_bytes()))
                || has(".rodata", MARK)
        }
    };
    Some(Inspected {
        architecture: format!("{:?}", file.architecture()),
        system,
        has_its_own,
        is_tautline: dynamic_definition(&file) && !has(".rodata", MARK) && has(".rodata", b"tautline"),
    })
}

fn dynamic_definition<'data>(file: &impl Object<'data>) -> bool {
    file.dynamic_symbols()
        .any(|symbol| symbol.is_definition() && symbol.name_bytes().is_ok_and(|name| name == FUNCTION))
}

/// True if a file contains a libzmq. It is used for an explanation only, so an unreadable file
/// counts as false.
pub fn contains_libzmq(path: &Path) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let mut bytes = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        match Read::read(&mut file, &mut bytes[kept..]) {
            Ok(0) | Err(_) => return false,
            Ok(len) => {
                let end = kept + len;
                if bytes[..end].windows(MARK.len()).any(|part| part == MARK) {
                    return true;
                }
                // The mark may span two reads.
                kept = end.min(MARK.len() - 1);
                bytes.copy_within(end - kept..end, 0);
            }
        }
    }
}
