//! Link arguments of the shared library: the library name that programs built for libzmq load.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A cdylib exports only `#[no_mangle]` functions, and all of these are `zmq_*`: no version script is
    // needed.
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libzmq.5.dylib");
            // The versions of libzmq 4.3.5: a program requires the version that it was linked with, or a
            // later one.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-compatibility_version,8.0.0,-current_version,8.5.0");
            // The installer writes the install path into this space.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-headerpad_max_install_names");
        }
        Ok("windows") => {}
        _ => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libzmq.so.5");
            // Debuggers, profilers and crash reports find the separate debug symbols by this id.
            println!("cargo:rustc-cdylib-link-arg=-Wl,--build-id=sha1");
        }
    }
}
