//! Kinds of environments: their names in scenario files, their meaning, and the cells that can run in
//! them.

use crate::scenario::Cell;

/// Default environment of a cell: the unchanged machine.
pub(crate) const DEFAULT: &str = "default";

/// Environment of the programs of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvironmentKind {
    Default,
    /// All threads of both programs on one processor.
    OneCore,
    /// Half the time of one processor for both programs together.
    HalfCore,
    /// The programs in two network namespaces.
    Network(NetworkLink),
    /// `ipc` over the kernel's sockets.
    NoSharedMemory,
    /// Beside this number of processes that only use a core.
    Busy(u32),
}

/// Delay and loss of packets between two namespaces, in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetworkLink {
    pub(crate) delay_ms: u32,
    pub(crate) lost_per_mille: u32,
}

const fn wire(delay_ms: u32, lost_per_mille: u32) -> EnvironmentKind {
    EnvironmentKind::Network(NetworkLink { delay_ms, lost_per_mille })
}

/// Every kind by its name.
pub(crate) const KINDS: [(&str, EnvironmentKind); 11] = [
    (DEFAULT, EnvironmentKind::Default),
    ("one-core", EnvironmentKind::OneCore),
    ("half-core", EnvironmentKind::HalfCore),
    ("veth", wire(0, 0)),
    ("veth-delay", wire(1, 0)),
    ("veth-loss-0.1", wire(0, 1)),
    ("veth-loss-1", wire(0, 10)),
    ("no-shared-memory", EnvironmentKind::NoSharedMemory),
    ("busy-2", EnvironmentKind::Busy(2)),
    ("busy-4", EnvironmentKind::Busy(4)),
    ("busy-8", EnvironmentKind::Busy(8)),
];

impl EnvironmentKind {
    /// Returns the kind of that name.
    pub(crate) fn from_name(name: &str) -> Result<Self, String> {
        if name == "far-cache" {
            return Err(
                "far-cache is a state of the machine that every run reports, and not an environment to \
                        ask for"
                    .to_owned(),
            );
        }
        KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
            format!("no environment {name}; there are {}", known.join(", "))
        })
    }

    /// Returns a description for the reader of a report.
    pub(crate) fn description(self) -> String {
        match self {
            Self::Default => "the unchanged machine".to_owned(),
            Self::OneCore => "both programs on one processor".to_owned(),
            Self::HalfCore => "50 ms of processor time in each 100 ms, for both programs together".to_owned(),
            Self::Network(wire) => {
                let mut what = "two network namespaces, a veth pair with an MTU of 1500".to_owned();
                if wire.delay_ms > 0 {
                    what += &format!(", {} ms of delay in each direction", wire.delay_ms);
                }
                if wire.lost_per_mille > 0 {
                    what += &format!(", {} % of the packets lost in each direction", wire.percent());
                }
                what
            }
            Self::NoSharedMemory => "ipc over the kernel's sockets only".to_owned(),
            Self::Busy(number) => format!("beside {number} processes that only use a core, not pinned"),
        }
    }

    /// Returns the reason if the cell cannot run in it.
    pub(crate) fn fits(self, cell: &Cell) -> Result<(), String> {
        let (fits, wants) = match self {
            Self::Default | Self::OneCore | Self::HalfCore | Self::Busy(_) => (true, ""),
            Self::Network(_) => (cell.transport == "tcp" && cell.processes == 2, "tcp and two processes"),
            Self::NoSharedMemory => (cell.transport == "ipc", "ipc"),
        };
        if fits { Ok(()) } else { Err(format!("{}: this environment is for {wants}", cell.title())) }
    }
}

impl NetworkLink {
    /// Formats a number: `0.1`, `1`.
    pub(crate) fn percent(self) -> String {
        format!("{}", f64::from(self.lost_per_mille) / 10.0)
    }
}
