//! Settings in an OPTIONS file that the engine does not act on: they are kept and written again.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::table::Section;
use super::{former, known, removed};

/// Characters of an unknown name or value that a message repeats. A damaged file may hold any
/// number.
const CHARACTERS_TOLD: usize = 100;

/// A setting in an OPTIONS file that has no effect, or not the one that its value asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSetting {
    /// Its place in an OPTIONS file.
    pub section: Section,
    /// RocksDB's name.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// The value used instead. That is the nearest number if the value is outside the engine's
    /// range, and the default if it needs a missing component or is a choice of another release.
    pub taken_for: Option<String>,
    /// Whether it is written in a comment, because some RocksDB from 7.8 on rejects a file with
    /// that name or value.
    pub in_comment: bool,
    /// The OPTIONS file, if the setting was read from a directory.
    pub file: Option<Arc<Path>>,
}

impl KeptSetting {
    /// A setting that is written again unchanged.
    pub(super) fn new(section: Section, name: &str, value: &str) -> Self {
        let (name, value) = (name.to_owned(), value.to_owned());
        Self { section, name, value, taken_for: None, in_comment: false, file: None }
    }

    /// Whether the user need not be told: no value of the setting changes what is stored or how
    /// safe it is.
    pub fn is_inert(&self) -> bool {
        let passed_over =
            || known::INERT.contains(&self.name.as_str()) || former::find(&self.name).is_some();
        self.taken_for.is_none() && passed_over()
    }

    /// The setting and what is used instead, for a list.
    pub fn in_short(&self) -> String {
        let (name, value) = (&self.name, &self.value);
        match &self.taken_for {
            Some(other) => format!("{name}={value} ({other} used instead)"),
            None if self.is_unknown() => {
                format!("{}={} (unknown)", shortened(name), shortened(value))
            }
            None => format!("{name}={value}"),
        }
    }

    /// Whether no RocksDB up to 11.9 has a setting of that name.
    fn is_unknown(&self) -> bool {
        let is_known = known::find(&self.name).is_some() || former::find(&self.name).is_some();
        self.in_comment && self.taken_for.is_none() && !is_known && !known::is_row(&self.name)
    }
}

impl fmt::Display for KeptSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, .. } = self;
        if let Some(removed) = removed::find(name) {
            return write!(f, "{removed}");
        }
        if self.is_unknown() {
            let (name, value) = (shortened(name), shortened(value));
            return write!(f, "option '{name}={value}' is unknown and has no effect");
        }
        match (&self.taken_for, former::find(name)) {
            (Some(other), _) => {
                write!(f, "option '{name}={value}' is not available here; {other} is used instead")
            }
            (None, Some(former)) => {
                write!(f, "option '{name}={value}' has no effect: {}", former.became)
            }
            (None, None) => write!(f, "option '{name}={value}' is known but has no effect"),
        }
    }
}

/// An unknown section of an OPTIONS file with its contents. It is written again in comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSection {
    /// Text between the brackets of its header.
    pub header: String,
    /// Its lines as names and values.
    pub settings: Vec<(String, String)>,
}

impl fmt::Display for KeptSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section [{}] is unknown and has no effect", shortened(&self.header))
    }
}

/// The beginning of a name or value, for a message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS_TOLD) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_string(),
    }
}
