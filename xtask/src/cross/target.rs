//! The systems that `cargo xtask cross` builds for.

/// A system with its names in other tools.
#[derive(Debug)]
pub struct Target {
    /// Name in rustc.
    pub triple: &'static str,
    /// Oldest glibc that the library must load with. `None`: musl of any version.
    pub glibc: Option<&'static str>,
    /// Name in zig, without a version of glibc.
    pub zig: &'static str,
    /// Emulator of the processor or the system. `None`: programs run here directly.
    pub emulator: Option<&'static str>,
    /// Name in pip of systems with this C library. `None`: pip has no name for them.
    pub wheel: Option<&'static str>,
    /// Platform of the npm packages (`bindings/node/scripts/targets.mjs`). `None`: there is no package for it.
    pub npm: Option<Npm>,
}

/// A platform of the Node.js addon.
#[derive(Debug)]
pub struct Npm {
    pub name: &'static str,
    /// Source of Node.js itself.
    pub node: Node,
}

/// Source of the Node.js of a platform.
#[derive(Debug)]
pub enum Node {
    /// PyPI, with the name of the platform in pip.
    Pip(&'static str),
    /// Debian, with its name of the processor.
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

/// All targets, the fastest first. Each glibc is the oldest that pip's manylinux2014 knows; RISC-V began with 2.27.
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

/// Returns the target with this name. The version of glibc may be left out.
pub fn find(word: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name() == word || target.triple == word)
}

impl Target {
    /// Returns the triple with the oldest glibc, such as `x86_64-unknown-linux-gnu.2.17`.
    pub fn name(&self) -> String {
        self.versioned(self.triple)
    }

    /// Returns the argument of `zig cc -target`.
    pub fn for_zig(&self) -> String {
        self.versioned(self.zig)
    }

    fn versioned(&self, triple: &str) -> String {
        self.glibc.map_or_else(|| triple.to_owned(), |version| format!("{triple}.{version}"))
    }

    /// Returns the name of an environment variable that Cargo reads for this target.
    pub fn variable(&self, what: &str) -> String {
        format!("CARGO_TARGET_{}_{what}", self.triple.to_uppercase().replace('-', "_"))
    }

    /// True if `scripts/dist.sh` makes packages for the target. Their library has TLS.
    pub fn is_packaged(&self) -> bool {
        let processor = self.triple.split('-').next();
        matches!(processor, Some("x86_64" | "aarch64")) && !self.is_windows()
    }

    /// True for Windows, for which MinGW's tools compile instead of zig.
    pub fn is_windows(&self) -> bool {
        self.triple.contains("-windows-")
    }

    /// Returns the name of musl's loader. A system with glibc does not have it at the path that programs expect.
    pub fn musl_loader(&self) -> Option<String> {
        let processor = self.triple.split('-').next()?;
        let musl = self.glibc.is_none() && !self.is_windows();
        musl.then(|| format!("ld-musl-{processor}.so.1"))
    }

    /// Returns unit tests that cannot pass on the target, with the reasons.
    pub fn expected_failures(&self) -> &'static [(&'static str, &'static str)] {
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
