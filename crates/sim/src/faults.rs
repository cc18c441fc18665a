//! Faults of a simulation, and their frequency. A number n means that a fault happens once in n
//! times; 0 means never.

use crate::rng::Rng;

#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// A read or a write moves only a part of the possible bytes.
    pub(crate) partial: u64,
    /// A write is refused with EAGAIN although there is room.
    pub(crate) again: u64,
    /// A wait of a thread that takes signals ends with EINTR.
    pub(crate) interrupted: u64,
    /// A wait ends early without a result.
    pub(crate) spurious: u64,
    /// A connection is reset by the network. Drawn at each delivery.
    pub(crate) reset: u64,
    /// Most resets.
    pub(crate) resets: u64,
    /// A connect is refused although there is a listener, or its request is lost.
    pub(crate) refused: u64,
    /// The system chooses the requested port as the local port of a connect, so that the socket
    /// connects to itself. Only for ports from `EPHEMERAL` on. No seed draws it.
    pub(crate) itself: u64,
    /// A datagram is lost.
    pub(crate) lost: u64,
    /// A datagram is duplicated.
    pub(crate) doubled: u64,
    /// A host's name is not resolved.
    pub(crate) unresolved: u64,
    /// accept fails with EMFILE.
    pub(crate) descriptors: u64,
    /// Shared memory cannot be created, or its file system is full.
    pub(crate) no_memory: u64,
    /// A stream cannot be watched: the epoll set is full.
    pub(crate) watches: u64,
    /// The wall clock jumps. Drawn at each read of the clock.
    pub(crate) wall: u64,
    /// A weak compare-exchange fails spuriously.
    pub(crate) weak: u64,
    /// A store that is not SeqCst becomes visible late to other threads.
    pub(crate) late: u64,
    /// The kernel is an old one: no SO_PASSRIGHTS, epoll_pwait2 and membarrier.
    pub(crate) old: bool,
    /// A sandbox does not allow timers that are descriptors.
    pub(crate) sandbox: bool,
    /// A thread does not run for a while. Drawn at each change of threads.
    pub(crate) stall: u64,
    /// Longest stall in nanoseconds.
    pub(crate) longest_stall: u64,
    /// Latency of bytes in nanoseconds: minimum and maximum.
    pub(crate) latency: (u64, u64),
    /// Bytes of a socket's buffer: minimum and maximum.
    pub(crate) buffer: (u64, u64),
}

/// First port that the system chooses by itself.
pub(crate) const EPHEMERAL: u16 = 32_768;

impl Faults {
    /// Draws the faults of a seed. If `lossy` is true, connections may be lost.
    pub(crate) fn draw(rng: &mut Rng, lossy: bool) -> Faults {
        let mut one_in = |low, high| if rng.chance(2) { 0 } else { rng.spread(low, high) };
        let (reset, refused, watches) = (one_in(64, 4096), one_in(2, 16), one_in(4, 64));
        let mut faults = Faults {
            partial: one_in(2, 64),
            again: one_in(4, 256),
            interrupted: one_in(8, 1024),
            spurious: one_in(8, 1024),
            descriptors: one_in(2, 16),
            no_memory: one_in(1, 4),
            weak: one_in(4, 256),
            unresolved: one_in(2, 8),
            wall: one_in(1, 16),
            lost: one_in(2, 32),
            stall: one_in(64, 16384),
            longest_stall: 0,
            ..Faults::default()
        };
        faults.resets = rng.spread(1, 30);
        faults.old = rng.chance(3);
        faults.sandbox = rng.chance(8);
        faults.late = if rng.chance(6) { 2 } else { 0 };
        if lossy {
            (faults.reset, faults.refused, faults.watches) = (reset, refused, watches);
        }
        // Drawn from a separate stream.
        let mut own = Rng::new(rng.clone().next(), 6);
        faults.doubled = if own.chance(2) { 0 } else { own.spread(2, 32) };
        faults.longest_stall = rng.spread(10_000, 2_000_000_000);
        faults.latency =
            *rng.pick(&[(0, 0), (0, 0), (1_000, 50_000), (200_000, 3_000_000), (0, 100_000_000)]);
        faults.buffer = *rng.pick(&[(2_304, 8_192), (16_384, 65_536), (212_992, 2_626_560)]);
        faults
    }

    /// Stops losing and refusing connections, and failing to resolve names.
    pub(crate) fn stop_losses(&mut self) {
        (self.reset, self.refused, self.watches, self.unresolved) = (0, 0, 0, 0);
    }

    /// Disables one kind of fault by name. Returns false if the name is unknown.
    pub(crate) fn disable(&mut self, name: &str) -> bool {
        let all = [
            ("partial", &mut self.partial),
            ("again", &mut self.again),
            ("interrupted", &mut self.interrupted),
            ("spurious", &mut self.spurious),
            ("reset", &mut self.reset),
            ("refused", &mut self.refused),
            ("descriptors", &mut self.descriptors),
            ("no_memory", &mut self.no_memory),
            ("watches", &mut self.watches),
            ("wall", &mut self.wall),
            ("itself", &mut self.itself),
            ("lost", &mut self.lost),
            ("doubled", &mut self.doubled),
            ("weak", &mut self.weak),
            ("late", &mut self.late),
            ("unresolved", &mut self.unresolved),
            ("stall", &mut self.stall),
        ];
        let known = all.into_iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault = 0).is_some();
        match name {
            "latency" => self.latency = (0, 0),
            "old" => self.old = false,
            "sandbox" => self.sandbox = false,
            _ => return known,
        }
        true
    }
}
