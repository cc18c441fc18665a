//! Reading tables: each value is taken once, and what is left over is a fault.

use toml_span::value::{Table as Node, ValueInner};
use toml_span::{ErrorKind, Span};

use crate::Fault;

/// The text of a policy, for the lines of its values.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a>(pub(crate) &'a str);

impl Source<'_> {
    pub(crate) fn fault(self, at: usize, what: impl Into<String>) -> Fault {
        let before = self.0.get(..at).unwrap_or(self.0);
        Fault { line: before.matches('\n').count() + 1, what: what.into() }
    }
}

/// The name of a value.
pub(crate) struct Name {
    pub(crate) text: String,
    at: usize,
}

/// A value and where it is.
pub(crate) struct Value<'a> {
    source: Source<'a>,
    name: String,
    at: usize,
    value: ValueInner<'a>,
}

/// A table of which values are taken.
pub(crate) struct Table<'a> {
    source: Source<'a>,
    at: usize,
    entries: Vec<(Name, Value<'a>)>,
}

impl<'a> Table<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Fault> {
        let source = Source(text);
        let mut parsed =
            toml_span::parse(text).map_err(|error| source.fault(error.span.start, what_is_wrong(&error)))?;
        let Span { start, .. } = parsed.span;
        match parsed.take() {
            ValueInner::Table(table) => Ok(Self::new(source, start, table)),
            _ => Ok(Table { source, at: start, entries: Vec::new() }),
        }
    }

    /// In the order of the text.
    fn new(source: Source<'a>, at: usize, table: Node<'a>) -> Self {
        let entries = table.into_iter().map(|(key, mut value)| {
            let name = Name { text: key.name.into_owned(), at: key.span.start };
            let (at, inner) = (value.span.start, value.take());
            let value = Value { source, name: name.text.clone(), at, value: inner };
            (name, value)
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(name, _)| name.at);
        Table { source, at, entries }
    }

    /// Takes a value out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.entries.iter().position(|(key, _)| key.text == name)?;
        Some(self.entries.remove(at).1)
    }

    /// Takes all values.
    pub(crate) fn all(self) -> impl Iterator<Item = (Name, Value<'a>)> {
        self.entries.into_iter()
    }

    /// A fault of the whole table.
    pub(crate) fn fault(&self, what: impl Into<String>) -> Fault {
        self.source.fault(self.at, what)
    }

    /// There is nothing left that has no meaning.
    pub(crate) fn end(self, known: &str) -> Result<(), Fault> {
        let Some((key, _)) = self.entries.into_iter().next() else { return Ok(()) };
        Err(self.source.fault(key.at, format!("`{}` is not known here: {known}", key.text)))
    }
}

impl<'a> Value<'a> {
    pub(crate) fn fault(&self, what: impl std::fmt::Display) -> Fault {
        self.source.fault(self.at, format!("`{}` {what}", self.name))
    }

    pub(crate) fn text(self) -> Result<String, Fault> {
        match &self.value {
            ValueInner::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.fault("must be a text in quotes")),
        }
    }

    pub(crate) fn flag(self) -> Result<bool, Fault> {
        match self.value {
            ValueInner::Boolean(value) => Ok(value),
            _ => Err(self.fault("must be true or false")),
        }
    }

    pub(crate) fn number(self) -> Result<u64, Fault> {
        let number = match self.value {
            ValueInner::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.fault("must be a number from 0"))
    }

    pub(crate) fn table(self) -> Result<Table<'a>, Fault> {
        let wrong = self.fault("must be a table");
        match self.value {
            ValueInner::Table(table) => Ok(Table::new(self.source, self.at, table)),
            _ => Err(wrong),
        }
    }

    /// The values of an array, or the one that is here in place of it.
    pub(crate) fn list(self) -> Vec<Value<'a>> {
        let Value { source, name, at, value } = self;
        match value {
            ValueInner::Array(array) => array
                .into_iter()
                .map(|mut value| {
                    let (at, inner) = (value.span.start, value.take());
                    Value { source, name: name.clone(), at, value: inner }
                })
                .collect(),
            value => vec![Value { source, name, at, value }],
        }
    }

    /// Reads each value of a list; an empty one is a fault, as it would fit nothing.
    pub(crate) fn each<T>(
        self,
        mut read: impl FnMut(Value<'a>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let empty = self.fault("must not be empty");
        let list: Vec<T> = self.list().into_iter().map(&mut read).collect::<Result<_, _>>()?;
        if list.is_empty() { Err(empty) } else { Ok(list) }
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T, Fault> {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let wrong = self.fault(format_args!("must be one of: {}", known.join(", ")));
        let text = self.text()?;
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or(wrong)
    }
}

/// What the parser says, in our words where a writer would not know what to do.
fn what_is_wrong(error: &toml_span::Error) -> String {
    match &error.kind {
        ErrorKind::UnexpectedEof => "the file ends too early".to_owned(),
        ErrorKind::UnterminatedString => "a text has no closing quote".to_owned(),
        ErrorKind::UnquotedString => "a text must be in quotes".to_owned(),
        ErrorKind::InvalidNumber => "this is no number".to_owned(),
        ErrorKind::DuplicateKey { key, .. } => format!("`{key}` is there twice"),
        ErrorKind::DuplicateTable { name, .. } => format!("table `{name}` is there twice"),
        ErrorKind::ExceededDepthLimit => "values lie too deep in one another".to_owned(),
        _ => error.to_string().replace('\n', " "),
    }
}
