//! `zmq_msg_*`: message objects. The engine's [`Message`] is stored in the 64 bytes of `zmq_msg_t`.
//! Its tag distinguishes an initialised object from a closed one and from zeroed memory.
//!
//! An object belongs to one thread at a time. If an object is not a message, functions that can
//! fail return EFAULT, and the others treat it as an empty message.
//!
//! The caller passes 64 bytes (`zmq_msg_t`) that no other thread uses during the call, or null.
//! Names and groups are texts with a NUL at the end, or null. A buffer has at least `size` bytes.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use tautline_core::{Error, Message, message};

use crate::error::{fail, status};
use crate::guard::{guard, guard_new};

/// Size of `zmq_msg_t`.
const C_SIZE: usize = 64;

const _: () = assert!(size_of::<Message>() <= C_SIZE && align_of::<Message>() == align_of::<usize>());

/// `ZMQ_MORE`.
const MORE: c_int = 1;
/// `ZMQ_SRCFD`.
const SRCFD: c_int = 2;
/// `ZMQ_SHARED`.
const SHARED: c_int = 3;
/// `ZMQ_TAUTLINE_IS_LOAN`.
const IS_LOAN: c_int = 0x5441_0012;
/// `ZMQ_TAUTLINE_LOAN`.
const LOAN: c_int = 0x5441_0013;

/// Returns the message in a C object. Fault if the object is not initialised.
///
/// # Safety
/// `object` is null, or points to 64 bytes that are not used elsewhere during `'a`.
#[inline(always)]
pub(crate) unsafe fn at<'a>(object: *mut Message) -> Result<&'a mut Message, Error> {
    if object.is_null() || !object.is_aligned() {
        return Err(Error::Fault);
    }
    // SAFETY: readable, guaranteed by the caller. The tag byte of an initialised message is always
    // initialised.
    if message::is_valid_tag(unsafe { object.cast::<u8>().add(message::TAG_OFFSET).read() }) {
        // SAFETY: aligned, and the tag shows that this is a message.
        Ok(unsafe { &mut *object })
    } else {
        Err(Error::Fault)
    }
}

/// Writes a message into memory that holds no message.
///
/// # Safety
/// `object` is null, or points to 64 writable bytes without a message.
unsafe fn init(object: *mut Message, message: Option<Message>) -> Result<(), Error> {
    if object.is_null() || !object.is_aligned() {
        return Err(Error::Fault);
    }
    // SAFETY: writable and aligned. The caller passes memory without a message: none leaks.
    unsafe { object.write(message.ok_or(Error::NoMemory)?) };
    Ok(())
}

/// Makes an empty message. Returns 0, or -1 with EFAULT for a null object.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_init(object: *mut Message) -> c_int {
    if object.is_null() || !object.is_aligned() {
        return fail(Error::Fault);
    }
    // SAFETY: aligned, and the caller passes 64 bytes without a message.
    unsafe { Message::write_empty(object) };
    0
}

/// Makes a message of `size` bytes whose content the caller then writes. -1 with ENOMEM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_init_size(object: *mut Message, size: usize) -> c_int {
    if object.is_null() || !object.is_aligned() {
        return fail(Error::Fault);
    }
    guard(-1, || {
        // SAFETY: aligned, and the caller passes 64 bytes without a message, and later writes the
        // body. The compiler cannot see which bytes the caller has left out, and no code here
        // relies on the content of a body.
        if unsafe { Message::write_sized(object, size) } { 0 } else { fail(Error::NoMemory) }
    })
}

/// Makes a message from the caller's memory. When the memory is no longer used, any thread may
/// release it with `free(data, hint)`. Without `free` it is never released. -1 with ENOMEM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_init_data(
    object: *mut Message,
    data: *mut c_void,
    size: usize,
    free: Option<message::FreeFn>,
    hint: *mut c_void,
) -> c_int {
    guard_new(-1, || {
        if (data.is_null() && size > 0) || isize::try_from(size).is_err() || object.is_null() {
            return fail(Error::Fault);
        }
        // SAFETY: the caller passes null or 64 bytes, and hands over the memory and the right to
        // free it on any thread.
        status(unsafe { init(object, Some(Message::from_foreign(data.cast(), size, free, hint))) })
    })
}

/// Releases a message. The object may be initialised again. -1 with EFAULT if it is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_close(object: *mut Message) -> c_int {
    // SAFETY: the caller passes null or 64 bytes.
    guard(-1, || status(unsafe { close(object) }))
}

/// # Safety
/// `object` is null, or points to 64 bytes that are not used elsewhere during the call.
unsafe fn close(object: *mut Message) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller. If `at` finds a message, there is one to release.
    unsafe {
        at(object)?;
        Message::drop_in_place(object);
    }
    Ok(())
}

/// Moves the content of `source` to `dest` and releases the previous content of `dest`. `source`
/// becomes empty. -1 with EFAULT if one of them is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_move(dest: *mut Message, source: *mut Message) -> c_int {
    // SAFETY: the caller passes null or 64 bytes each.
    guard(-1, || status(unsafe { replace(dest, source, std::mem::take) }))
}

/// Makes `dest` a copy of `source` and releases the previous content of `dest`. A large body is
/// shared, not copied. -1 with EFAULT if one of them is not a message, or with ENOMEM
/// while memory is short.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_copy(dest: *mut Message, source: *mut Message) -> c_int {
    // SAFETY: the caller passes null or 64 bytes each.
    guard_new(-1, || status(unsafe { replace(dest, source, Message::share) }))
}

/// Replaces `dest` with the result of `take` on `source`. Has no effect if they are the same
/// object.
///
/// # Safety
/// Each is null or points to 64 bytes that are not used elsewhere.
unsafe fn replace(
    dest: *mut Message,
    source: *mut Message,
    take: fn(&mut Message) -> Message,
) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller. The two references do not overlap: equal pointers are
    // detected before the second reference is made.
    unsafe {
        let content = at(source)?;
        if dest != source {
            let place = at(dest)?;
            *place = take(content);
        }
    }
    Ok(())
}

/// Returns the address of the body; null if the object is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_data(object: *mut Message) -> *mut c_void {
    // SAFETY: the caller passes null or 64 bytes.
    match unsafe { at(object) } {
        // The program may write to the body.
        Ok(message) => match message.expose() {
            Ok(()) => message.data_ptr().cast(),
            Err(_) => {
                fail(Error::NoMemory);
                null_mut()
            }
        },
        Err(error) => {
            fail(error);
            null_mut()
        }
    }
}

/// Returns the body's length; 0 if the object is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_size(object: *const Message) -> usize {
    // SAFETY: the caller passes null or 64 bytes.
    unsafe { at(object.cast_mut()) }.map_or(0, |message| message.len())
}

/// Returns 1 if more parts of the same message follow this one, else 0.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_more(object: *const Message) -> c_int {
    // SAFETY: the caller passes null or 64 bytes.
    unsafe { at(object.cast_mut()) }.map_or(0, |message| c_int::from(message.more()))
}

/// Returns a property of the message: ZMQ_MORE, ZMQ_SRCFD or ZMQ_SHARED. -1 with EINVAL if the
/// property is unknown or the message does not have it, with EFAULT if the object is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_get(object: *const Message, property: c_int) -> c_int {
    // SAFETY: the caller passes null or 64 bytes.
    let message = match unsafe { at(object.cast_mut()) } {
        Ok(message) => message,
        Err(error) => return fail(error),
    };
    let value = match property {
        MORE => Some(c_int::from(message.more())),
        SHARED => Some(c_int::from(message.is_shared())),
        IS_LOAN => Some(c_int::from(message.is_loan())),
        SRCFD => message.metadata().and_then(|metadata| metadata.source_fd()),
        _ => None,
    };
    value.unwrap_or_else(|| fail(Error::Invalid))
}

/// Sets a property of the message: ZMQ_TAUTLINE_LOAN. -1 with EINVAL for another property or value,
/// with EFAULT if the object is not a message, with ENOTSUP if loans are off or the body is too
/// short, with ENOMEM if the memory for loans is exhausted.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_set(object: *mut Message, property: c_int, value: c_int) -> c_int {
    if (property, value) != (LOAN, 1) {
        return fail(Error::Invalid);
    }
    guard(-1, || {
        // SAFETY: the caller passes null or 64 bytes.
        let moved = unsafe { at(object) }.and_then(|message| match message.move_to_loan() {
            true => Ok(()),
            false if message::may_be_loan(message.len()) => Err(Error::NoMemory),
            false => Err(Error::NotSupported),
        });
        status(moved)
    })
}

/// Returns a property of the peer that sent the message. The text lives as long as the message.
/// Null with EINVAL if the property does not exist, with EFAULT if the object is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_gets(object: *const Message, name: *const c_char) -> *const c_char {
    let found = guard(Err(Error::Fault), || {
        // SAFETY: the caller passes null or 64 bytes, and null or a terminated string.
        unsafe {
            let message = at(object.cast_mut())?;
            if name.is_null() {
                return Err(Error::Invalid);
            }
            let name = CStr::from_ptr(name).to_str().map_err(|_| Error::Invalid)?;
            property(message, name).map(CStr::as_ptr).ok_or(Error::Invalid)
        }
    });
    found.unwrap_or_else(|error| {
        fail(error);
        null()
    })
}

/// Finds a property. The routing id has two names: that of the wire and that of the newer API.
pub(crate) fn property<'a>(message: &'a Message, name: &str) -> Option<&'a CStr> {
    message.property(name).or_else(|| match name {
        "Routing-Id" => message.property("Identity"),
        "Identity" => message.property("Routing-Id"),
        _ => None,
    })
}

/// Makes a message from a copy of `size` bytes. -1 with ENOMEM, with EFAULT for null with a size.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_init_buffer(
    object: *mut Message,
    buffer: *const c_void,
    size: usize,
) -> c_int {
    guard(-1, || {
        if buffer.is_null() && size > 0 {
            return fail(Error::Fault);
        }
        let bytes = match size {
            0 => &[],
            // SAFETY: the caller passes `size` readable bytes.
            _ => unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), size) },
        };
        // SAFETY: the caller passes null or 64 bytes.
        status(unsafe { init(object, Message::try_from_slice(bytes)) })
    })
}

/// Sets the peer of a SERVER or PEER that shall receive the message. -1 with EINVAL for 0, which is
/// not a peer, with EFAULT if the object is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_set_routing_id(object: *mut Message, routing_id: u32) -> c_int {
    // SAFETY: the caller passes null or 64 bytes.
    status(unsafe { at(object) }.and_then(|message| {
        if routing_id == 0 {
            return Err(Error::Invalid);
        }
        message.set_routing_id(routing_id);
        Ok(())
    }))
}

/// Returns the peer of a SERVER or PEER that has sent or shall receive the message; 0 if there is
/// none.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_routing_id(object: *mut Message) -> u32 {
    // SAFETY: the caller passes null or 64 bytes.
    unsafe { at(object) }.map_or(0, |message| message.routing_id())
}

/// Sets the group of a RADIO that shall receive the message. -1 with EINVAL if the name is too long
/// or null, with EFAULT if the object is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_set_group(object: *mut Message, group: *const c_char) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or 64 bytes, and null or a terminated string.
        status(unsafe {
            at(object).and_then(|message| {
                let known = !group.is_null() && message.set_group(CStr::from_ptr(group).to_bytes());
                if known { Ok(()) } else { Err(Error::Invalid) }
            })
        })
    })
}

/// Returns the group of the message; empty if it has no group. The text lives as long as the
/// message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_group(object: *mut Message) -> *const c_char {
    // SAFETY: the caller passes null or 64 bytes.
    unsafe { at(object) }.map_or(c"".as_ptr(), |message| message.group().as_ptr())
}

#[cfg(test)]
mod tests;
