//! Names and numbers in the sentences of findings.

use crate::Endpoint;

/// Returns a readable name of an endpoint.
pub(super) fn readable_name(endpoint: &Endpoint) -> &str {
    if endpoint.name.is_empty() { &endpoint.given } else { &endpoint.name }
}

/// Returns a readable routing ID: its text, or else its bytes.
pub(super) fn id_name(id: &[u8]) -> String {
    match is_text(id) {
        true => format!("`{}`", String::from_utf8_lossy(id)),
        false => id.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
    }
}

pub(super) fn is_text(id: &[u8]) -> bool {
    !id.is_empty() && id.iter().all(|byte| (0x20..0x7F).contains(byte))
}

/// Returns a number and a noun, in the singular or plural.
pub(super) fn format_count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{} {thing}s", format_short(number)) }
}

/// Returns a number in short form: 3 K, 50 M.
pub(super) fn format_short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{} K", number / 1000),
        _ => format!("{} M", number / 1_000_000),
    }
}

/// Returns the number of bytes to insert, remove or replace that turn one text into the other, of
/// the first 64 bytes of each.
pub(super) fn distance(one: impl AsRef<[u8]>, other: impl AsRef<[u8]>) -> usize {
    let short = |text: &'_ [u8]| text[..text.len().min(64)].to_vec();
    let (one, other) = (short(one.as_ref()), short(other.as_ref()));
    let mut costs: Vec<usize> = (0..=other.len()).collect();
    for (row, byte) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut costs[0], row + 1);
        for (column, there) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(byte != there);
            diagonal = costs[column + 1];
            costs[column + 1] = replaced.min(diagonal + 1).min(costs[column] + 1);
        }
    }
    costs[other.len()]
}

/// Returns a topic as readable text: `market.`, or its bytes.
pub(super) fn topic_name(topic: &[u8]) -> String {
    if topic.is_empty() { "``".to_owned() } else { id_name(topic) }
}

/// Returns a number of bytes in short form: 300 B, 12 KiB, 5 MiB.
pub(super) fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
