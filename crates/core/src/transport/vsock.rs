//! `vsock://`, zmq_vsock(7): between virtual machines and their host, if the kernel supports it.

use super::tcp::stream_options;
use super::{Bound, ConnectRoute, Failed, Hop};
use crate::endpoint::{Endpoint, VsockEndpoint};
use crate::error::Error;
use crate::options::Options;
use tautline_io::fd::from_int;
use tautline_io::net::{Address, Family as StreamFamily, Listener, Stream, VSOCK_ANY};

pub(super) fn listen(endpoint: &Endpoint, options: &Options) -> Option<Result<Bound, Failed>> {
    let vsock = endpoint.address()?;
    Some(listen_vsock(vsock, options))
}

fn listen_vsock(vsock: &VsockEndpoint, options: &Options) -> Result<Bound, Failed> {
    let listener = match options.use_fd {
        Some(fd) => Listener::take_over(from_int(fd))?,
        None => Listener::bind(&address(vsock), &stream_options(options), options.backlog, false)?,
    };
    let endpoint = format!("vsock://{}", listener.local_address()?);
    Ok(Bound { listener, endpoint, unlink: None, carrying: None })
}

/// The name of a listener at `vsock`, if it does not depend on a port that the system chooses.
pub(super) fn local_name(endpoint: &Endpoint, _options: &Options) -> Option<String> {
    let vsock: &VsockEndpoint = endpoint.address()?;
    vsock.port.map(|_| format!("vsock://{vsock}"))
}

pub(super) fn route(endpoint: &Endpoint, _options: &Options) -> Option<Result<ConnectRoute, Error>> {
    let vsock: &VsockEndpoint = endpoint.address()?;
    Some(Ok(ConnectRoute { source: None, hop: Hop::Direct(address(vsock)), beyond: None }))
}

pub(super) fn admit(stream: &Stream, family: StreamFamily, options: &Options) -> Option<bool> {
    if family != StreamFamily::Vsock {
        return None;
    }
    Some(stream.apply(&stream_options(options)).is_ok())
}

fn address(vsock: &VsockEndpoint) -> Address {
    Address::Vsock { cid: vsock.cid.unwrap_or(VSOCK_ANY), port: vsock.port.unwrap_or(VSOCK_ANY) }
}
