//! A short wait until the kernel takes more bytes, for a blocking sender that is ahead of its peer.

use std::time::Duration;
use tautline_io::fd::AsRawFd;
use tautline_io::net::Stream;
use tautline_io::poll::{self, PollFd};

/// Waits for a short time until the kernel takes more bytes. Returns true if it does. Stops waiting
/// when the peer sends as well: both sides could wait for each other to read.
pub(crate) fn wait_for_room(stream: &Stream, patience: Duration) -> bool {
    let mut fds = [room_fd(stream), PollFd::new(stream.as_fd().as_raw_fd(), PollFd::IN)];
    matches!(poll::poll(&mut fds, Some(patience)), Ok(1..))
        && (fds[0].revents != 0 || fds[1].revents & !PollFd::IN != 0)
}

/// Returns the descriptor and event to poll for room to write.
pub(crate) fn room_fd(stream: &Stream) -> PollFd {
    let (fd, readable) = stream.space_fd();
    PollFd::new(fd.as_raw_fd(), if readable { PollFd::IN } else { PollFd::OUT })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    /// Fills the kernel's buffers.
    fn fill(stream: &Stream) -> usize {
        std::iter::from_fn(|| stream.write(&[0; 4096]).ok()).sum()
    }

    #[test]
    fn wait_ends_when_peer_reads_and_is_skipped_if_peer_writes() {
        let (near, far) = Stream::pair().unwrap();
        assert!(wait_for_room(&near, MOMENT));
        let written = fill(&near);
        assert!(!wait_for_room(&near, MOMENT));
        let mut read = 0;
        while read < written {
            read += far.read(&mut [0; 65536]).unwrap();
        }
        assert!(wait_for_room(&near, Duration::from_secs(60)));
        fill(&near);
        far.write(&[1]).unwrap();
        assert!(!wait_for_room(&near, Duration::from_secs(60)), "the peer sends as well");
    }
}
