//! Runs every example to its end. The examples check their own results. Cargo has built them beside the tests.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tautline_testkit::with_watchdog;

/// Runs an example's program.
fn run(name: &str) {
    with_watchdog(Duration::from_secs(60), name, || {
        let test = std::env::current_exe().unwrap();
        let program: PathBuf =
            test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
        let status = Command::new(&program).status();
        assert!(status.as_ref().is_ok_and(|status| status.success()), "{}: {status:?}", program.display());
    });
}

macro_rules! examples {
    ($($(#[$only:meta])* $name:ident)*) => {$(
        $(#[$only])*
        #[test]
        fn $name() {
            run(stringify!($name));
        }
    )*};
}

examples! {
    #[cfg(feature = "tokio")]
    async_workers
    curve_server
    graceful_shutdown
    hello_world
    inproc_pipeline
    last_value_cache
    lazy_pirate
    majordomo
    streaming
    #[cfg(feature = "tokio")]
    tokio_service
    ventilator
    weather
}
