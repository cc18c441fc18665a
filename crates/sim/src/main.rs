//! One simulation: `tautline-sim SEED [--trace]`. Started by `cargo xtask simulate`.

fn main() {
    #[cfg(all(simulated, target_os = "linux", target_arch = "x86_64"))]
    tautline_sim::main();
    #[cfg(not(all(simulated, target_os = "linux", target_arch = "x86_64")))]
    eprintln!("built without `--cfg simulated`, on Linux for x86-64: there is nothing to run");
}
