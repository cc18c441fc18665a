//! Contexts: the shared context of all threads of a process, and separate contexts.

use std::sync::OnceLock;

use napi_derive::napi;
use tautline_core as core;

use crate::errors::{code, outcome};
use crate::runtime::Runtime;

/// The default context of sockets.
pub(crate) fn shared() -> &'static core::Context {
    static SHARED: OnceLock<core::Context> = OnceLock::new();
    SHARED.get_or_init(tautline_host::context)
}

#[napi]
pub struct NativeContext(pub(crate) core::Context);

#[napi]
impl NativeContext {
    /// Returns the shared context, or a new one that ends with `runtime`.
    #[napi(constructor, catch_unwind)]
    pub fn new(runtime: &Runtime, is_shared: bool) -> Self {
        if is_shared {
            return NativeContext(shared().clone());
        }
        let context = tautline_host::context();
        runtime.terminate_at_exit(context.clone());
        NativeContext(context)
    }

    /// Returns 0 or an error.
    #[napi(catch_unwind)]
    pub fn set(&self, option: i32, value: i32) -> i32 {
        outcome(self.0.set(option, value))
    }

    /// Returns the value or an error. The value of a readable option of a context is never negative.
    #[napi(catch_unwind)]
    pub fn get(&self, option: i32) -> i32 {
        self.0.get(option).unwrap_or_else(code)
    }
}
