//! Contexts: the one that all threads of a process share, and others.

use std::sync::OnceLock;

use napi_derive::napi;
use tautline_core as core;

use crate::errors::{code, outcome};
use crate::runtime::Runtime;

/// The context of sockets that name none.
pub(crate) fn shared() -> &'static core::Context {
    static SHARED: OnceLock<core::Context> = OnceLock::new();
    SHARED.get_or_init(core::Context::new)
}

#[napi]
pub struct NativeContext(pub(crate) core::Context);

#[napi]
impl NativeContext {
    /// The shared one, or a new one that ends with `runtime`.
    #[napi(constructor, catch_unwind)]
    pub fn new(runtime: &Runtime, is_shared: bool) -> Self {
        if is_shared {
            return NativeContext(shared().clone());
        }
        let context = core::Context::new();
        runtime.adopt(context.clone());
        NativeContext(context)
    }

    /// 0 or an error.
    #[napi(catch_unwind)]
    pub fn set(&self, option: i32, value: i32) -> i32 {
        outcome(self.0.set(option, value))
    }

    /// The value, or an error. No option of a context is negative, but for those that cannot be read.
    #[napi(catch_unwind)]
    pub fn get(&self, option: i32) -> i32 {
        self.0.get(option).unwrap_or_else(code)
    }
}
