//! Files, and memory that is shared through a descriptor.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};

use libc::{size_t, ssize_t};

use super::time::WALL_START;
use super::{call, is_simulated, real_of, real_syscall};
use crate::kernel::{Attributes, Body, FileKind, Kernel, SysResult};
use crate::raw;
use crate::world;

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: *mut c_void,
    length: size_t,
    access: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let is_ours = is_simulated(fd);
    let mut fd = fd;
    if is_ours {
        world::enter("mmap");
        fd = world::with(|world| real_of(&mut world.kernel, fd)).unwrap_or(Err(0)).unwrap_or(-1);
    }
    let arguments = [at as usize, length, access as usize, flags as usize, fd as usize, offset as usize];
    // SAFETY: the caller's arguments.
    let mapped = unsafe { real_syscall(libc::SYS_mmap, arguments) as *mut c_void };
    if mapped != libc::MAP_FAILED && (is_ours || flags & libc::MAP_FIXED != 0) {
        world::with(|world| match is_ours {
            true => world.kernel.mapped.insert(mapped as usize, length),
            // Replaces what was mapped here.
            false => world.kernel.mapped.remove(&(mapped as usize)),
        });
    }
    mapped
}

#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(at: *mut c_void, length: size_t) -> c_int {
    crate::store_buffer::flush_all();
    world::with(|world| world.kernel.mapped.remove(&(at as usize)));
    // SAFETY: the caller's arguments.
    unsafe { real_syscall(libc::SYS_munmap, [at as usize, length, 0, 0, 0, 0]) as c_int }
}

/// Makes a call of the real kernel about simulated memory.
unsafe fn of_memory(name: &'static str, number: c_long, fd: c_int, rest: [usize; 4]) -> i64 {
    let [a, b, c, d] = rest;
    if !is_simulated(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(number, [fd as usize, a, b, c, d, 0]) };
    }
    call(name, fd, |kernel| {
        let real = real_of(kernel, fd)?;
        // SAFETY: the caller's arguments.
        let result = unsafe { raw::call(number, [real as usize, a, b, c, d, 0]) };
        if result < 0 { Err(-result as i32) } else { Ok(result as i64) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fallocate(fd: c_int, mode: c_int, from: i64, length: i64) -> c_int {
    let is_full = world::with(|world| {
        let one_in = world.kernel.faults.no_memory;
        world.kernel.draw_fault(one_in)
    });
    if is_simulated(fd) && is_full == Some(true) {
        return call("fallocate", fd, |_| Err::<i64, _>(libc::ENOSPC)) as c_int;
    }
    // SAFETY: the caller's arguments.
    unsafe {
        of_memory("fallocate", libc::SYS_fallocate, fd, [mode as usize, from as usize, length as usize, 0])
            as c_int
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate(fd: c_int, length: i64) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("ftruncate", libc::SYS_ftruncate, fd, [length as usize, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatfs(fd: c_int, into: *mut c_void) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("fstatfs", libc::SYS_fstatfs, fd, [into as usize, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(fd: c_int, into: *mut c_void, length: size_t, from: i64) -> ssize_t {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("pread", libc::SYS_pread64, fd, [into as usize, length, from as usize, 0]) as ssize_t }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: usize) -> c_int {
    if world::current_thread().is_some() {
        // SAFETY: the caller's text.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        if path == b"/proc/loadavg" {
            let text = b"0.50 0.50 0.50 2/100 4242\n".to_vec();
            return call("open", -1, |kernel| Ok(kernel.open_new(Body::Text(text, 0)))) as c_int;
        }
        if path.starts_with(PLACE) {
            return call("open", -1, |kernel| {
                if flags & libc::O_CREAT == 0 {
                    return kernel.open_file(path);
                }
                if kernel.file(path).is_some() {
                    return Err(libc::EEXIST);
                }
                let one_in = kernel.faults.no_memory;
                if kernel.draw_fault(one_in) {
                    return Err(libc::ENOSPC);
                }
                let name = c"a file of the simulation".as_ptr() as usize;
                // SAFETY: a terminated name.
                let real = unsafe { raw::call(libc::SYS_memfd_create, [name, 0, 0, 0, 0, 0]) };
                if real < 0 { Err(-real as i32) } else { Ok(kernel.make_file(path, real as c_int)) }
            }) as c_int;
        }
        if path.starts_with(b"/proc/") || path.starts_with(b"/sys/") {
            return call("open", -1, |_| Err::<i64, _>(libc::ENOENT)) as c_int;
        }
    }
    // SAFETY: the caller's arguments.
    unsafe { real_syscall(libc::SYS_open, [path as usize, flags as usize, mode, 0, 0, 0]) as c_int }
}

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Returns the attributes of an open file.
fn of_descriptor(kernel: &mut Kernel, fd: c_int) -> SysResult<Attributes> {
    let inode = kernel.id(fd)?.into();
    match kernel.body(fd)? {
        Body::Memory(_) => Ok(Attributes { kind: FileKind::Plain, inode, length: 0, changed: 0 }),
        Body::Text(bytes, _) => {
            let length = bytes.len() as u64;
            Ok(Attributes { kind: FileKind::Plain, inode, length, changed: 0 })
        }
        _ => Err(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    at: c_int,
    path: *const c_char,
    flags: c_int,
    mask: u32,
    into: *mut libc::statx,
) -> c_int {
    if world::current_thread().is_some() && !path.is_null() {
        // SAFETY: the caller's text.
        let name = unsafe { CStr::from_ptr(path) }.to_bytes();
        if is_simulated(at) || name.starts_with(PLACE) {
            return call("statx", at, |kernel| {
                let found = match name.is_empty() {
                    true => of_descriptor(kernel, at)?,
                    false => kernel.attributes(name).ok_or(libc::ENOENT)?,
                };
                let mode = match found.kind {
                    FileKind::Socket => libc::S_IFSOCK | 0o777,
                    FileKind::Plain => libc::S_IFREG | 0o600,
                    FileKind::Folder => libc::S_IFDIR | 0o700,
                };
                // SAFETY: the caller's room; all zeroes is valid.
                unsafe {
                    *into = std::mem::zeroed();
                    (*into).stx_mask = libc::STATX_BASIC_STATS;
                    (*into).stx_mode = mode as u16;
                    (*into).stx_uid = libc::geteuid();
                    (*into).stx_ino = found.inode;
                    (*into).stx_nlink = 1;
                    (*into).stx_size = found.length;
                    for time in [&mut (*into).stx_mtime, &mut (*into).stx_ctime] {
                        time.tv_sec = WALL_START + (found.changed / SECOND) as i64;
                        time.tv_nsec = (found.changed % SECOND) as u32;
                    }
                }
                Ok(0)
            }) as c_int;
        }
    }
    let arguments = [at as usize, path as usize, flags as usize, mask as usize, into as usize, 0];
    // SAFETY: the caller's arguments.
    unsafe { real_syscall(libc::SYS_statx, arguments) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, length: size_t, at: i64) -> ssize_t {
    // SAFETY: the caller's arguments.
    unsafe { of_memory("pwrite", libc::SYS_pwrite64, fd, [from as usize, length, at as usize, 0]) as ssize_t }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: usize) -> c_int {
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    if world::current_thread().is_some() && name.starts_with(PLACE) {
        return call("mkdir", -1, |kernel| kernel.make_folder(name)) as c_int;
    }
    // SAFETY: the caller's arguments.
    unsafe { real_syscall(libc::SYS_mkdir, [path as usize, mode, 0, 0, 0, 0]) as c_int }
}

/// A simulated folder that is listed. Like the C library's type, it begins with its descriptor.
#[repr(C)]
struct Listing {
    fd: c_int,
    entry: libc::dirent64,
}

/// Returns the listing, unless it is one of the C library.
unsafe fn listing<'a>(folder: *mut libc::DIR) -> Option<&'a mut Listing> {
    // SAFETY: both types begin with their descriptor, and only simulated ones are this large.
    unsafe { is_simulated(*folder.cast::<c_int>()).then(|| &mut *folder.cast::<Listing>()) }
}

/// Returns the function of this name in the C library.
fn of_library(name: &CStr) -> *mut c_void {
    // SAFETY: the name is terminated.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut libc::DIR {
    type Open = unsafe extern "C" fn(*const c_char) -> *mut libc::DIR;
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    if world::current_thread().is_some() && name.starts_with(PLACE) {
        let fd = call("opendir", -1, |kernel| kernel.list_folder(name)) as c_int;
        if fd < 0 {
            return std::ptr::null_mut();
        }
        // SAFETY: all zeroes is a valid entry.
        let listing = Listing { fd, entry: unsafe { std::mem::zeroed() } };
        return Box::into_raw(Box::new(listing)).cast();
    }
    // SAFETY: the function of this name has this type; the caller's text.
    unsafe { std::mem::transmute::<*mut c_void, Open>(of_library(c"opendir"))(path) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readdir64(folder: *mut libc::DIR) -> *mut libc::dirent64 {
    type Read = unsafe extern "C" fn(*mut libc::DIR) -> *mut libc::dirent64;
    // SAFETY: the caller's folder.
    let Some(listing) = (unsafe { listing(folder) }) else {
        // SAFETY: the function of this name has this type; the caller's folder.
        return unsafe { std::mem::transmute::<*mut c_void, Read>(of_library(c"readdir64"))(folder) };
    };
    world::enter("readdir");
    let Some(name) = world::with(|world| world.kernel.next_name(listing.fd)).flatten() else {
        return std::ptr::null_mut();
    };
    listing.entry.d_type = libc::DT_REG;
    listing.entry.d_name.fill(0);
    for (to, from) in listing.entry.d_name.iter_mut().zip(name) {
        *to = from as c_char;
    }
    &raw mut listing.entry
}

#[unsafe(no_mangle)]
unsafe extern "C" fn closedir(folder: *mut libc::DIR) -> c_int {
    type Close = unsafe extern "C" fn(*mut libc::DIR) -> c_int;
    // SAFETY: the caller's folder.
    if let Some(listing) = unsafe { listing(folder) } {
        let closed = call("closedir", listing.fd, |kernel| kernel.close(listing.fd)) as c_int;
        // SAFETY: it comes from `opendir`, and is not used after this call.
        drop(unsafe { Box::from_raw(listing) });
        return closed;
    }
    // SAFETY: the function of this name has this type; the caller's folder.
    unsafe { std::mem::transmute::<*mut c_void, Close>(of_library(c"closedir"))(folder) }
}

/// Prefix of the paths of simulated files.
const PLACE: &[u8] = b"/sim/";

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    if world::current_thread().is_some() && name.starts_with(PLACE) {
        return call("unlink", -1, |kernel| kernel.unlink(name)) as c_int;
    }
    // SAFETY: the caller's arguments.
    unsafe { real_syscall(libc::SYS_unlink, [path as usize, 0, 0, 0, 0, 0]) as c_int }
}
