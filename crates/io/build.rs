//! Short names for frequent target conditions: `linux_kernel` (Linux and Android) and `apple`.
//!
//! `--cfg tautline_bsd` is for tests on Linux only. It makes the target count as macOS instead of Linux, so
//! that the code of the other systems is compiled, on top of an emulation of macOS (`src/imitation.rs`).

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(linux_kernel, apple)");
    let is = |name: &str, values: &[&str]| var(name).is_ok_and(|value| values.contains(&value.as_str()));
    let imitated = var("CARGO_CFG_TAUTLINE_BSD").is_ok();
    if is("CARGO_CFG_TARGET_OS", &["linux", "android"]) && !imitated {
        println!("cargo::rustc-cfg=linux_kernel");
    }
    if is("CARGO_CFG_TARGET_VENDOR", &["apple"]) || imitated {
        println!("cargo::rustc-cfg=apple");
    }
}
