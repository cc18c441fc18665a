//! Lists the listening TCP and Unix domain stream sockets of this machine from `/proc`, with their
//! processes as far as this user may see them.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;

use procfs::net::{TcpState, UnixState};

use super::{At, Listener};
use crate::failure::{Failure, Result};

/// Value of SOCK_STREAM.
const STREAM: i32 = 1;

/// Returns every listening socket once.
pub fn all() -> Result<Vec<Listener>> {
    let mut sockets: BTreeMap<At, u64> = BTreeMap::new();
    let tcp = procfs::net::tcp().map_err(|error| unreadable(&error))?;
    // Without IPv6, this table does not exist.
    let tcp6 = procfs::net::tcp6().unwrap_or_default();
    for entry in tcp.into_iter().chain(tcp6).filter(|entry| entry.state == TcpState::Listen) {
        sockets.insert(At::Tcp(entry.local_address), entry.inode);
    }
    for entry in procfs::net::unix().map_err(|error| unreadable(&error))? {
        // The state is the same for a socket that does not listen. Such a socket refuses our
        // connection.
        let listens = i32::from(entry.socket_type) == STREAM && entry.state == UnixState::UNCONNECTED;
        if let (true, Some(path)) = (listens, entry.path) {
            let mode = std::fs::metadata(&path).map_or(0o777, |found| found.permissions().mode());
            sockets.insert(At::Path(path.to_string_lossy().into_owned(), mode), entry.inode);
        }
    }
    let owners = owners();
    let listener = |(at, inode)| {
        let owner: Option<&(u32, String)> = owners.get(&inode);
        Listener { at, pid: owner.map(|owner| owner.0), program: owner.map(|owner| owner.1.clone()) }
    };
    Ok(sockets.into_iter().map(listener).collect())
}

/// Returns the process of each socket by inode.
fn owners() -> HashMap<u64, (u32, String)> {
    let mut owners = HashMap::new();
    let Ok(processes) = procfs::process::all_processes() else { return owners };
    for process in processes.flatten() {
        let (Ok(pid), Ok(descriptors)) = (u32::try_from(process.pid()), process.fd()) else { continue };
        let program = process.exe().ok();
        let program = program.as_deref().and_then(|path| path.file_name());
        let program = program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for descriptor in descriptors.flatten() {
            if let procfs::process::FDTarget::Socket(inode) = descriptor.target {
                owners.entry(inode).or_insert_with(|| (pid, program.clone()));
            }
        }
    }
    owners
}

fn unreadable(error: &procfs::ProcError) -> Failure {
    Failure::failed(format!("cannot list the listening sockets: {error}"))
        .hint("audit needs /proc; use --source to check source code instead")
}
