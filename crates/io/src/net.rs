//! Stream sockets over TCP, Unix domain and vsock: addresses, listeners, connections and the
//! identity of the peer. Also datagrams over UDP.
//!
//! Used by the transports. No call blocks: a call that would block returns
//! [`std::io::ErrorKind::WouldBlock`], and a reactor reports readiness. Errors carry the system's
//! number (`raw_os_error`).

use std::io;

use crate::libc;

mod address;
mod adopt;
mod buffers;
mod datagram;
mod failure;
#[cfg_attr(windows, path = "net/identity/none.rs")]
mod identity;
mod listener;
#[cfg(not(linux_kernel))]
mod no_loan;
mod option;
mod options;
#[cfg_attr(windows, path = "net/rights/none.rs")]
mod rights;
#[cfg_attr(not(linux_kernel), path = "net/shared/none.rs")]
mod shared;
mod stream;
#[cfg_attr(windows, path = "net/transfer/windows.rs")]
mod transfer;
#[cfg_attr(windows, path = "net/unix_path/windows.rs")]
mod unix_path;

#[cfg_attr(linux_kernel, path = "net/os/linux.rs")]
#[cfg_attr(windows, path = "net/os/windows.rs")]
#[cfg_attr(all(unix, not(linux_kernel)), path = "net/os/unix.rs")]
mod os;

#[cfg(linux_kernel)]
pub use crate::slab::{is_lent, start as prepare_loans};
pub use address::{Address, VSOCK_ANY, host_of};
pub use adopt::{Family, family_of, is_listening, peer_address_of};
pub use datagram::{Datagram, DatagramOptions, MAX_DATAGRAM, MulticastInterface};
pub use failure::Failure;
#[cfg(unix)]
pub use identity::peer_credentials_of;
pub use identity::{Credentials, group_id, groups_of_user, own_user, user_id, user_in_group};
pub use listener::{Listener, is_ipv6_supported, is_unix_supported};
#[cfg(not(linux_kernel))]
pub use no_loan::{is_lent, prepare_loans};
pub use options::StreamOptions;
pub use shared::Loan;
#[cfg(linux_kernel)]
pub(crate) use shared::start_caretaker;
pub use stream::{Shutdown, Stream, is_loan};
pub use unix_path::{SocketFile, clear_path, set_path_mode, temporary_directory};

/// True if the two ends of a Unix domain stream can share memory on this system.
pub const SHARES_MEMORY: bool = cfg!(linux_kernel);

/// Capacity in bytes of the shared memory of one direction.
pub const SHARED_CAPACITY: usize = if cfg!(simulated) { 32 * 1024 } else { 2 * 1024 * 1024 };

/// True if an error of [`Listener::accept`] concerns only the connection that was being accepted
/// (accept(2)). The caller may then accept the next connection at once. Other errors, such as a
/// lack of descriptors or a sandbox that refuses the call, may repeat as long as the connection
/// waits.
pub fn concerns_one_connection(error: &io::Error) -> bool {
    let of_the_network = [
        libc::ECONNABORTED,
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EHOSTDOWN,
        libc::EHOSTUNREACH,
        libc::EOPNOTSUPP,
        libc::ENETDOWN,
        libc::ENETUNREACH,
    ];
    error.raw_os_error().is_some_and(|number| of_the_network.contains(&number))
}

#[cfg(test)]
mod tests;
