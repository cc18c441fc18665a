//! The systems that `cargo xtask cross` builds for.

/// One of them.
#[derive(Debug)]
pub struct Target {
    /// What rustc calls it.
    pub triple: &'static str,
    /// The oldest glibc that the library shall load with. `None`: musl, of any age.
    pub glibc: Option<&'static str>,
    /// What zig calls it, without a version of glibc.
    pub zig: &'static str,
    /// The emulator of its processor, or of its system. `None`: it runs here.
    pub emulator: Option<&'static str>,
    /// What pip calls systems that have its library. `None`: nothing that pip knows.
    pub wheel: Option<&'static str>,
    /// What the packages for npm call it (`bindings/node/scripts/targets.mjs`). `None`: there is none for it.
    pub npm: Option<Npm>,
}

/// A platform of the Node.js addon.
#[derive(Debug)]
pub struct Npm {
    pub name: &'static str,
    /// Where Node.js itself is from.
    pub node: Node,
}

/// Where the Node.js of a platform is from.
#[derive(Debug)]
pub enum Node {
    /// PyPI, for what pip calls it.
    Pip(&'static str),
    /// Debian, for what it calls the processor.
    Debian(&'static str),
}

const fn gnu(
    triple: &'static str,
    zig: &'static str,
    emulator: Option<&'static str>,
    wheel: &'static str,
    npm: Option<Npm>,
) -> Target {
    Target { triple, glibc: Some("2.17"), zig, emulator, wheel: Some(wheel), npm }
}

const fn musl(triple: &'static str, zig: &'static str, emulator: Option<&'static str>, npm: Npm) -> Target {
    Target { triple, glibc: None, zig, emulator, wheel: None, npm: Some(npm) }
}

/// All, the quickest first. Every glibc below is the oldest that pip's manylinux2014 knows; RISC-V began with 2.27.
pub static TARGETS: [Target; 8] = [
    gnu(
        "x86_64-unknown-linux-gnu",
        "x86_64-linux-gnu",
        None,
        "manylinux_2_17_x86_64",
        Some(Npm { name: "linux-x64-gnu", node: Node::Pip("manylinux_2_28_x86_64") }),
    ),
    gnu(
        "aarch64-unknown-linux-gnu",
        "aarch64-linux-gnu",
        Some("qemu-aarch64-static"),
        "manylinux_2_17_aarch64",
        Some(Npm { name: "linux-arm64-gnu", node: Node::Pip("manylinux_2_28_aarch64") }),
    ),
    gnu(
        "s390x-unknown-linux-gnu",
        "s390x-linux-gnu",
        Some("qemu-s390x-static"),
        "manylinux_2_17_s390x",
        None,
    ),
    gnu(
        "armv7-unknown-linux-gnueabihf",
        "arm-linux-gnueabihf",
        Some("qemu-arm-static"),
        "manylinux_2_17_armv7l",
        Some(Npm { name: "linux-arm-gnu", node: Node::Debian("armhf") }),
    ),
    Target {
        triple: "riscv64gc-unknown-linux-gnu",
        glibc: Some("2.27"),
        zig: "riscv64-linux-gnu",
        emulator: Some("qemu-riscv64-static"),
        wheel: None,
        npm: None,
    },
    musl(
        "x86_64-unknown-linux-musl",
        "x86_64-linux-musl",
        None,
        Npm { name: "linux-x64-musl", node: Node::Pip("musllinux_1_2_x86_64") },
    ),
    musl(
        "aarch64-unknown-linux-musl",
        "aarch64-linux-musl",
        Some("qemu-aarch64-static"),
        Npm { name: "linux-arm64-musl", node: Node::Pip("musllinux_1_2_aarch64") },
    ),
    Target {
        triple: "x86_64-pc-windows-gnu",
        glibc: None,
        zig: "x86_64-windows-gnu",
        emulator: Some("wine"),
        wheel: None,
        npm: None,
    },
];

/// The target that is meant by `word`: its name, or that without the version of glibc.
pub fn find(word: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name() == word || target.triple == word)
}

impl Target {
    /// `x86_64-unknown-linux-gnu.2.17`: the triple, and the oldest glibc.
    pub fn name(&self) -> String {
        self.versioned(self.triple)
    }

    /// What `zig cc -target` takes.
    pub fn for_zig(&self) -> String {
        self.versioned(self.zig)
    }

    fn versioned(&self, triple: &str) -> String {
        self.glibc.map_or_else(|| triple.to_owned(), |version| format!("{triple}.{version}"))
    }

    /// The name of what Cargo reads for this target from the environment.
    pub fn variable(&self, what: &str) -> String {
        format!("CARGO_TARGET_{}_{what}", self.triple.to_uppercase().replace('-', "_"))
    }

    /// Whether packages are made for it, whose library has TLS, as `scripts/dist.sh` says.
    pub fn is_packaged(&self) -> bool {
        let processor = self.triple.split('-').next();
        matches!(processor, Some("x86_64" | "aarch64")) && !self.is_windows()
    }

    /// Whether it is Windows, for which MinGW's tools compile, not zig.
    pub fn is_windows(&self) -> bool {
        self.triple.contains("-windows-")
    }

    /// The loader of musl, which is not where its programs look for it on a system with glibc.
    pub fn musl_loader(&self) -> Option<String> {
        let processor = self.triple.split('-').next()?;
        let musl = self.glibc.is_none() && !self.is_windows();
        musl.then(|| format!("ld-musl-{processor}.so.1"))
    }

    /// Unit tests that cannot pass, and why.
    pub fn hopeless(&self) -> &'static [(&'static str, &'static str)] {
        match self.emulator {
            _ if self.is_windows() => &WINE,
            Some(_) => &EMULATED,
            None => &[],
        }
    }
}

const EMULATED: [(&str, &str); 1] = [(
    "net::datagram::tests::multicast_is_set_by_family",
    "qemu-user does not know the options of multicast (ENOPROTOOPT)",
)];

const WINE: [(&str, &str); 3] = [
    (
        "conn::connection::tests::what_was_sent_before_a_peer_went_is_read_though_writing_fails",
        "Windows has no pairs of Unix domain sockets, whose end shows at once to who writes",
    ),
    ("socket::tests::hearing::a_new_peers_subscription_that_is_in_the_kernel_counts", "wine has no ipc"),
    ("socket::tests::routes::a_group_gets_everything_until_something_changes", "wine has no ipc"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_long_and_a_short_name() {
        let old = find("x86_64-unknown-linux-gnu.2.17").unwrap();
        assert!(std::ptr::eq(old, find("x86_64-unknown-linux-gnu").unwrap()));
        assert_eq!(old.for_zig(), "x86_64-linux-gnu.2.17");
        assert_eq!(old.variable("RUNNER"), "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER");
        let musl = find("aarch64-unknown-linux-musl").unwrap();
        assert_eq!((musl.name().as_str(), musl.for_zig().as_str()), (musl.triple, musl.zig));
        assert_eq!(musl.musl_loader().as_deref(), Some("ld-musl-aarch64.so.1"));
        assert!(find("x86_64-unknown-linux-gnu.2.18").is_none());
    }
}
