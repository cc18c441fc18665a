//! Minimal encoder of pcapng, IP and tcp for simulated connections.
//!
//! A file consists of a section header, one interface of raw IP, and a block for each packet. Here,
//! pcapng numbers are little endian and packet numbers are big endian.

use std::net::{IpAddr, SocketAddr};

/// LINKTYPE_RAW: a packet starts with an IPv4 or IPv6 header.
const RAW_IP: u16 = 101;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const USER_APPLICATION: u16 = 4;

pub const SYN: u8 = 0x02;
pub const PUSH: u8 = 0x08;
pub const ACK: u8 = 0x10;

/// Appends the start of a file. `name` is the name of the interface.
pub fn head(name: &str, out: &mut Vec<u8>) {
    let mut section = Vec::new();
    section.extend(0x1A2B_3C4D_u32.to_le_bytes());
    section.extend(1_u16.to_le_bytes());
    section.extend(0_u16.to_le_bytes());
    // The length of the section is unknown.
    section.extend(u64::MAX.to_le_bytes());
    option(USER_APPLICATION, concat!("taut ", env!("CARGO_PKG_VERSION")), &mut section);
    block(0x0A0D_0D0A, section, out);
    let mut interface = Vec::new();
    interface.extend(RAW_IP.to_le_bytes());
    interface.extend(0_u16.to_le_bytes());
    // Snap length 0: packets are not truncated.
    interface.extend(0_u32.to_le_bytes());
    option(IF_NAME, name, &mut interface);
    block(1, interface, out);
}

/// Appends a packet with this time in microseconds since 1970.
pub fn packet(at: u64, bytes: &[u8], comment: &str, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    body.extend(0_u32.to_le_bytes());
    body.extend(((at >> 32) as u32).to_le_bytes());
    body.extend((at as u32).to_le_bytes());
    // Captured length and original length are the same.
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend_from_slice(bytes);
    pad(&mut body);
    if !comment.is_empty() {
        option(COMMENT, comment, &mut body);
    }
    block(6, body, out);
}

fn block(kind: u32, mut body: Vec<u8>, out: &mut Vec<u8>) {
    pad(&mut body);
    let length = (body.len() as u32 + 12).to_le_bytes();
    out.extend(kind.to_le_bytes());
    out.extend(length);
    out.extend(body);
    out.extend(length);
}

/// Appends an option and the end of options.
fn option(code: u16, text: &str, out: &mut Vec<u8>) {
    let text = &text.as_bytes()[..text.len().min(1 << 12)];
    out.extend(code.to_le_bytes());
    out.extend((text.len() as u16).to_le_bytes());
    out.extend_from_slice(text);
    pad(out);
    out.extend([0; 4]);
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Position of a segment in its connection.
#[derive(Debug, Clone, Copy)]
pub struct SegmentHeader {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
}

/// Returns a tcp segment in an IP packet. Both addresses must have the same IP version.
pub fn segment(place: &SegmentHeader, payload: &[u8]) -> Vec<u8> {
    let mut tcp = Vec::with_capacity(20 + payload.len());
    tcp.extend(place.from.port().to_be_bytes());
    tcp.extend(place.to.port().to_be_bytes());
    tcp.extend(place.sequence.to_be_bytes());
    tcp.extend(place.acknowledged.to_be_bytes());
    tcp.extend([5 << 4, place.flags]);
    // Window, checksum, and urgent pointer (unused).
    tcp.extend([0xFF, 0xFF, 0, 0, 0, 0]);
    tcp.extend_from_slice(payload);
    let (from, to) = (octets(place.from.ip()), octets(place.to.ip()));
    let length = tcp.len();
    let pseudo = [&from[..], &to, &[0, 6], &(length as u16).to_be_bytes(), &tcp].concat();
    tcp[16..18].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    let mut packet = Vec::new();
    match place.from.ip() {
        IpAddr::V4(_) => {
            packet.extend([0x45, 0]);
            packet.extend((20 + length as u16).to_be_bytes());
            // Do not fragment; 64 hops; tcp.
            packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            packet.extend(from);
            packet.extend(to);
            let sum = checksum(&packet).to_be_bytes();
            packet[10..12].copy_from_slice(&sum);
        }
        IpAddr::V6(_) => {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend((length as u16).to_be_bytes());
            packet.extend([6, 64]);
            packet.extend(from);
            packet.extend(to);
        }
    }
    packet.extend(tcp);
    packet
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Computes the checksum of RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u64 = words.map(u64::from).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_internet() {
        // IPv4 header with the known checksum 0xb861, first without it and then with it.
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 192, 168, 0, 1, 192, 168, 0, 199];
        assert_eq!(checksum(&header), 0xB861);
        let mut whole = header;
        whole[10..12].copy_from_slice(&[0xB8, 0x61]);
        assert_eq!(checksum(&whole), 0);
        assert_eq!(checksum(&[1]), !0x0100);
    }

    #[test]
    fn a_segment_has_the_checksum_of_its_addresses() {
        for (from, to, head) in [("10.0.0.7:1", "10.0.0.8:2", 20), ("[::1]:1", "[2001:db8::2]:2", 40)] {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let place = SegmentHeader { from, to, sequence: 7, acknowledged: 9, flags: ACK };
            let packet = segment(&place, b"odd");
            assert_eq!(packet.len(), head + 23);
            let tcp = &packet[head..];
            let pseudo = [&octets(from.ip())[..], &octets(to.ip()), &[0, 6, 0, 23], tcp].concat();
            assert_eq!(checksum(&pseudo), 0);
        }
    }

    #[test]
    fn blocks_tell_their_length_at_both_ends() {
        let mut bytes = Vec::new();
        head("tap 4711", &mut bytes);
        packet(5 << 32 | 7, b"12345", "in", &mut bytes);
        let (mut left, mut kinds) = (&bytes[..], Vec::new());
        while !left.is_empty() {
            let word = |at: usize| u32::from_le_bytes(left[at..at + 4].try_into().unwrap());
            let (kind, length) = (word(0), word(4) as usize);
            assert_eq!(word(length - 4) as usize, length);
            kinds.push(kind);
            left = &left[length..];
        }
        assert_eq!(kinds, [0x0A0D_0D0A, 1, 6]);
    }
}
