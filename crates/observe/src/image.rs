//! An image: the records of one look, one behind the other.

use crate::record::{HEAD, LONGEST_TEXT, Record};
use crate::{Process, ROOM};

/// What stays free for the record of the process, which comes last.
const RESERVED: usize = 8 * 1024;

/// The records of one look. It keeps its memory from look to look.
#[derive(Debug, Default)]
pub struct Image {
    bytes: Vec<u8>,
    omitted: u64,
}

impl Image {
    /// Without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.omitted = 0;
    }

    /// Appends a record, unless the image is full: then it is counted as left out.
    pub fn put<R: Record>(&mut self, record: &R) {
        if !self.append(record, ROOM - RESERVED) {
            self.omitted += 1;
        }
    }

    /// Appends the record of the process, which says how many others were left out. Nothing comes
    /// behind it.
    pub fn finish(&mut self, process: &mut Process) {
        process.omitted = self.omitted;
        self.append(process, ROOM);
    }

    /// What is stored.
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
