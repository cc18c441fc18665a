//! Puts the personality routine of `src/exit.rs` in front of that of the standard library. The conditions are those of
//! its `cfg`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" && target("ARCH") != "arm" {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap=rust_eh_personality");
    }
}
