//! Reads counters files. For any content, and during any concurrent change, the result is a reading
//! or a [`ReadError`] after a bounded number of steps.

#[cfg(any(unix, test))]
use crate::DESCRIPTION;
use crate::record::{Record, Stored};
use crate::{
    Context, DESCRIPTIONS, Endpoint, Event, FORKED, HEADER, Loans, MAGIC, Peer, Process, RECORDS, ROOM,
    ReadError, Reading, Route, Socket, Topic, VERSION, checksum,
};

/// Most attempts to read a file while it is being rewritten.
#[cfg(unix)]
const TRIES: usize = 8;

/// Reads the counters file at `path`, which must be a plain file of this user.
///
/// # Errors
///
/// The [`ReadError`] that describes the problem with the file.
#[cfg(unix)]
pub fn read(path: &std::path::Path) -> Result<Reading, ReadError> {
    with_copy(read_open(&crate::discovery::open(path)?)?, path)
}

/// Reads the counters file at `path`, which must be a plain file of `user`. Only root can read the
/// files of other users.
///
/// # Errors
///
/// The [`ReadError`] that describes the problem with the file.
#[cfg(unix)]
pub fn read_of(path: &std::path::Path, user: u32) -> Result<Reading, ReadError> {
    with_copy(read_open(&crate::discovery::open_of(path, user)?)?, path)
}

#[cfg(unix)]
fn with_copy(mut reading: Reading, path: &std::path::Path) -> Result<Reading, ReadError> {
    reading.copy = crate::discovery::copy_of(path);
    Ok(reading)
}

/// Reads an open counters file.
#[cfg(unix)]
pub(crate) fn read_open(file: &std::fs::File) -> Result<Reading, ReadError> {
    let mut image = Vec::new();
    let mut fault = ReadError::Busy;
    for _ in 0..TRIES {
        let header = header(file)?;
        match find(&header) {
            Err(ReadError::Busy) => continue,
            Err(fault) => return Err(fault),
            Ok(found) => match take(file, &found, &mut image) {
                Ok(()) => return Ok(Reading { forked_calls: word(&header, FORKED), ..records(&image)? }),
                Err(error) => fault = error,
            },
        }
    }
    Err(fault)
}

/// Returns the first bytes of a file.
#[cfg(unix)]
pub(crate) fn header(file: &std::fs::File) -> Result<[u8; HEADER], ReadError> {
    let mut header = [0; HEADER];
    std::os::unix::fs::FileExt::read_exact_at(file, &mut header, 0)?;
    Ok(header)
}

/// Reads an image. Returns `Busy` if the image does not match its description.
#[cfg(unix)]
fn take(file: &std::fs::File, found: &Description, image: &mut Vec<u8>) -> Result<(), ReadError> {
    image.resize(found.length, 0);
    std::os::unix::fs::FileExt::read_exact_at(file, image, found.offset as u64)?;
    if checksum(image) == found.checksum { Ok(()) } else { Err(ReadError::Busy) }
}

/// Parses a whole counters file from memory.
///
/// # Errors
///
/// Returns the [`ReadError`] that describes the problem with the file.
pub fn parse(file: &[u8]) -> Result<Reading, ReadError> {
    let header = file.first_chunk().ok_or(ReadError::Incomplete)?;
    let found = find(header)?;
    let image = file.get(found.offset..found.offset + found.length).ok_or(ReadError::Incomplete)?;
    if checksum(image) != found.checksum {
        return Err(ReadError::Incomplete);
    }
    Ok(Reading { forked_calls: word(header, FORKED), ..records(image)? })
}

/// Position of an image.
struct Description {
    sequence: u64,
    offset: usize,
    length: usize,
    checksum: u64,
}

fn word(header: &[u8; HEADER], at: usize) -> u64 {
    let bytes = header.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

/// Returns the newest image with a complete description.
fn find(header: &[u8; HEADER]) -> Result<Description, ReadError> {
    if header[..8] != MAGIC {
        return Err(ReadError::Foreign);
    }
    let version = word(header, 8) as u32;
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    let described = DESCRIPTIONS.iter().enumerate().filter_map(|(index, &at)| {
        let [sequence, length, checksum, check] = [0, 8, 16, 24].map(|place| word(header, at + place));
        let length_fits = length <= ROOM as u64 && sequence > 0;
        (check == !(sequence ^ length ^ checksum) && length_fits).then_some(Description {
            sequence,
            offset: HEADER + index * ROOM,
            length: length as usize,
            checksum,
        })
    });
    // If both are incomplete, the writer is at work or has not yet written a snapshot.
    described.max_by_key(|found| found.sequence).ok_or(ReadError::Busy)
}

/// Returns the description of an image for the header, for the writer.
#[cfg(any(unix, test))]
pub(crate) fn describe(sequence: u64, image: &[u8]) -> [u8; DESCRIPTION] {
    let (length, checksum) = (image.len() as u64, checksum(image));
    let words = [sequence, length, checksum, !(sequence ^ length ^ checksum)];
    let mut bytes = [0; DESCRIPTION];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// Parses the records of an image.
fn records(mut image: &[u8]) -> Result<Reading, ReadError> {
    let mut reading = Reading::default();
    let mut whole = false;
    for _ in 0..RECORDS {
        if image.is_empty() {
            break;
        }
        let stored = Stored::take(&mut image).ok_or(ReadError::Incomplete)?;
        match stored.kind {
            Process::KIND => {
                reading.process = Process::load(&stored);
                whole = true;
            }
            Context::KIND => reading.contexts.push(Context::load(&stored)),
            Socket::KIND => reading.sockets.push(Socket::load(&stored)),
            Endpoint::KIND => reading.endpoints.push(Endpoint::load(&stored)),
            Peer::KIND => reading.peers.push(Peer::load(&stored)),
            Event::KIND => reading.events.push(Event::load(&stored)),
            Route::KIND => reading.routes.push(Route::load(&stored)),
            Topic::KIND => reading.topics.push(Topic::load(&stored)),
            Loans::KIND => reading.loans = Loans::load(&stored),
            // A record kind of a later library.
            _ => {}
        }
    }
    if whole { Ok(reading) } else { Err(ReadError::Incomplete) }
}

#[cfg(test)]
mod tests;
