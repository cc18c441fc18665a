//! Switches for measurements: a library with the feature `ablation` leaves out the rules that the
//! variable `TAUT_WITHOUT` names. `cargo xtask ablate` shows the benefit of each rule.
//!
//! Without the feature every switch is a constant, and the library contains none of this code.

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// A rule that can be left out.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        #[cfg(any(feature = "ablation", test))]
        const NAMES: &[(Rule, &str)] = &[$((Rule::$rule, $name),)*];
    };
}

rules! {
    /// The pace of the messages decides the share of its time that a sender writes.
    Share = "share",
    /// The end of a burst is predicted, so that the burst is written as a whole.
    Bursts = "bursts",
    /// A sender with many peers leaves the writes to the sweep.
    Crowd = "crowd",
    /// The I/O thread rests between rounds over the readers of a log that found few bytes.
    Rests = "rests",
    /// For a crowd whose messages must not be dropped, the kernel buffers little.
    LittleUnsent = "little-unsent",
    /// A publisher wakes several inproc receivers by the flush rule.
    Bells = "bells",
    /// The peer of the next message is remembered, by route or by address.
    Routes = "routes",
    /// A connection that its owner has read for a long time leaves the read set.
    Apart = "apart",
    /// A thread spins before it sleeps only while spins succeed and other programs leave it a core.
    Spins = "spins",
    /// A thread that soon waits writes its messages before, together.
    WaitHabit = "wait-habit",
    /// A receiver from inproc peers pauses, so that messages arrive in batches.
    Pause = "pause",
    /// A blocking sender waits for a slow peer.
    Pace = "pace",
    /// A large body is written directly from its memory.
    WriteThrough = "write-through",
    /// Idle peers of a socket with many peers hold no memory.
    Lean = "lean",
}

/// True if `rule` is left out.
#[cfg(not(feature = "ablation"))]
#[inline(always)]
pub const fn is_disabled(_: Rule) -> bool {
    false
}

/// True if `rule` is left out.
#[cfg(feature = "ablation")]
#[inline]
pub fn is_disabled(rule: Rule) -> bool {
    static OUT: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let out = *OUT.get_or_init(|| mask(&std::env::var("TAUT_WITHOUT").unwrap_or_default()));
    out >> rule as u32 & 1 != 0
}

/// Converts a list of names to a bit mask of rules. An unknown name ends the program, because the
/// measurement would be wrong.
#[cfg(feature = "ablation")]
fn mask(names: &str) -> u64 {
    names.split(',').filter(|name| !name.is_empty()).fold(0, |mask, name| {
        let Some((rule, _)) = NAMES.iter().find(|(_, known)| *known == name) else {
            eprintln!("TAUT_WITHOUT: there is no rule `{name}`");
            std::process::exit(2);
        };
        mask | 1 << *rule as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo xtask ablate` reads this output.
    #[test]
    fn names() {
        for (at, (rule, name)) in NAMES.iter().enumerate() {
            println!("rule: {name}");
            assert_eq!(*rule as usize, at);
            assert!(NAMES[..at].iter().all(|(_, other)| other != name), "{name} twice");
        }
        assert!(NAMES.len() < 64);
    }
}
