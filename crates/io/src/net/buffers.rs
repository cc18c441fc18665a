//! Bytes to send and space to receive into, in the form that system calls take.

use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

#[cfg(unix)]
pub(super) use libc::iovec as Raw;
#[cfg(windows)]
pub(super) use windows_sys::Win32::Networking::WinSock::WSABUF as Raw;

/// Most buffers per call. Unix systems refuse more with EMSGSIZE.
const MAX_BUFFERS: usize = 1024;

/// Bytes to send, from one buffer or several in order.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    list: List<'a>,
    bytes: PhantomData<&'a [u8]>,
}

/// Space to receive into, in one buffer or several in order.
pub(super) struct Targets<'a> {
    list: List<'a>,
    bytes: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

#[derive(Clone, Copy)]
enum List<'a> {
    One([Raw; 1]),
    Two([Raw; 2]),
    Several(&'a [Raw]),
}

#[cfg(unix)]
fn raw_of(start: *mut u8, length: usize) -> Raw {
    Raw { iov_base: start.cast(), iov_len: length }
}

/// Describes a buffer. Cuts a buffer that is longer than Winsock can express.
#[cfg(windows)]
fn raw_of(start: *mut u8, length: usize) -> Raw {
    Raw { len: u32::try_from(length).unwrap_or(u32::MAX), buf: start }
}

impl List<'_> {
    fn raw(&self) -> &[Raw] {
        match self {
            List::One(one) => one,
            List::Two(two) => two,
            List::Several(several) => &several[..several.len().min(MAX_BUFFERS)],
        }
    }
}

impl<'a> Sources<'a> {
    pub(super) fn one(bytes: &'a [u8]) -> Self {
        let raw = raw_of(bytes.as_ptr().cast_mut(), bytes.len());
        Sources { list: List::One([raw]), bytes: PhantomData }
    }

    /// Creates the list from several buffers; only the first 1024 count.
    pub(super) fn several(buffers: &'a [IoSlice<'a>]) -> Self {
        // SAFETY: IoSlice has the layout of Raw (documented), and both slices have the same length
        // and lifetime.
        let raw = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Sources { list: List::Several(raw), bytes: PhantomData }
    }

    /// Returns the buffers. Each is valid for reads of its length, for `'a`.
    pub(super) fn raw(&self) -> &[Raw] {
        self.list.raw()
    }
}

impl<'a> Targets<'a> {
    pub(super) fn one(buffer: &'a mut [MaybeUninit<u8>]) -> Self {
        Targets { list: List::One([raw_of(buffer.as_mut_ptr().cast(), buffer.len())]), bytes: PhantomData }
    }

    pub(super) fn two(first: &'a mut [MaybeUninit<u8>], second: &'a mut [MaybeUninit<u8>]) -> Self {
        let raw = [first, second].map(|buffer| raw_of(buffer.as_mut_ptr().cast(), buffer.len()));
        Targets { list: List::Two(raw), bytes: PhantomData }
    }

    /// Creates the list from several buffers; only the first 1024 count.
    pub(super) fn several(buffers: &'a mut [IoSliceMut<'_>]) -> Self {
        // SAFETY: IoSliceMut has the layout of Raw (documented), and both slices have the same
        // length. The buffers outlive `'a`.
        let raw = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Targets { list: List::Several(raw), bytes: PhantomData }
    }

    /// Returns the buffers. Each is valid for writes of its length, for `'a`.
    pub(super) fn raw(&self) -> &[Raw] {
        self.list.raw()
    }

    /// Returns the first `most` bytes of the first buffer that is not empty.
    #[cfg(linux_kernel)]
    pub(super) fn beginning(&self, most: usize) -> Targets<'_> {
        let first = self.raw().iter().find(|raw| raw.iov_len > 0);
        let first = first.map_or(raw_of(std::ptr::null_mut(), 0), |raw| {
            raw_of(raw.iov_base.cast(), raw.iov_len.min(most))
        });
        Targets { list: List::One([first]), bytes: PhantomData }
    }
}

/// Views a buffer as possibly uninitialised memory, for callees that only write to it.
pub(super) fn uninit(buffer: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: both types have the same layout. The users (`receive`, and the rings of `shared`)
    // write only initialised bytes.
    unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) }
}
