//! An image: the records of one snapshot, one after the other.

use crate::record::{HEAD, LONGEST_TEXT, Record};
use crate::{Process, ROOM};

/// Bytes reserved for the record of the process, which comes last.
const RESERVED: usize = 8 * 1024;

/// Records of one snapshot. The buffer is reused for the next snapshot.
#[derive(Debug, Default)]
pub struct Image {
    bytes: Vec<u8>,
    omitted: u64,
}

impl Image {
    /// Creates an image without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.omitted = 0;
    }

    /// Appends a record. If the image is full, counts the record as omitted instead.
    pub fn put<R: Record>(&mut self, record: &R) {
        if !self.append(record, ROOM - RESERVED) {
            self.omitted += 1;
        }
    }

    /// Appends the record of the process, with the number of omitted records. It must be the last
    /// record.
    pub fn finish(&mut self, process: &mut Process) {
        process.omitted = self.omitted;
        self.append(process, ROOM);
    }

    /// Returns the stored bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn append<R: Record>(&mut self, record: &R, most: usize) -> bool {
        let start = self.bytes.len();
        record.store(|numbers, texts| {
            let (numbers, texts) = (&numbers[..numbers.len().min(256)], &texts[..texts.len().min(255)]);
            self.bytes.extend([0; 4]);
            self.bytes.extend([R::KIND, texts.len() as u8]);
            self.bytes.extend((numbers.len() as u16).to_le_bytes());
            numbers.iter().for_each(|number| self.bytes.extend(number.to_le_bytes()));
            for text in texts {
                let text = &text[..text.len().min(LONGEST_TEXT)];
                self.bytes.extend((text.len() as u16).to_le_bytes());
                self.bytes.extend(text);
            }
        });
        let length = (self.bytes.len() - start).next_multiple_of(HEAD);
        if start + length > most {
            self.bytes.truncate(start);
            return false;
        }
        self.bytes.resize(start + length, 0);
        self.bytes[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
        true
    }
}
