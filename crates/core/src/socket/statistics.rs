//! Statistics of a socket: our own option ZMQ_TAUTLINE_STATISTICS. All numbers come from counters
//! that the queues keep anyway or that count errors, so they add no cost per message.

use super::Socket;
use tautline_queue::sync::atomic::Ordering::Relaxed;

/// The numbers, in the order of `zmq_tautline_statistics_t`.
pub(super) const NUMBERS: usize = 14;

impl Socket {
    pub(super) fn statistics(&mut self) -> [u64; NUMBERS] {
        let traffic = self.pipes.traffic();
        let (dropped, lost) = self.pipes.losses();
        let (peers, queued_out, queued_in) = self.pipes.depths();
        let (failed_handshakes, failed_connects) = self.site.as_ref().map_or((0, 0), |site| {
            (site.failed_handshakes.load(Relaxed), site.failed_connects.load(Relaxed))
        });
        [
            traffic.messages_out,
            traffic.bytes_out,
            traffic.messages_in,
            traffic.bytes_in,
            dropped,
            self.pipes.shared.unroutable(),
            lost,
            queued_out,
            queued_in,
            peers,
            self.reconnects,
            failed_connects,
            failed_handshakes,
            self.pipes.shared.topics_refused(),
        ]
    }

    /// Writes as many of the numbers as fit. Returns the number of bytes written.
    pub(super) fn write_statistics(&mut self, out: &mut [u8]) -> usize {
        let numbers = self.statistics();
        let places = out.chunks_exact_mut(8);
        places.zip(numbers).map(|(place, number)| place.copy_from_slice(&number.to_ne_bytes())).count() * 8
    }
}
