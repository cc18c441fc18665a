//! Unit tests of `Message`.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_slice_comes_back_at_every_length() {
    for len in (0..100).chain([255, 256, 4096, 100_000]) {
        let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
        assert_eq!(Message::from_slice(&bytes).as_slice(), &bytes[..]);
        assert_eq!(Message::from_vec(bytes.clone()).as_slice(), &bytes[..]);
        // SAFETY: the body is not read.
        let sized = unsafe { Message::uninit(len) }.map(|m| m.len());
        assert_eq!(sized, Some(len));
    }
}

#[test]
fn a_taken_message_is_empty_and_valid() {
    let mut message = Message::from_slice(&[7; 1000]);
    message.set_more(true);
    let taken = std::mem::take(&mut message);
    assert!(taken.more() && taken.len() == 1000);
    assert!(message.is_empty() && !message.more() && !message.is_shared());
}

#[test]
fn invalid_tags_are_rejected() {
    let mut message = Message::from_static(b"constant");
    for _ in 0..2 {
        // SAFETY: the tag is an initialised byte of the message.
        let tag = unsafe { (&raw const message).cast::<u8>().add(TAG_OFFSET).read() };
        assert!(is_valid_tag(tag));
        message = message.share();
    }
    for garbage in [CLOSED_TAG, 1, 0x20, 0x7F, 0xAA, 0xCC, 0xFF] {
        assert!(!is_valid_tag(garbage));
    }
}

#[test]
fn a_shared_body_is_not_copied_until_it_is_written() {
    let mut first = Message::from_slice(&[1; 100]);
    assert!(!first.is_shared());
    let mut second = first.share();
    assert!(first.is_shared() && second.is_shared());
    assert_eq!(first.data_ptr(), second.data_ptr());
    second.as_mut_slice()[0] = 2;
    assert_ne!(first.data_ptr(), second.data_ptr());
    assert_eq!((first.as_slice()[0], second.as_slice()[0]), (1, 2));
    let at = first.data_ptr();
    first.as_mut_slice()[1] = 3;
    assert_eq!(first.data_ptr(), at, "the last holder writes in place");
}

#[test]
fn a_small_body_is_copied_by_share() {
    let mut first = Message::from_slice(b"small");
    let mut second = first.share();
    second.as_mut_slice()[0] = b'S';
    assert!(!second.is_shared());
    assert_eq!((first.as_slice(), second.as_slice()), (&b"small"[..], &b"Small"[..]));
}

#[test]
fn constant_memory_is_copied_before_it_is_written() {
    static BYTES: [u8; 64] = [5; 64];
    let mut message = Message::from_static(&BYTES);
    assert!(message.is_shared());
    assert_eq!(message.data_ptr().cast_const(), BYTES.as_ptr());
    message.as_mut_slice()[0] = 6;
    assert_eq!((message.as_slice()[0], BYTES[0]), (6, 5));
}

/// Counts its calls in the counter that `hint` points to.
unsafe extern "C" fn count(_: *mut c_void, hint: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the message.
    unsafe { (*hint.cast::<AtomicUsize>()).fetch_add(1, Ordering::SeqCst) };
}

fn foreign<'a>(bytes: &'a mut [u8], freed: &'a AtomicUsize) -> Message {
    let hint = (&raw const *freed).cast_mut().cast();
    // SAFETY: every test drops the message before the bytes and the counter.
    unsafe { Message::from_foreign(bytes.as_mut_ptr(), bytes.len(), Some(count), hint) }
}

#[test]
fn foreign_memory_is_freed_once_by_the_last_holder() {
    let (mut bytes, freed) = ([9; 10], AtomicUsize::new(0));
    let mut first = foreign(&mut bytes, &freed);
    assert!(!first.is_shared());
    let mut second = first.share();
    let third = second.share();
    assert_eq!(third.as_slice(), [9; 10]);
    drop((first, third));
    assert_eq!(freed.load(Ordering::SeqCst), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| drop(second));
    });
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    drop(foreign(&mut bytes, &freed));
    assert_eq!(freed.load(Ordering::SeqCst), 2);
}

#[test]
fn writing_to_a_shared_foreign_body_copies_it() {
    let (mut bytes, freed) = ([9; 10], AtomicUsize::new(0));
    let mut first = foreign(&mut bytes, &freed);
    let second = first.share();
    first.as_mut_slice()[0] = 1;
    assert_eq!((first.as_slice()[0], second.as_slice()[0]), (1, 9));
    assert_eq!(freed.load(Ordering::SeqCst), 0);
    drop(second);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn empty_foreign_memory_may_be_null() {
    // SAFETY: no bytes, no free function.
    let message = unsafe { Message::from_foreign(std::ptr::null_mut(), 0, None, std::ptr::null_mut()) };
    assert_eq!(message.as_slice(), b"");
    let freed = AtomicUsize::new(0);
    let hint = (&raw const freed).cast_mut().cast();
    // SAFETY: no bytes; the counter outlives the message.
    let mut message = unsafe { Message::from_foreign(std::ptr::null_mut(), 0, Some(count), hint) };
    assert_eq!(message.as_slice(), b"");
    assert_eq!(message.as_mut_slice(), b"");
    drop(message);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn too_much_memory_is_refused() {
    for len in [usize::MAX, isize::MAX as usize] {
        // SAFETY: such a message cannot be allocated.
        assert!(unsafe { Message::uninit(len) }.is_none());
    }
}

#[test]
fn properties_travel_with_a_share_and_can_be_cleared() {
    let metadata = Metadata::new([("Identity", "me"), ("Odd", "a\0b"), ("Identity", "not me")], Some(5));
    let mut message = Message::from_slice(b"x");
    message.set_metadata(Some(Arc::new(metadata)));
    message.set_routing_id(77);
    assert!(message.set_group(b"weather"));
    let mut copy = message.share();
    assert_eq!(copy.property("Identity"), Some(c"me"));
    assert_eq!(copy.property("Odd"), Some(c"a"));
    assert_eq!(copy.property("Nothing"), None);
    assert_eq!(copy.metadata().and_then(|m| m.source_fd()), Some(5));
    assert_eq!((copy.routing_id(), copy.group()), (77, c"weather"));
    copy.clear_properties();
    assert_eq!((copy.routing_id(), copy.group(), copy.property("Identity")), (0, c"", None));
    assert_eq!(message.group(), c"weather");
}

#[test]
fn group_names_are_bounded() {
    let mut message = Message::new();
    assert!(message.set_group(&[b'a'; GROUP_MAX]));
    assert!(!message.set_group(&[b'a'; GROUP_MAX + 1]));
    assert!(!message.set_group(b"a\0b"));
    assert_eq!(message.group().to_bytes().len(), GROUP_MAX);
    assert!(message.set_group(b""));
    assert_eq!(message.group(), c"");
}

#[test]
fn reused_message_keeps_fitting_memory() {
    let mut message = Message::new();
    message.assign(&[1; 200]).unwrap();
    let at = message.data_ptr();
    for len in [200, 100, 199] {
        message.set_more(true);
        message.set_routing_id(5);
        assert!(message.set_group(b"group"));
        message.assign(&vec![len as u8; len]).unwrap();
        assert!(message.as_slice() == vec![len as u8; len] && message.data_ptr() == at);
        assert_eq!((message.more(), message.routing_id(), message.group()), (false, 0, c""));
    }
    // Too long for the block, or too short to keep the block.
    message.assign(&[2; 300]).unwrap();
    assert_eq!(message.as_slice(), [2; 300]);
    message.assign(&[3; 60]).unwrap();
    assert_eq!(message.as_slice(), [3; 60]);
    message.assign(b"short").unwrap();
    assert_eq!(message.as_slice(), b"short");
    // Another message still refers to it.
    message.assign(&[4; 100]).unwrap();
    let other = message.share();
    message.assign(&[5; 100]).unwrap();
    assert_eq!((other.as_slice(), message.as_slice()), (&[4; 100][..], &[5; 100][..]));
    assert!(!message.is_shared());
}

#[test]
fn metadata_are_replaced_only_by_others() {
    let [first, second] = [0, 1].map(|_| Arc::new(Metadata::default()));
    let mut message = Message::new();
    message.replace_metadata(Some(&first));
    message.assign(b"body").unwrap();
    message.replace_metadata(Some(&first));
    assert!(Arc::ptr_eq(message.metadata().unwrap(), &first));
    assert_eq!(Arc::strong_count(&first), 2);
    message.replace_metadata(Some(&second));
    assert!(Arc::ptr_eq(message.metadata().unwrap(), &second));
    assert_eq!(Arc::strong_count(&first), 1);
    message.replace_metadata(None);
    assert!(message.metadata().is_none());
}

#[test]
fn an_owner_is_shown_shared_and_dropped_once() {
    struct Owned {
        bytes: Vec<u8>,
        _alive: std::sync::Arc<()>,
    }
    impl AsRef<[u8]> for Owned {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    let alive = std::sync::Arc::new(());
    for len in [0, INLINE_MAX, INLINE_MAX + 1, 5000] {
        let owner = Owned { bytes: vec![7; len], _alive: alive.clone() };
        let at = owner.bytes.as_ptr();
        let mut message = Message::from_owner(owner);
        assert_eq!(message.as_slice(), vec![7; len]);
        let outside = len > INLINE_MAX;
        assert_eq!(message.as_slice().as_ptr() == at, outside);
        assert_eq!(std::sync::Arc::strong_count(&alive), 1 + usize::from(outside));
        let mut other = message.share();
        drop(message);
        // The message is the only one, but its bytes belong to the owner.
        other.as_mut_slice().fill(8);
        assert_eq!(other.as_slice(), vec![8; len]);
        assert_eq!(std::sync::Arc::strong_count(&alive), 1);
    }
}
