//! Converts the text of a policy to its rules.

use std::path::PathBuf;

use crate::address::{Network, Scope};
use crate::pattern::Pattern;
use crate::rule::{Action, Call, Rule};
use crate::table::{Table, Value};
use crate::tls;
use crate::topics::{Grant, TopicUse};
use crate::{BUILT_IN, FileError, Key, Limits, Policy, Wrap};

const CALLS: [(&str, Call); 3] = [("bind", Call::Bind), ("connect", Call::Connect), ("accept", Call::Accept)];
const ACTIONS: [(&str, Action); 4] =
    [("allow", Action::Allow), ("warn", Action::Warn), ("refuse", Action::Refuse), ("wrap", Action::Wrap)];
const SCOPES: [(&str, Scope); 5] = [
    ("loopback", Scope::Loopback),
    ("private", Scope::Private),
    ("public", Scope::Public),
    ("every", Scope::Every),
    ("unknown", Scope::Unknown),
];
const MECHANISMS: [(&str, &str); 4] =
    [("NULL", "NULL"), ("PLAIN", "PLAIN"), ("CURVE", "CURVE"), ("GSSAPI", "GSSAPI")];
/// Protocols of a wrap, each with true for TLS.
const PROTOCOLS: [(&str, bool); 2] = [("curve", false), ("tls", true)];
const TYPES: [&str; 21] = [
    "PAIR", "PUB", "SUB", "REQ", "REP", "DEALER", "ROUTER", "PULL", "PUSH", "XPUB", "XSUB", "STREAM",
    "SERVER", "CLIENT", "RADIO", "DISH", "GATHER", "SCATTER", "DGRAM", "PEER", "CHANNEL",
];

const RULE_KEYS: [&str; 15] = [
    "name",
    "call",
    "type",
    "endpoint",
    "address",
    "scope",
    "program",
    "mechanism",
    "user",
    "user_id",
    "secure",
    "private",
    "action",
    "wrap",
    "mode",
];
const GRANT_KEYS: [&str; 8] =
    ["name", "type", "endpoint", "program", "user", "user_id", "subscribe", "publish"];

/// Reads the policy of a file.
pub(crate) fn policy(text: &str) -> Result<Policy, FileError> {
    let mut table = Table::parse(text)?;
    table.expect_only("a policy", &["extends", "rules", "topics", "limits", "wraps"])?;
    let mut policy = Policy::default();
    if let Some(value) = table.take("wraps") {
        for (name, value) in value.table()?.all() {
            policy.wraps.push(wrap(name.into_inner(), value.table()?)?);
        }
    }
    if let Some(value) = table.take("limits") {
        policy.limits = limits(value.table()?)?;
    }
    if let Some(value) = table.take("rules") {
        for value in value.list() {
            let rule = rule(value.table()?, policy.rules.len() + 1, &policy.wraps)?;
            policy.rules.push(rule);
        }
    }
    if let Some(value) = table.take("topics") {
        for value in value.list() {
            let grant = grant(value.table()?, policy.grants.len() + 1)?;
            policy.grants.push(grant);
        }
    }
    if let Some(value) = table.take("extends") {
        let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| (*name, *name)).collect();
        let name = value.word(&names)?;
        // The file's own rules come first.
        policy.rules.extend(Policy::built_in(name).unwrap_or_default().rules);
    }
    Ok(policy)
}

/// Reads a built-in policy. Its rules carry its name.
pub(crate) fn ready(name: &str, text: &str) -> Result<Policy, FileError> {
    let mut policy = policy(text)?;
    for rule in &mut policy.rules {
        rule.name = format!("{name}:{}", rule.name);
    }
    Ok(policy)
}

fn rule(mut table: Table<'_>, number: usize, wraps: &[Wrap]) -> Result<Rule, FileError> {
    table.expect_only("a rule", &RULE_KEYS)?;
    let mut rule = Rule { name: format!("rule {number}"), ..Rule::default() };
    if let Some(value) = table.take("name") {
        rule.name = value.text()?;
    }
    let action = table.take("action").ok_or_else(|| {
        table.fault(format!("`{}` has no `action`: allow, warn, refuse or wrap", rule.name))
    })?;
    rule.action = action.word(&ACTIONS)?;
    if let Some(value) = table.take("call") {
        rule.calls = value.parse_list(|value| value.word(&CALLS))?;
    }
    if let Some(value) = table.take("type") {
        let types = TYPES.map(|name| (name, name));
        rule.types = value.parse_list(|value| value.word(&types).map(str::to_owned))?;
    }
    if let Some(value) = table.take("endpoint") {
        rule.endpoints = value.parse_list(endpoints)?;
    }
    if let Some(value) = table.take("address") {
        rule.addresses = value.parse_list(network)?;
    }
    if let Some(value) = table.take("scope") {
        rule.scopes = value.parse_list(|value| value.word(&SCOPES))?;
    }
    if let Some(value) = table.take("program") {
        rule.programs = value.parse_list(pattern)?;
    }
    if let Some(value) = table.take("mechanism") {
        rule.mechanisms = value.parse_list(|value| value.word(&MECHANISMS).map(str::to_owned))?;
    }
    if let Some(value) = table.take("user") {
        rule.users = value.parse_list(user)?;
    }
    if let Some(value) = table.take("user_id") {
        rule.user_ids = value.parse_list(pattern)?;
    }
    rule.secure = table.take("secure").map(Value::flag).transpose()?;
    rule.private = table.take("private").map(Value::flag).transpose()?;
    if let Some(value) = table.take("wrap") {
        let unknown = value.fault("does not name a table of `wraps`");
        let name = value.text()?;
        if !wraps.iter().any(|wrap| wrap.name == name) {
            return Err(unknown);
        }
        rule.wrap = Some(name);
    }
    if let Some(value) = table.take("mode") {
        rule.mode = Some(mode(value)?);
    }
    check_effect(&rule).map_err(|what| table.fault(format!("`{}`: {what}", rule.name)))?;
    Ok(rule)
}

/// Rejects a rule with a key that can never take effect, which is probably a mistake in the file.
fn check_effect(rule: &Rule) -> Result<(), &'static str> {
    let only_accept = rule.calls == [Call::Accept];
    if (rule.action == Action::Wrap) != rule.wrap.is_some() {
        return Err("`wrap` and the action wrap need each other");
    }
    if rule.wrap.is_some() && rule.is_about(Call::Accept) {
        return Err("an accepted peer cannot be wrapped: the rule needs `call`");
    }
    if (!rule.users.is_empty() || !rule.user_ids.is_empty()) && !only_accept {
        return Err("`user` and `user_id` apply only to peers: the rule needs call = \"accept\"");
    }
    if rule.mode.is_some() && rule.calls != [Call::Bind] {
        return Err("`mode` applies only to the file of a bind: the rule needs call = \"bind\"");
    }
    Ok(())
}

fn grant(mut table: Table<'_>, number: usize) -> Result<Grant, FileError> {
    table.expect_only("an entry of `topics`", &GRANT_KEYS)?;
    let mut grant = Grant { name: format!("topics {number}"), ..Grant::default() };
    if let Some(value) = table.take("name") {
        grant.name = value.text()?;
    }
    if let Some(value) = table.take("type") {
        let types = ["PUB", "XPUB", "SUB", "XSUB"].map(|name| (name, name));
        grant.types = value.parse_list(|value| value.word(&types).map(str::to_owned))?;
    }
    if let Some(value) = table.take("endpoint") {
        grant.endpoints = value.parse_list(endpoints)?;
    }
    if let Some(value) = table.take("program") {
        grant.programs = value.parse_list(pattern)?;
    }
    if let Some(value) = table.take("user") {
        grant.users = value.parse_list(user)?;
    }
    if let Some(value) = table.take("user_id") {
        grant.user_ids = value.parse_list(pattern)?;
    }
    grant.subscribe = table.take("subscribe").map(prefixes).transpose()?;
    grant.publish = table.take("publish").map(prefixes).transpose()?;
    let name = &grant.name;
    if grant.subscribe.is_none() && grant.publish.is_none() {
        let what = format!(
            "`{name}` needs `subscribe` (for peers of PUB and XPUB) or `publish` (for peers of SUB and XSUB)"
        );
        return Err(table.fault(what));
    }
    for (act, has, word) in [
        (TopicUse::Subscribe, grant.subscribe.is_some(), "subscribe"),
        (TopicUse::Publish, grant.publish.is_some(), "publish"),
    ] {
        let are_others = |types: &[String]| types.iter().all(|name| TopicUse::of_peers_of(name) != Some(act));
        if has && !grant.types.is_empty() && are_others(&grant.types) {
            let what = format!("`{name}`: peers of these socket types do not {word}");
            return Err(table.fault(what));
        }
    }
    Ok(grant)
}

/// Reads prefixes of topics. An empty list is valid: it grants no topic.
fn prefixes(value: Value<'_>) -> Result<Vec<Vec<u8>>, FileError> {
    value.list().into_iter().map(|value| value.text().map(String::into_bytes)).collect()
}

fn pattern(value: Value<'_>) -> Result<Pattern, FileError> {
    value.text().map(|text| Pattern::new(&text))
}

fn endpoints(value: Value<'_>) -> Result<Pattern, FileError> {
    value.parse_text(Pattern::of_endpoints)
}

fn network(value: Value<'_>) -> Result<Network, FileError> {
    let wrong = value.fault("must be an address or a network, such as 10.0.0.0/8");
    Network::parse(&value.text()?).ok_or(wrong)
}

fn user(value: Value<'_>) -> Result<u32, FileError> {
    let wrong = value.fault("must be a numeric user id");
    u32::try_from(value.number()?).map_err(|_| wrong)
}

fn mode(value: Value<'_>) -> Result<u32, FileError> {
    let wrong = value.fault("must be permissions as chmod(1) takes them, in quotes: \"0600\"");
    let mode = u32::from_str_radix(&value.text()?, 8).ok();
    mode.filter(|mode| mode & !0o777 == 0).ok_or(wrong)
}

fn limits(mut table: Table<'_>) -> Result<Limits, FileError> {
    let mut limits = Limits::default();
    let places = [
        ("connections", &mut limits.connections),
        ("connections_per_address", &mut limits.connections_per_address),
        ("handshakes", &mut limits.handshakes),
        ("handshakes_per_second", &mut limits.handshakes_per_second),
        ("handshake_bytes", &mut limits.handshake_bytes),
        ("message_bytes", &mut limits.message_bytes),
        ("subscription_bytes_per_peer", &mut limits.subscription_bytes_per_peer),
        ("unread_bytes_per_peer", &mut limits.unread_bytes_per_peer),
    ];
    table.expect_only("`limits`", &places.each_ref().map(|(name, _)| *name))?;
    for (name, place) in places {
        *place = table.take(name).map(limit).transpose()?;
    }
    Ok(limits)
}

/// Reads a limit. Other options of ZeroMQ read 0 as "no limit", so 0 would be misunderstood.
fn limit(value: Value<'_>) -> Result<u64, FileError> {
    let zero = value.fault(
        "must be at least 1: omit it for no limit; to refuse all peers, use a rule with `call = \"accept\"`",
    );
    match value.number()? {
        0 => Err(zero),
        number => Ok(number),
    }
}

fn wrap(name: String, mut table: Table<'_>) -> Result<Wrap, FileError> {
    let mut wrap = Wrap { name, key: None, servers: Vec::new(), clients: None, tls: None };
    if let Some(value) = table.take("protocol")
        && value.word(&PROTOCOLS)?
    {
        wrap.tls = Some(tls::wrap(&wrap.name, table)?);
        return Ok(wrap);
    }
    table.expect_only("a wrap", &["protocol", "key", "clients", "servers"])?;
    wrap.key = table.take("key").map(file).transpose()?;
    wrap.clients = table.take("clients").map(file).transpose()?;
    if let Some(value) = table.take("servers") {
        for (endpoint, value) in value.table()?.all() {
            wrap.servers.push((Pattern::new(endpoint.get_ref()), key(value)?));
        }
    }
    if wrap.key.is_none() && wrap.servers.is_empty() {
        let what = format!("`{}` needs `key` (for servers) or `servers` (for clients)", wrap.name);
        return Err(table.fault(what));
    }
    Ok(wrap)
}

/// Reads an absolute path. Programs have different working directories, so a relative path is a
/// fault.
pub(crate) fn file(value: Value<'_>) -> Result<PathBuf, FileError> {
    let wrong = value.fault("must be an absolute path, because programs have different working directories");
    let path = PathBuf::from(value.text()?);
    if path.has_root() { Ok(path) } else { Err(wrong) }
}

fn key(value: Value<'_>) -> Result<Key, FileError> {
    let wrong = value.fault("must be a public key of 40 characters, or the absolute path of a file");
    let text = value.text()?;
    match PathBuf::from(&text) {
        path if path.has_root() => Ok(Key::File(path)),
        _ if text.len() == 40 && text.is_ascii() => Ok(Key::Text(text)),
        _ => Err(wrong),
    }
}
