//! Unit tests of the chains.
