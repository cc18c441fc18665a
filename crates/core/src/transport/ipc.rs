//! `ipc://`, zmq_ipc(7): Unix domain sockets.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::tcp::stream_options;
use super::{Bound, ConnectRoute, Failed, Hop, Leftover};
use crate::endpoint::{Endpoint, IpcEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::fd::from_int;
use tautline_io::net::{self, Address, Family as StreamFamily, Listener, SocketFile, Stream};
use tautline_io::{env, lending};

pub(super) fn listen(endpoint: &Endpoint, options: &Options) -> Option<Result<Bound, Failed>> {
    let ipc = endpoint.address()?;
    if !net::is_unix_supported() {
        return Some(Err(Error::ProtocolNotSupported.into()));
    }
    Some(listen_ipc(ipc, options))
}

fn listen_ipc(ipc: &IpcEndpoint, options: &Options) -> Result<Bound, Failed> {
    if let Some(fd) = options.use_fd {
        let listener = Listener::take_over(from_int(fd))?;
        let endpoint = format!("ipc://{}", listener.local_address()?);
        return Ok(Bound { listener, endpoint, unlink: None, carrying: None });
    }
    match ipc {
        IpcEndpoint::Abstract(name) => {
            let listener = listen_at(&Address::Abstract(name.clone()), options)?;
            Ok(Bound { listener, endpoint: format!("ipc://{ipc}"), unlink: None, carrying: None })
        }
        IpcEndpoint::Path(path) => {
            // A file left behind by a crashed process would make every bind fail. If the file
            // cannot be removed, bind itself reports the error.
            let _ = net::clear_path(Path::new(path));
            listen_in(path.into(), None, options)
        }
        IpcEndpoint::Wildcard => {
            let directory = net::temporary_directory()?;
            listen_in(directory.join("socket"), Some(directory), options)
        }
    }
}

/// Listens at a path, in the directory that was created for it, if any.
fn listen_in(path: PathBuf, directory: Option<PathBuf>, options: &Options) -> Result<Bound, Failed> {
    let endpoint = format!("ipc://{}", path.display());
    // Use an absolute path, because the process may have changed its working directory before this
    // one is removed.
    let made = directory.map(std::path::absolute).transpose()?;
    match listen_at(&Address::Unix { path: path.clone() }, options) {
        Ok(listener) => {
            let file = SocketFile::at(&path).ok();
            // Set all permissions, including those that the umask has removed.
            if let Some(Err(error)) =
                options.policy_settings.ipc_mode.map(|mode| net::set_path_mode(&path, mode))
            {
                file.iter().for_each(SocketFile::remove);
                let _ = made.map(std::fs::remove_dir);
                return Err(error.into());
            }
            // As in libzmq, the file stays if the program has chosen its path: the next server may
            // have bound the path already.
            let unlink = file.zip(made).map(|(file, directory)| Leftover { file, directory });
            Ok(Bound { listener, endpoint, unlink, carrying: None })
        }
        Err(error) => {
            if let Some(directory) = made {
                let _ = std::fs::remove_dir(directory);
            }
            Err(error)
        }
    }
}

fn listen_at(address: &Address, options: &Options) -> Result<Listener, Failed> {
    Ok(Listener::bind(address, &stream_options(options), options.backlog, false)?)
}

pub(super) fn route(endpoint: &Endpoint, _options: &Options) -> Option<Result<ConnectRoute, Error>> {
    let ipc = endpoint.address()?;
    if !net::is_unix_supported() {
        return Some(Err(Error::ProtocolNotSupported));
    }
    let address = match ipc {
        IpcEndpoint::Wildcard => return Some(Err(Error::Invalid)),
        IpcEndpoint::Path(path) => Address::Unix { path: path.into() },
        IpcEndpoint::Abstract(name) => Address::Abstract(name.clone()),
    };
    Some(Ok(ConnectRoute { source: None, hop: Hop::Direct(address), beyond: None }))
}

pub(super) fn admit(stream: &Stream, family: StreamFamily, options: &Options) -> Option<bool> {
    if family != StreamFamily::Unix {
        return None;
    }
    let (pids, uids, gids) = (&options.ipc_filter_pids, &options.ipc_filter_uids, &options.ipc_filter_gids);
    let wanted = (pids.is_empty() && uids.is_empty() && gids.is_empty())
        || stream.peer_credentials().is_ok_and(|who| {
            pids.contains(&who.pid)
                || uids.contains(&who.uid)
                || gids.iter().any(|gid| *gid == who.gid || net::user_in_group(who.uid, *gid))
        });
    prepare_sharing(stream, options);
    Some(wanted && stream.apply(&stream_options(options)).is_ok())
}

/// Prepares a stream for shared memory, if both processes support it and the program does not limit
/// the buffers to less than that memory holds.
pub(super) fn prepare_sharing(stream: &Stream, options: &Options) {
    let limited = [options.send_buffer, options.receive_buffer]
        .into_iter()
        .flatten()
        .any(|bytes| (bytes as usize) < net::SHARED_CAPACITY);
    if !limited && !options.router_raw && peers_with_memory() != Peers::Nobody {
        stream.prepare_sharing();
    }
}

/// Starts to share memory after the peer has completed its handshake.
pub(super) fn begin_sharing(stream: &Stream) {
    stream.begin_sharing(peers_with_memory() == Peers::Everybody);
}

/// Peers with which memory is shared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Peers {
    /// `TAUT_IPC_MEMORY=0` in the environment.
    Nobody,
    OfOurUser,
    /// `TAUT_IPC_MEMORY=all`.
    Everybody,
}

/// Returns the setting of the environment at the time of the first context. Also applies the
/// setting of loans then.
pub(super) fn peers_with_memory() -> Peers {
    static PEERS: OnceLock<Peers> = OnceLock::new();
    *PEERS.get_or_init(|| {
        lending::configure(env::var_os("TAUT_IPC_LOANS").as_deref());
        match env::var_os("TAUT_IPC_MEMORY") {
            Some(value) if value == "0" => Peers::Nobody,
            Some(value) if value == "all" => {
                // A process sees all bodies of a slab that it maps.
                lending::forbid();
                Peers::Everybody
            }
            _ => Peers::OfOurUser,
        }
    })
}
