//! Reads tables of TOML. Each value is taken once, and a value left over is a fault with its line.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::FileError;

/// The text of a file, which gives the lines of its values.
#[derive(Clone, Copy, Debug)]
struct Source<'a>(&'a str);

impl Source<'_> {
    fn fault(self, at: Range<usize>, what: impl Into<String>) -> FileError {
        let before = self.0.get(..at.start).unwrap_or(self.0);
        FileError { line: before.matches('\n').count() + 1, what: what.into() }
    }
}

/// A value and its position.
#[derive(Debug)]
pub struct Value<'a> {
    source: Source<'a>,
    name: String,
    value: Spanned<DeValue<'a>>,
}

/// A table from which values are taken.
#[derive(Debug)]
pub struct Table<'a> {
    source: Source<'a>,
    span: Range<usize>,
    entries: Vec<(Spanned<String>, Value<'a>)>,
}

impl<'a> Table<'a> {
    /// Parses a whole file as a table.
    ///
    /// # Errors
    /// A fault with its line, if the text is not TOML.
    pub fn parse(text: &'a str) -> Result<Self, FileError> {
        let source = Source(text);
        let parsed = DeTable::parse(text).map_err(|error| {
            source.fault(error.span().unwrap_or_default(), error.message().replace('\n', " "))
        })?;
        Ok(Self::new(source, parsed))
    }

    fn new(source: Source<'a>, table: Spanned<DeTable<'a>>) -> Self {
        let span = table.span();
        let entries = table.into_inner().into_iter().map(|(key, value)| {
            let name = key.get_ref().clone().into_owned();
            (Spanned::new(key.span(), name.clone()), Value { source, name, value })
        });
        Table { source, span, entries: entries.collect() }
    }

    /// Removes a value and returns it.
    pub fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.entries.iter().position(|(key, _)| key.get_ref() == name)?;
        Some(self.entries.remove(at).1)
    }

    /// Removes all values and returns them.
    pub fn all(self) -> impl Iterator<Item = (Spanned<String>, Value<'a>)> {
        self.entries.into_iter()
    }

    /// Returns a fault of the whole table.
    pub fn fault(&self, what: impl Into<String>) -> FileError {
        self.source.fault(self.span.clone(), what)
    }

    /// Checks that the table has only these keys. Call it first: a misspelled key is also missing,
    /// and its own name is the more useful answer.
    ///
    /// # Errors
    /// The first unknown key. `owner` is the subject of the sentence that lists the known keys.
    pub fn expect_only(&self, owner: &str, known: &[&str]) -> Result<(), FileError> {
        let is_unknown = |(key, _): &&(Spanned<String>, _)| !known.contains(&key.get_ref().as_str());
        let Some((key, _)) = self.entries.iter().find(is_unknown) else { return Ok(()) };
        let quoted: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
        let listed = match quoted.split_last() {
            Some((last, others @ [_, ..])) => format!("{} and {last}", others.join(", ")),
            _ => quoted.concat(),
        };
        Err(self.source.fault(key.span(), format!("unknown key `{}`: {owner} has {listed}", key.get_ref())))
    }
}

impl<'a> Value<'a> {
    /// Returns a fault of this value.
    pub fn fault(&self, what: impl std::fmt::Display) -> FileError {
        self.source.fault(self.value.span(), format!("`{}` {what}", self.name))
    }

    /// Returns the result of `parse` for a text.
    ///
    /// # Errors
    /// The value is not a text, or the reason that `parse` returns.
    pub fn parse_text<T>(self, parse: impl FnOnce(&str) -> Result<T, &'static str>) -> Result<T, FileError> {
        match self.value.get_ref() {
            DeValue::String(text) => parse(text).map_err(|why| self.fault(why)),
            _ => Err(self.fault("must be a text in quotes")),
        }
    }

    /// Returns a text.
    ///
    /// # Errors
    /// The value is not a text.
    pub fn text(self) -> Result<String, FileError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.fault("must be a text in quotes")),
        }
    }

    /// Returns a boolean.
    ///
    /// # Errors
    /// The value is not a boolean.
    pub fn flag(self) -> Result<bool, FileError> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.fault("must be true or false")),
        }
    }

    /// Returns a number from 0.
    ///
    /// # Errors
    /// The value is not such a number.
    pub fn number(self) -> Result<u64, FileError> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.fault("must be an integer from 0"))
    }

    /// Returns a table.
    ///
    /// # Errors
    /// The value is not a table.
    pub fn table(self) -> Result<Table<'a>, FileError> {
        if !matches!(self.value.get_ref(), DeValue::Table(_)) {
            return Err(self.fault("must be a table"));
        }
        let span = self.value.span();
        match self.value.into_inner() {
            DeValue::Table(table) => Ok(Table::new(self.source, Spanned::new(span, table))),
            _ => Ok(Table { source: self.source, span, entries: Vec::new() }),
        }
    }

    /// Returns the values of an array, or the single value that replaces it.
    pub fn list(self) -> Vec<Value<'a>> {
        let Value { source, name, value } = self;
        let span = value.span();
        match value.into_inner() {
            DeValue::Array(array) => {
                array.into_iter().map(|value| Value { source, name: name.clone(), value }).collect()
            }
            value => vec![Value { source, name, value: Spanned::new(span, value) }],
        }
    }

    /// Reads each value of a list. An empty list is a fault, because it would match no value.
    ///
    /// # Errors
    /// The first fault of `read` or of the list.
    pub fn parse_list<T>(
        self,
        mut read: impl FnMut(Value<'a>) -> Result<T, FileError>,
    ) -> Result<Vec<T>, FileError> {
        let empty = self.fault("must not be empty");
        let list: Vec<T> = self.list().into_iter().map(&mut read).collect::<Result<_, _>>()?;
        if list.is_empty() { Err(empty) } else { Ok(list) }
    }

    /// Returns the meaning of one of several words.
    ///
    /// # Errors
    /// The value is not one of the words.
    pub fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T, FileError> {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let wrong = self.fault(format_args!("must be one of: {}", known.join(", ")));
        let text = self.text()?;
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or(wrong)
    }
}
