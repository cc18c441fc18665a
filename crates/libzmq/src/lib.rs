//! Tautline as libzmq: the shared and the static library `zmq`, which export the C functions of
//! [`tautline_abi`].

/// Serves the first failing allocations from a reserve, so that calls return ENOMEM.
#[global_allocator]
static ALLOCATOR: tautline_abi::ReserveAllocator = tautline_abi::ReserveAllocator;
