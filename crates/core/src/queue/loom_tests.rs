//! Loom models of the chains.
