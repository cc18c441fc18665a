//! Link arguments of the shared library: the name that programs built for libzmq look for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Only `#[no_mangle]` functions leave a cdylib, and those are all `zmq_*`: no version script is needed.
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libzmq.5.dylib");
            // Those of libzmq 4.3.5: a program asks for what it was linked with, or later.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-compatibility_version,8.0.0,-current_version,8.5.0");
            // Whoever installs it writes where into it.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-headerpad_max_install_names");
        }
        Ok("windows") => {}
        _ => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libzmq.so.5");
            // What debuggers, profilers and crash reports find the separate debug symbols by.
            println!("cargo:rustc-cdylib-link-arg=-Wl,--build-id=sha1");
        }
    }
}
