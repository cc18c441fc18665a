//! Tables of the file, before they are checked.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

/// One value, or a list of values.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub fn into_vec(self) -> Vec<String> {
        match self {
            OneOrMore::One(one) => vec![one],
            OneOrMore::More(more) => more,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub nats: Spanned<Nats>,
    #[serde(default)]
    pub streams: Vec<Spanned<Stream>>,
    #[serde(default)]
    pub routes: Vec<Spanned<Route>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nats {
    pub servers: Spanned<OneOrMore>,
    pub credentials: Option<Spanned<PathBuf>>,
    pub nkey_file: Option<Spanned<PathBuf>>,
    pub token_file: Option<Spanned<PathBuf>>,
    pub user: Option<Spanned<String>>,
    pub password_file: Option<Spanned<PathBuf>>,
    pub tls: Option<Tls>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub ca: Option<Spanned<PathBuf>>,
    pub certificate: Option<Spanned<PathBuf>>,
    pub key: Option<Spanned<PathBuf>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    pub name: Spanned<String>,
    pub subjects: Vec<Spanned<String>>,
    pub replicas: Option<Spanned<usize>>,
    pub max_age: Option<Spanned<String>>,
    pub max_bytes: Option<u64>,
    pub duplicate_window: Option<Spanned<String>>,
    pub work_queue: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub name: Spanned<String>,
    pub promise: Spanned<String>,
    pub socket: Spanned<String>,
    pub bind: Option<Spanned<OneOrMore>>,
    pub connect: Option<Spanned<OneOrMore>>,
    pub subscribe: Option<Spanned<OneOrMore>>,
    pub hwm: Option<Spanned<u32>>,
    pub max_message_bytes: Option<u64>,
    pub subject: Spanned<String>,
    pub topic: Option<Spanned<String>>,
    pub separator: Option<Spanned<String>>,
    pub whole_tokens: Option<Spanned<bool>>,
    pub queue_group: Option<Spanned<String>>,
    pub queue: Option<Spanned<usize>>,
    pub max_subscriptions: Option<Spanned<usize>>,
    pub stream: Option<Spanned<String>>,
    pub window: Option<Spanned<usize>>,
    pub id_part: Option<Spanned<usize>>,
    pub consumer: Option<Spanned<String>>,
    pub answer_within: Option<Spanned<String>>,
    pub attempts: Option<Spanned<u32>>,
    pub start: Option<Spanned<toml::Value>>,
    pub sequence: Option<Spanned<bool>>,
}
