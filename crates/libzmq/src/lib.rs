//! Tautline as libzmq: the shared and the static library `zmq`, which export the C functions of
//! [`tautline_abi`].

use tautline_abi as _;
