//! Gives sockets the names and methods of file descriptors.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::windows::io::{AsRawSocket, AsSocket, FromRawSocket, IntoRawSocket};
pub use std::os::windows::io::{BorrowedSocket as BorrowedFd, OwnedSocket as OwnedFd, RawSocket as RawFd};

/// Stands for [`AsSocket`].
pub trait AsFd {
    /// Borrows the socket.
    fn as_fd(&self) -> BorrowedFd<'_>;
}

macro_rules! sockets {
    ($($name:ty),*) => {$(
        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.as_socket()
            }
        }
    )*};
}

sockets!(OwnedFd, BorrowedFd<'_>, TcpListener, TcpStream, UdpSocket);

impl<T: AsFd + ?Sized> AsFd for &T {
    fn as_fd(&self) -> BorrowedFd<'_> {
        T::as_fd(self)
    }
}

/// Stands for [`AsRawSocket`].
pub trait AsRawFd {
    /// Returns the socket's number.
    fn as_raw_fd(&self) -> RawFd;
}

impl<T: AsRawSocket> AsRawFd for T {
    fn as_raw_fd(&self) -> RawFd {
        self.as_raw_socket()
    }
}

/// Stands for [`FromRawSocket`].
pub trait FromRawFd: Sized {
    /// Takes over a socket.
    ///
    /// # Safety
    /// The socket is open and belongs to the caller.
    unsafe fn from_raw_fd(fd: RawFd) -> Self;
}

impl<T: FromRawSocket> FromRawFd for T {
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: the caller guarantees that the socket is open and its own.
        unsafe { T::from_raw_socket(fd) }
    }
}

/// Stands for [`IntoRawSocket`].
pub trait IntoRawFd {
    /// Gives the socket away.
    fn into_raw_fd(self) -> RawFd;
}

impl<T: IntoRawSocket> IntoRawFd for T {
    fn into_raw_fd(self) -> RawFd {
        self.into_raw_socket()
    }
}
