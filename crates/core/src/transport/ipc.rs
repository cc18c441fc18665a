//! `ipc://`, zmq_ipc(7): Unix domain sockets.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::tcp::stream_options;
use super::{Bound, Hop, Leftover, Route};
use crate::endpoint::{Endpoint, IpcEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::net::{self, Address, Family as StreamFamily, Listener, Stream};

pub(super) fn listen(endpoint: &Endpoint, options: &Options) -> Option<Result<Bound, Error>> {
    let ipc = endpoint.address()?;
    Some(listen_ipc(ipc, options))
}

fn listen_ipc(ipc: &IpcEndpoint, options: &Options) -> Result<Bound, Error> {
    if let Some(fd) = options.use_fd {
        let listener = Listener::from_fd(net::duplicate(fd)?)?;
        let endpoint = format!("ipc://{}", listener.local_address()?);
        return Ok(Bound { listener, endpoint, unlink: None, carrying: None });
    }
    let (address, endpoint, unlink) = match ipc {
        IpcEndpoint::Abstract(name) => (Address::Abstract(name.clone()), format!("ipc://{ipc}"), None),
        IpcEndpoint::Path(path) => {
            let path = PathBuf::from(path);
            // A file left behind by a process that has died would make every bind fail.
            let _ = net::remove_socket_file(&path);
            (
                Address::Unix { path: path.clone() },
                format!("ipc://{ipc}"),
                Some(Leftover { file: path, directory: None }),
            )
        }
        IpcEndpoint::Wildcard => {
            let directory = net::temporary_directory()?;
            let file = directory.join("socket");
            let endpoint = format!("ipc://{}", file.display());
            (
                Address::Unix { path: file.clone() },
                endpoint,
                Some(Leftover { file, directory: Some(directory) }),
            )
        }
    };
    match Listener::bind(&address, &stream_options(options), options.backlog, false) {
        Ok(listener) => Ok(Bound { listener, endpoint, unlink, carrying: None }),
        Err(error) => {
            if let Some(directory) = unlink.and_then(|leftover| leftover.directory) {
                let _ = std::fs::remove_dir(directory);
            }
            Err(error.into())
        }
    }
}

pub(super) fn route(endpoint: &Endpoint, _options: &Options) -> Option<Result<Route, Error>> {
    let ipc = endpoint.address()?;
    let address = match ipc {
        IpcEndpoint::Wildcard => return Some(Err(Error::Invalid)),
        IpcEndpoint::Path(path) => Address::Unix { path: path.into() },
        IpcEndpoint::Abstract(name) => Address::Abstract(name.clone()),
    };
    Some(Ok(Route { source: None, hop: Hop::Direct(address), beyond: None }))
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
    share(stream, options);
    Some(wanted && stream.apply(&stream_options(options)).is_ok())
}

/// Bytes go through memory that both processes map, where both can and the kernel's buffers were not given a size.
pub(super) fn share(stream: &Stream, options: &Options) {
    if options.send_buffer.is_none() && options.receive_buffer.is_none() && !options.router_raw && is_wanted()
    {
        stream.share_memory();
    }
}

/// `TAUT_IPC_MEMORY=0` in the environment: no memory is shared.
fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var_os("TAUT_IPC_MEMORY").is_none_or(|value| value != "0"))
}
