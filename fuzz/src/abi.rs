//! C functions that the targets call, as `include/zmq.h` declares them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

// Links the functions.
use tautline_abi as _;

/// `zmq_msg_t`.
#[repr(C, align(8))]
pub struct Msg(pub [u8; 64]);

pub const DONTWAIT: c_int = 1;
pub const SNDMORE: c_int = 2;
pub const LINGER: c_int = 17;
pub const LAST_ENDPOINT: c_int = 32;

/// Number of socket types.
pub const TYPES: u8 = 21;

unsafe extern "C" {
    pub fn zmq_errno() -> c_int;
    pub fn zmq_strerror(number: c_int) -> *const c_char;
    pub fn zmq_ctx_new() -> *mut c_void;
    pub fn zmq_ctx_term(context: *mut c_void) -> c_int;
    pub fn zmq_ctx_set(context: *mut c_void, option: c_int, value: c_int) -> c_int;
    pub fn zmq_ctx_get(context: *mut c_void, option: c_int) -> c_int;
    pub fn zmq_ctx_set_ext(context: *mut c_void, option: c_int, value: *const c_void, len: usize) -> c_int;
    pub fn zmq_ctx_get_ext(context: *mut c_void, option: c_int, value: *mut c_void, len: *mut usize)
    -> c_int;
    pub fn zmq_socket(context: *mut c_void, kind: c_int) -> *mut c_void;
    pub fn zmq_close(socket: *mut c_void) -> c_int;
    pub fn zmq_setsockopt(socket: *mut c_void, option: c_int, value: *const c_void, len: usize) -> c_int;
    pub fn zmq_getsockopt(socket: *mut c_void, option: c_int, value: *mut c_void, len: *mut usize) -> c_int;
    pub fn zmq_bind(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    pub fn zmq_connect(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    pub fn zmq_unbind(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    pub fn zmq_disconnect(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    pub fn zmq_send(socket: *mut c_void, bytes: *const c_void, len: usize, flags: c_int) -> c_int;
    pub fn zmq_recv(socket: *mut c_void, bytes: *mut c_void, len: usize, flags: c_int) -> c_int;
    pub fn zmq_join(socket: *mut c_void, group: *const c_char) -> c_int;
    pub fn zmq_leave(socket: *mut c_void, group: *const c_char) -> c_int;
    pub fn zmq_msg_init(msg: *mut Msg) -> c_int;
    pub fn zmq_msg_init_size(msg: *mut Msg, size: usize) -> c_int;
    pub fn zmq_msg_init_buffer(msg: *mut Msg, bytes: *const c_void, size: usize) -> c_int;
    pub fn zmq_msg_init_data(
        msg: *mut Msg,
        data: *mut c_void,
        size: usize,
        free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
        hint: *mut c_void,
    ) -> c_int;
    pub fn zmq_msg_send(msg: *mut Msg, socket: *mut c_void, flags: c_int) -> c_int;
    pub fn zmq_msg_recv(msg: *mut Msg, socket: *mut c_void, flags: c_int) -> c_int;
    pub fn zmq_msg_close(msg: *mut Msg) -> c_int;
    pub fn zmq_msg_move(to: *mut Msg, from: *mut Msg) -> c_int;
    pub fn zmq_msg_copy(to: *mut Msg, from: *mut Msg) -> c_int;
    pub fn zmq_msg_data(msg: *mut Msg) -> *mut c_void;
    pub fn zmq_msg_size(msg: *const Msg) -> usize;
    pub fn zmq_msg_more(msg: *const Msg) -> c_int;
    pub fn zmq_msg_get(msg: *const Msg, property: c_int) -> c_int;
    pub fn zmq_msg_set(msg: *mut Msg, property: c_int, value: c_int) -> c_int;
    pub fn zmq_msg_gets(msg: *const Msg, property: *const c_char) -> *const c_char;
    pub fn zmq_msg_set_routing_id(msg: *mut Msg, id: u32) -> c_int;
    pub fn zmq_msg_routing_id(msg: *mut Msg) -> u32;
    pub fn zmq_msg_set_group(msg: *mut Msg, group: *const c_char) -> c_int;
    pub fn zmq_msg_group(msg: *mut Msg) -> *const c_char;
    pub fn zmq_z85_encode(text: *mut c_char, data: *const u8, size: usize) -> *mut c_char;
    pub fn zmq_z85_decode(data: *mut u8, text: *const c_char) -> *mut u8;
    pub fn zmq_curve_public(public: *mut c_char, secret: *const c_char) -> c_int;
}

/// Returns a context that lives as long as the process.
pub fn context() -> *mut c_void {
    static CONTEXT: OnceLock<usize> = OnceLock::new();
    // SAFETY: takes no arguments.
    *CONTEXT.get_or_init(|| unsafe { zmq_ctx_new() } as usize) as *mut c_void
}

/// Returns a C string of the text up to its first NUL.
pub fn text(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// Checks after a failed call that its error number has a name.
pub fn failed() -> c_int {
    // SAFETY: returns a string that lives forever.
    let (number, name) = unsafe { (zmq_errno(), CStr::from_ptr(zmq_strerror(zmq_errno()))) };
    assert!(number > 0 && !name.is_empty());
    number
}

/// Calls `zmq_getsockopt` with a buffer of `room` bytes, and checks that it stays within
/// the buffer.
///
/// # Safety
/// `socket` is a socket of this thread.
pub unsafe fn get(socket: *mut c_void, option: c_int, room: usize) -> Option<Vec<u8>> {
    const CANARY: u8 = 0xA7;
    let mut value = vec![CANARY; room + 64];
    let mut len = room;
    // SAFETY: the buffer has that many bytes.
    if unsafe { zmq_getsockopt(socket, option, value.as_mut_ptr().cast(), &mut len) } != 0 {
        failed();
        return None;
    }
    assert!(len <= room);
    assert!(value[room..].iter().all(|byte| *byte == CANARY), "option {option} wrote beyond the buffer");
    value.truncate(len);
    Some(value)
}
