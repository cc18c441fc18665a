//! Chains two stages: the stage for the peer's version, then the stage of its mechanism.

use super::Stage;
use crate::error::ProtocolError;

/// Joins two stages, either of which may be missing. `outer` is the stage next to the wire.
pub(crate) fn chain(inner: Option<Box<dyn Stage>>, outer: Option<Box<dyn Stage>>) -> Option<Box<dyn Stage>> {
    match (inner, outer) {
        (Some(inner), Some(outer)) => Some(Box::new(Chain { inner, outer, between: Vec::new() })),
        (inner, outer) => inner.or(outer),
    }
}

struct Chain {
    inner: Box<dyn Stage>,
    outer: Box<dyn Stage>,
    /// Bytes between the two stages. Empty between calls.
    between: Vec<u8>,
}

impl Stage for Chain {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        self.inner.seal(plain, &mut self.between);
        self.outer.seal(&self.between, out);
        self.between.clear();
    }

    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let opened = self.outer.open(wire, &mut self.between);
        // Frames that were complete before the error are valid.
        let passed = self.inner.open(&self.between, out);
        self.between.clear();
        passed.and(opened)
    }

    fn is_out_of_memory(&self) -> bool {
        self.inner.is_out_of_memory() || self.outer.is_out_of_memory()
    }

    fn buffered(&self) -> usize {
        self.inner.buffered() + self.outer.buffered()
    }
}
