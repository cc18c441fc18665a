//! Writes the counters file of this process, for the library.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::process_end::{END, EndCause, ProcessEnd};
use crate::reader::describe;
use crate::{DESCRIPTIONS, FORKED, HEADER, Image, MAGIC, ROOM, VERSION, discovery};

/// Most copies of the library in one process that write a file each.
const COPIES: u32 = 16;

/// Identity of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Process ID.
    pub pid: u32,
    /// User ID.
    pub uid: u32,
    /// Start time in system ticks; 0 if unknown.
    pub start_ticks: u64,
}

impl Identity {
    /// Returns the identity of this process.
    ///
    /// # Errors
    ///
    /// System errors, if the user cannot be determined.
    pub fn own() -> io::Result<Self> {
        let pid = std::process::id();
        Ok(Identity {
            pid,
            uid: discovery::own_user()?,
            start_ticks: discovery::start_ticks(pid).unwrap_or(0),
        })
    }
}

/// Notes in a counters file of this process that it exits now with this status. If it is 0, removes
/// the file. Failures are ignored, because the process ends anyway.
pub fn note_exit(path: &Path, status: i32) {
    if status == 0 {
        let _ = fs::remove_file(path);
        return;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The system reports eight bits.
    let cause = EndCause::Exited(u32::from(status as u8));
    note(path, END, &ProcessEnd { at: now.as_micros() as u64, cause }.store());
}

/// Notes in a counters file that a forked child of its process has had this many calls refused.
/// Failures are ignored.
pub fn note_forked_calls(path: &Path, calls: u64) {
    note(path, FORKED, &calls.to_le_bytes());
}

fn note(path: &Path, offset: usize, bytes: &[u8]) {
    let opened = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    if let Ok(file) = opened {
        let _ = file.write_all_at(bytes, offset as u64);
    }
}

/// Counters file of this process. Dropping keeps the file; [`Output::remove`] removes it.
#[derive(Debug)]
pub struct Output {
    file: File,
    path: PathBuf,
    sequence: u64,
}

impl Output {
    /// Creates the file, and the folder if it is missing. Removes old files of processes that have
    /// ended. If `environment` is true, the folder may be in XDG_RUNTIME_DIR, which a program with
    /// more rights than its caller must not use.
    ///
    /// # Errors
    ///
    /// System errors. `PermissionDenied` if the folder belongs to another user or is open to
    /// others.
    pub fn create(process: &Identity, environment: bool) -> io::Result<Self> {
        Self::create_in(&discovery::own_folder(process.uid, environment)?, process)
    }

    /// Creates the file as [`Output::create`] does, in an existing folder.
    ///
    /// # Errors
    ///
    /// System errors.
    pub fn create_in(folder: &Path, process: &Identity) -> io::Result<Self> {
        discovery::sweep(folder, Some(process.pid));
        // A process with two copies of the library has two files.
        for copy in 0..COPIES {
            let path = match copy {
                0 => folder.join(process.pid.to_string()),
                copy => folder.join(format!("{}.{copy}", process.pid)),
            };
            match Self::make(process, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn make(process: &Identity, path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(HEADER as u32).to_le_bytes());
        header[16..20].copy_from_slice(&process.pid.to_le_bytes());
        header[20..24].copy_from_slice(&process.uid.to_le_bytes());
        header[24..32].copy_from_slice(&process.start_ticks.to_le_bytes());
        header[32..40].copy_from_slice(&(ROOM as u64).to_le_bytes());
        let output = Output { file, path: path.to_owned(), sequence: 0 };
        match output.file.write_all_at(&header, 0) {
            Ok(()) => Ok(output),
            Err(error) => {
                output.remove();
                Err(error)
            }
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the image of one snapshot over the older of the two images. Readers use the newer one
    /// until this image is complete.
    ///
    /// # Errors
    ///
    /// System errors: the disk is full or a limit is reached.
    pub fn write(&mut self, image: &Image) -> io::Result<()> {
        let sequence = self.sequence + 1;
        let index = (sequence % 2) as usize;
        self.file.write_all_at(image.bytes(), (HEADER + index * ROOM) as u64)?;
        self.file.write_all_at(&describe(sequence, image.bytes()), DESCRIPTIONS[index] as u64)?;
        self.sequence = sequence;
        Ok(())
    }

    /// Removes the file, unless another file has replaced it.
    pub fn remove(self) {
        let own = self.file.metadata().map(|found| (found.dev(), found.ino()));
        let there = fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        if let (Ok(own), Ok(there)) = (own, there)
            && own == there
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}
