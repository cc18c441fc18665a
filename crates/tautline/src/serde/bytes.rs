//! Messages and routing ids as their bytes.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Message, PeerId, RoutingId};

/// Maximum allocation in advance, because a sequence may claim any length.
const TRUSTED: usize = 4096;

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.as_bytes())
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Body)
    }
}

impl Serialize for RoutingId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.as_bytes())
    }
}

impl<'de> Deserialize<'de> for RoutingId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RoutingId::try_from(Message::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for PeerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.get())
    }
}

struct Body;

impl<'de> Visitor<'de> for Body {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Message, E> {
        Ok(Message::from(bytes))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Message, E> {
        Ok(Message::from(bytes))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Message, E> {
        Ok(Message::from(text))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Message, E> {
        Ok(Message::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Message, A::Error> {
        let mut bytes = Vec::with_capacity(numbers.size_hint().unwrap_or(0).min(TRUSTED));
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(Message::from(bytes))
    }
}
