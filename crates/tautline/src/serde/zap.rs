//! Credentials for the authentication handler, without their secrets.

use serde::{Serialize, Serializer};

use crate::curve::PublicKey;
use crate::zap::Credentials;

#[derive(Default, Serialize)]
struct CredentialsForm<'a> {
    mechanism: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<PublicKey>,
}

impl Serialize for Credentials {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut form = CredentialsForm::default();
        match self {
            Credentials::Null => form.mechanism = "null",
            Credentials::Plain { username, .. } => {
                (form.mechanism, form.username) = ("plain", Some(username.as_str()));
            }
            Credentials::Curve(key) => (form.mechanism, form.public_key) = ("curve", Some(*key)),
            // The frames may contain secrets.
            Credentials::Other { mechanism, .. } => form.mechanism = mechanism,
        }
        form.serialize(serializer)
    }
}
