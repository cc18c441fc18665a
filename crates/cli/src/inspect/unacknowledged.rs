//! TCP connections whose bytes the other host does not acknowledge, from `/proc/PID/net/tcp`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tautline_observe::Unacknowledged;

/// Number of repeats from which on the network is at fault: after some seconds of silence.
const REPEATS: u64 = 4;

/// Returns the connections in the network namespace of a process.
pub fn of(process: u32) -> Vec<Unacknowledged> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/net/{file}")).unwrap_or_default();
    ["tcp", "tcp6"].iter().flat_map(|file| read(file).lines().filter_map(parse).collect::<Vec<_>>()).collect()
}

/// Returns the connection in a line of the table, if its bytes were sent again and again.
fn parse(line: &str) -> Option<Unacknowledged> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote, _state) = (fields.next()?, fields.next()?, fields.next()?);
    let (bytes, _) = fields.next()?.split_once(':')?;
    let (_timer, repeats) = (fields.next()?, fields.next()?);
    let (bytes, retransmits) = (hex(bytes)?, hex(repeats)?);
    (bytes > 0 && retransmits >= REPEATS).then_some(())?;
    Some(Unacknowledged { local: address(local)?, remote: address(remote)?, bytes, retransmits })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Returns an address of the table, as events have it: `tcp://127.0.0.1:5555`.
fn address(text: &str) -> Option<String> {
    let (host, port) = text.split_once(':')?;
    // Groups of four bytes in the order of the machine.
    let groups = (0..host.len() / 8)
        .map(|at| hex(host.get(8 * at..8 * at + 8)?).map(|word| (word as u32).to_ne_bytes()));
    let bytes: Vec<u8> = groups.collect::<Option<Vec<_>>>()?.concat();
    let host = match *bytes.as_slice() {
        [a, b, c, d] => IpAddr::from(Ipv4Addr::new(a, b, c, d)),
        _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    // A listener for both families has IPv4 peers in the table of IPv6.
    let host = host.to_canonical();
    Some(format!("tcp://{}", SocketAddr::new(host, u16::try_from(hex(port)?).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connections_that_repeat_their_bytes_are_found() {
        let line = |sent: &str, repeats: &str| {
            format!(
                "   3: 0100007F:1F90 0200000A:C350 01 {sent}:00000000 01:00000014 {repeats}     0        0 4711 1 0 20 4 30 10 -1"
            )
        };
        if cfg!(target_endian = "little") {
            let stuck = parse(&line("000C030B", "00000005")).unwrap();
            assert_eq!((&*stuck.local, &*stuck.remote), ("tcp://127.0.0.1:8080", "tcp://10.0.0.2:50000"));
            assert_eq!((stuck.bytes, stuck.retransmits), (787_211, 5));
            let mapped = address("0000000000000000FFFF00000100007F:0050").unwrap();
            assert_eq!(mapped, "tcp://127.0.0.1:80");
            assert_eq!(address("00000000000000000000000001000000:0050").unwrap(), "tcp://[::1]:80");
        }
        for (sent, repeats) in [("00000000", "00000005"), ("000C030B", "00000001"), ("x", "00000005")] {
            assert_eq!(parse(&line(sent, repeats)), None);
        }
        assert_eq!(
            parse("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"),
            None
        );
        assert_eq!(parse(""), None);
    }
}
