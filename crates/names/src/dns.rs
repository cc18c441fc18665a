//! Names in DNS.
use crate::{Answer, Names, Resolver};
use std::time::Duration;
pub(crate) struct ByDns;
impl Resolver for ByDns {
    fn title(&self) -> &'static str { "DNS" }
    fn resolve(&self, _names: &Names, _name: &str) -> Result<Answer, String> {
        Ok(Answer { entries: Vec::new(), fresh_for: Duration::from_secs(3600) })
    }
}
