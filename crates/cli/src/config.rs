//! Saved contexts: `~/.config/taut/config.toml`.
//!
//! ```toml
//! [contexts.prices]
//! endpoint = "tcp://prices.example:5556"
//! subscribe = ["EUR", "USD"]
//! curve_server_key = "@prices"
//!
//! [keys]
//! prices = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
//!
//! [policies]
//! inside = "/etc/tautline/policy.toml"
//! ```

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::{Deserialize, Serialize};
use tautline_policy::file::read_text;

use crate::failure::{Failure, Result};

/// Contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Contexts by name.
    #[serde(default)]
    pub contexts: BTreeMap<String, Saved>,
    /// Public keys by name.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// Policies by name: a file, or a policy built into the library.
    #[serde(default)]
    pub policies: BTreeMap<String, String>,
    /// Path of the file, even if it does not exist. `None` if the user has no home folder.
    #[serde(skip)]
    path: Option<PathBuf>,
}

/// Saved context. It holds the paths of secret files, never the secrets.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    endpoints: Vec<String>,
    /// Binds if true, connects if false, for every socket type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<bool>,
    /// Default topics, if the command line gives none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribe: Vec<String>,
    /// A public key, a file, or `@NAME` of `[keys]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve_server_key: Option<String>,
    /// File with our own key pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve_key_file: Option<PathBuf>,
    /// User name for PLAIN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<String>,
    /// File with the password for PLAIN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_password_file: Option<PathBuf>,
}

impl Saved {
    /// Returns all endpoints of the context.
    pub fn endpoints(&self) -> impl Iterator<Item = &str> {
        self.endpoint.iter().chain(&self.endpoints).map(String::as_str)
    }
}

impl Config {
    /// Reads the file of this user. A missing file counts as empty.
    pub fn load() -> Result<Config> {
        let Some(path) = path() else { return Ok(Config::default()) };
        match read_text(&path) {
            Ok(text) => Config::parse(&text, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Config { path: Some(path), ..Config::default() })
            }
            Err(error) => Err(Failure::file(&path, &error)),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Config> {
        let config: Config = toml::from_str(text).map_err(|error| {
            // Do not print the line: it may contain a secret by mistake.
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            Failure::usage(format!("{}, line {line}: {}", path.display(), error.message()))
        })?;
        for (name, saved) in &config.contexts {
            if saved.endpoints().next().is_none() {
                let what = format!("{}: the context {name} has no endpoint", path.display());
                return Err(Failure::usage(what).hint("give it one: endpoint = \"tcp://127.0.0.1:5555\""));
            }
        }
        Ok(Config { path: Some(path.to_owned()), ..config })
    }

    /// Returns the context with this name.
    pub fn context(&self, name: &str) -> Result<&Saved> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let hint = match known.as_slice() {
                [] => format!("save one there: [contexts.{name}] and below endpoint = \"tcp://...\""),
                known => format!("it has {}", known.join(", ")),
            };
            self.missing("context", name, hint)
        })
    }

    /// Returns the public key with this name.
    pub fn key(&self, name: &str) -> Result<&str> {
        let hint = || format!("save it there: below [keys], {name} = \"its 40 characters\"");
        self.keys.get(name).map(String::as_str).ok_or_else(|| self.missing("key", name, hint()))
    }

    /// Returns the policy with this name.
    pub fn policy(&self, name: &str) -> Result<&str> {
        let hint = || format!("save it there: below [policies], {name} = \"FILE\"");
        self.policies.get(name).map(String::as_str).ok_or_else(|| self.missing("policy", name, hint()))
    }

    fn missing(&self, what: &str, name: &str, hint: String) -> Failure {
        match self.path() {
            Ok(path) => Failure::usage(format!("there is no {what} {name} in {}", path.display())).hint(hint),
            Err(mut failure) => {
                failure.what = format!("there is no {what} {name}: {}", failure.what);
                failure
            }
        }
    }

    /// Appends a context to the file and leaves the existing text unchanged.
    pub fn save(&self, name: &str, endpoints: &[String]) -> Result<()> {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if name.is_empty() || !name.chars().all(allowed) {
            return Err(Failure::usage(format!(
                "{name:?} is not a valid name: use letters, digits, `_` and `-`"
            )));
        }
        let path = self.path()?;
        if self.contexts.contains_key(name) {
            return Err(Failure::failed(format!("there is a context {name} in {} already", path.display()))
                .hint("change it there with an editor"));
        }
        let value: toml::Value = endpoints.to_vec().into();
        let text = format!("\n[contexts.{name}]\nendpoints = {value}\n");
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let file = folder.and_then(|()| OpenOptions::new().create(true).append(true).open(path));
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| Failure::file(path, &error))
    }

    /// Returns the path of the file.
    ///
    /// # Errors
    /// The environment names no home folder, so there is no file.
    pub fn path(&self) -> Result<&Path> {
        self.path.as_deref().ok_or_else(|| {
            Failure::failed("the folder for saved contexts, keys and policies is unknown")
                .hint("set HOME, or XDG_CONFIG_HOME, to the absolute path of a folder")
        })
    }
}

/// Returns `$XDG_CONFIG_HOME/taut/config.toml`, or `~/.config/taut/config.toml`.
fn path() -> Option<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("taut/config.toml"))
}

/// Replaces a leading `~` by the home folder.
pub fn expand(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_and_keys_have_names() {
        let text = "[contexts.prices]\nendpoint = \"tcp://a:1\"\nendpoints = [\"tcp://b:2\"]\nsubscribe = [\"EUR\"]\n\
                    [keys]\nprices = \"k\"\n[policies]\ninside = \"~/p.toml\"\n";
        let config = Config::parse(text, Path::new("c.toml")).unwrap();
        let saved = config.context("prices").unwrap();
        assert_eq!(saved.endpoints().collect::<Vec<_>>(), ["tcp://a:1", "tcp://b:2"]);
        assert_eq!(
            (saved.subscribe.as_slice(), config.key("prices").unwrap()),
            (&["EUR".to_owned()][..], "k")
        );
        assert_eq!(config.context("price").unwrap_err().hint.as_deref(), Some("it has prices"));
        assert!(config.key("other").is_err());
        assert_eq!(config.policy("inside").unwrap(), "~/p.toml");
        assert!(config.policy("other").unwrap_err().to_string().contains("[policies]"));
    }

    #[test]
    fn unknown_home_folder_is_told() {
        let config = Config::default();
        for failure in [
            config.context("prices").unwrap_err(),
            config.key("prices").unwrap_err(),
            config.policy("inside").unwrap_err(),
            config.save("prices", &[]).unwrap_err(),
            config.path().unwrap_err(),
        ] {
            assert!(failure.to_string().contains("unknown\n  set HOME"), "{failure}");
        }
    }

    #[test]
    fn a_wrong_file_says_where() {
        for (text, wrong) in [
            ("[contexts.x]\nendpont = \"tcp://a:1\"\n", "endpont"),
            ("[contexts.x]\n", "no endpoint"),
            ("[contexts", "c.toml"),
        ] {
            let failure = Config::parse(text, Path::new("c.toml")).unwrap_err();
            assert!(failure.what.contains(wrong), "{failure}");
        }
        let text = "[contexts.x]\nendpoint = \"tcp://a:1\"\nplain_password = \"sesame\"\n";
        let failure = Config::parse(text, Path::new("c.toml")).unwrap_err();
        assert!(failure.what.starts_with("c.toml, line 3: unknown field `plain_password`"), "{failure}");
        assert!(!failure.what.contains("sesame"));
    }
}
