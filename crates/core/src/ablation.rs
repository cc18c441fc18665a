//! Switches for measuring: a library with the feature `ablation` leaves out the rules that the
//! variable `TAUT_WITHOUT` names. `cargo xtask ablate` shows what each of them buys.
//!
//! Without the feature every switch is a constant, and nothing of this is in the library.

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// A rule that can be left out.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Rule {
            $($(#[$doc])* $rule,)*
        }

        #[cfg(any(feature = "ablation", test))]
        const NAMES: &[(Rule, &str)] = &[$((Rule::$rule, $name),)*];
    };
}

rules! {
    /// A message that comes alone is written at once.
    Alone = "alone",
    /// A sender whose own work sets its pace writes less often.
    Busy = "busy",
    /// What the thread writes elsewhere counts as no pause.
    Elsewhere = "elsewhere",
    /// The end of a burst is foreseen.
    Bursts = "bursts",
    /// A foreseen burst is written whole.
    Hold = "hold",
    /// A sender to many leaves the writing to the sweep.
    Crowd = "crowd",
    /// The I/O thread rests between rounds that found little.
    Rests = "rests",
    /// Where nothing may be dropped the kernel holds little for a crowd.
    LittleUnsent = "little-unsent",
    /// A publisher wakes several inproc receivers by the flush rule.
    Bells = "bells",
    /// The second message to one peer asks no pattern.
    Routes = "routes",
    /// A router remembers which peer is addressed after which.
    Names = "names",
    /// A connection that its owner has read for long leaves the read set.
    Apart = "apart",
    /// A process that others keep from its cores does not look before it sleeps.
    Losses = "losses",
    /// Nor does a thread that has looked in vain.
    Vain = "vain",
    /// A socket that only reads looks more often, at shared memory above all.
    Looks = "looks",
    /// A receiver from inproc peers stays away for batches.
    Pause = "pause",
    /// A blocking sender waits for a peer that is behind.
    Pace = "pace",
    /// Freed blocks circulate before they are used again.
    Circulation = "circulation",
    /// A large body is written from where it is.
    WriteThrough = "write-through",
    /// Idle peers of a socket with many keep no memory.
    Lean = "lean",
}

/// Whether `rule` is left out.
#[cfg(not(feature = "ablation"))]
#[inline(always)]
pub(crate) const fn without(_: Rule) -> bool {
    false
}

/// Whether `rule` is left out.
#[cfg(feature = "ablation")]
#[inline]
pub(crate) fn without(rule: Rule) -> bool {
    static OUT: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let out = *OUT.get_or_init(|| mask(&std::env::var("TAUT_WITHOUT").unwrap_or_default()));
    out >> rule as u32 & 1 != 0
}

/// The rules of a list of names, as bits. A name that is none ends the program: what it would
/// measure is not what was asked for.
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

    /// `cargo xtask ablate` reads what this prints.
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
