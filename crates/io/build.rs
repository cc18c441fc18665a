//! Names for what is asked of the target again and again: `linux_kernel` (Linux and Android) and `apple`.
//!
//! With `--cfg tautline_bsd`, on Linux and for tests only, it is neither Linux nor anything else: the code of the other systems is
//! compiled, on an imitation of what macOS has (`src/imitation.rs`).

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
