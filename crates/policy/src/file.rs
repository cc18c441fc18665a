//! Opens and reads files of settings: policies, names files, keys, certificates.
//!
//! The path of such a file may lead to a pipe, which blocks its reader until another process
//! writes, or to a device, which may never end. Therefore this module opens only regular files and
//! limits the number of bytes that it reads.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Length of the longest settings file in bytes.
pub const LONGEST: u64 = 16 << 20;

/// Description of a fault in a text.
pub(crate) const NOT_UTF8: &str = "the file is not UTF-8";

/// Opens a regular file for reading.
///
/// # Errors
/// The system's error. [`io::ErrorKind::IsADirectory`] for a folder.
/// [`io::ErrorKind::InvalidInput`] for a pipe, a device or a socket.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    // Otherwise the call waits for a writer if the path leads to a pipe.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_file() => Ok(file),
        () if kind.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
        () => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Reads the text of a regular file.
///
/// # Errors
/// Those of [`append`], and [`io::ErrorKind::InvalidData`] if the text is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    append(path, LONGEST, &mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, NOT_UTF8))
}

/// Appends the bytes of a regular file to `bytes`. If `bytes` is empty, no copy of the file's bytes
/// is left in other memory, so that the caller can wipe all of them.
///
/// # Errors
/// Returns the system's error. [`io::ErrorKind::IsADirectory`] for a folder,
/// [`io::ErrorKind::InvalidInput`] for a pipe, a device or a socket, [`io::ErrorKind::InvalidData`]
/// if the file is longer than `longest`.
pub fn append(path: &Path, longest: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let file = open(path)?;
    let too_long = || {
        let mebibytes = longest >> 20;
        io::Error::new(io::ErrorKind::InvalidData, format!("the file is longer than {mebibytes} MiB"))
    };
    let length = file.metadata()?.len();
    if length > longest {
        return Err(too_long());
    }
    bytes.try_reserve_exact(length as usize + 1).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // The file may grow during the read.
    let length = file.take(longest + 1).read_to_end(bytes)?;
    if length as u64 > longest { Err(too_long()) } else { Ok(()) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn pipes_devices_and_long_files_are_refused() {
        let folder = std::env::temp_dir().join(format!("tautline-file-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let kind = |path: &Path| read_text(path).unwrap_err().kind();
        assert_eq!(kind(&pipe), io::ErrorKind::InvalidInput);
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::InvalidInput);
        assert_eq!(kind(&folder), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.join("none")), io::ErrorKind::NotFound);
        let long = folder.join("long");
        File::create(&long).unwrap().set_len(LONGEST + 1).unwrap();
        assert_eq!(kind(&long), io::ErrorKind::InvalidData);
        let link = folder.join("link");
        std::fs::write(folder.join("text"), "[names]").unwrap();
        std::os::unix::fs::symlink("text", &link).unwrap();
        assert_eq!(read_text(&link).unwrap(), "[names]");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
