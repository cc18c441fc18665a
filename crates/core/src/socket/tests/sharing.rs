//! Use of shared memory by connections over ipc.

use super::*;
use tautline_io::net::{SHARED_CAPACITY, SHARES_MEMORY};
use tautline_testkit::with_watchdog;

const SNDBUF: i32 = 11;
const RCVBUF: i32 = 12;
/// Number of exchanges after which both ends use shared memory, if they can.
const ENOUGH: u32 = 200;

/// True if a connection uses shared memory when its bound end, or else its other end, has this
/// option.
fn shares(option: i32, bytes: i32, bound: bool) -> bool {
    let context = Context::new();
    let [mut near, mut far] = [(); 2].map(|()| context.socket(SocketType::Pair).unwrap());
    let limited = if bound { &mut near } else { &mut far };
    limited.set_option(option, &bytes.to_ne_bytes()).unwrap();
    near.bind("ipc://*").unwrap();
    far.connect(&near.last_endpoint).unwrap();
    for _ in 0..ENOUGH {
        far.send(b"there", Flags::NONE).unwrap();
        near.recv(&mut [0; 5], Flags::NONE).unwrap();
        near.send(b"back", Flags::NONE).unwrap();
        far.recv(&mut [0; 4], Flags::NONE).unwrap();
    }
    let pipes = near.pipes.all();
    let pipe = near.pipes.get(pipes[0]).unwrap();
    pipe.connection().unwrap().shares_memory()
}

#[test]
fn small_socket_buffer_disables_shared_memory() {
    with_watchdog(Duration::from_secs(60), "buffers", || {
        let capacity = SHARED_CAPACITY as i32;
        for option in [SNDBUF, RCVBUF] {
            for bound in [true, false] {
                for bytes in [-1, capacity, 512 << 20] {
                    assert_eq!(shares(option, bytes, bound), SHARES_MEMORY, "{option} {bytes} {bound}");
                }
                for bytes in [0, 4096, capacity - 1] {
                    assert!(!shares(option, bytes, bound), "{option} {bytes} {bound}");
                }
            }
        }
    });
}
