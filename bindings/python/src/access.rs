//! `AllowList`: the native part of the class of `tautline_zmq.access`.

use pyo3::prelude::*;
use tautline::curve::PublicKey;
use tautline::zap;

use crate::context::Context;
use crate::owned;

/// A list of accepted peers. Sockets and threads share it.
#[pyclass(frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct AllowList(zap::AllowList);

#[pymethods]
impl AllowList {
    #[new]
    fn new(anonymous: bool) -> Self {
        let list = zap::AllowList::new();
        AllowList(if anonymous { list.anonymous() } else { list })
    }

    fn add_key(&self, py: Python<'_>, key: &str, user_id: &str) -> PyResult<()> {
        self.0.add_key(public_key(py, key)?, user_id);
        Ok(())
    }

    fn remove_key(&self, py: Python<'_>, key: &str) -> PyResult<bool> {
        Ok(self.0.remove_key(&public_key(py, key)?))
    }

    fn add_password(&self, username: &str, password: &str) {
        self.0.add_password(username, password);
    }

    fn remove_password(&self, username: &str) -> bool {
        self.0.remove_password(username)
    }

    /// Installs the list in a context. Its thread never calls Python.
    fn authorize(&self, py: Python<'_>, context: &Bound<'_, Context>) -> PyResult<()> {
        let context = owned::context(py, context)?;
        context.authenticate(self.0.clone()).map_err(|error| owned::exception(py, &error))
    }
}

fn public_key(py: Python<'_>, text: &str) -> PyResult<PublicKey> {
    text.parse().map_err(|error: <PublicKey as std::str::FromStr>::Err| owned::exception(py, &error.into()))
}
