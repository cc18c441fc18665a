//! Serialises socket types by name, in the formats of the crate `serde`.

use super::SocketType;
use core::fmt;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

impl Serialize for SocketType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for SocketType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Name)
    }
}

struct Name;

impl Visitor<'_> for Name {
    type Value = SocketType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a socket type, such as PAIR")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<SocketType, E> {
        SocketType::from_name(name.as_bytes()).ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
    }
}
