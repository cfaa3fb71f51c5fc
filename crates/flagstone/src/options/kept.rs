//! What an OPTIONS file says that the engine does not do: it is kept, and written again.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::table::Section;
use super::{former, known, removed};

/// Characters of an unknown name, and of its value, that a sentence repeats: a damaged file may
/// hold any number of them.
const CHARACTERS_TOLD: usize = 100;

/// A value that an OPTIONS file gave to a setting, and that the engine does not act on, or not as
/// it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSetting {
    /// Where it stands in an OPTIONS file.
    pub section: Section,
    /// RocksDB's name.
    pub name: String,
    /// The value's text.
    pub value: String,
    /// What is done instead: the nearest number, where it lies outside the engine's range; the
    /// default, where it needs a component that is missing, or is a choice of another release.
    pub taken_for: Option<String>,
    /// Whether it is written in a comment, because some RocksDB from 7.8 on refuses a file with
    /// that name or value.
    pub in_comment: bool,
    /// The OPTIONS file, if it was read from a directory.
    pub file: Option<Arc<Path>>,
}

impl KeptSetting {
    /// A setting that is written again as it stood there.
    pub(super) fn new(section: Section, name: &str, value: &str) -> Self {
        let (name, value) = (name.to_owned(), value.to_owned());
        Self { section, name, value, taken_for: None, in_comment: false, file: None }
    }

    /// Whether nobody need hear of it: no value of that setting changes what is stored, or how safe
    /// it is.
    pub fn is_inert(&self) -> bool {
        let passed_over =
            || known::INERT.contains(&self.name.as_str()) || former::find(&self.name).is_some();
        self.taken_for.is_none() && passed_over()
    }

    /// The setting and what is done about it, for a list of such.
    pub fn in_short(&self) -> String {
        let (name, value) = (&self.name, &self.value);
        match &self.taken_for {
            Some(other) => format!("{name}={value} (taken for {other})"),
            None if self.is_unknown() => {
                format!("{}={} (not known)", shortened(name), shortened(value))
            }
            None => format!("{name}={value}"),
        }
    }

    /// Whether neither RocksDB 11.9 nor any release before has a setting of that name.
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
            return write!(f, "option '{name}={value}' is not known and not acted on");
        }
        match (&self.taken_for, former::find(name)) {
            (Some(other), _) => {
                write!(f, "option '{name}={value}' cannot be had here, and is taken for {other}")
            }
            (None, Some(former)) => {
                write!(f, "option '{name}={value}' is not acted on: {}", former.became)
            }
            (None, None) => write!(f, "option '{name}={value}' is known but not acted on"),
        }
    }
}

/// A section of an OPTIONS file that is not known, and what stands in it. It is written again in
/// comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSection {
    /// The text between the brackets of its header.
    pub header: String,
    /// Its lines, as names and values.
    pub settings: Vec<(String, String)>,
}

impl fmt::Display for KeptSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section [{}] is not known and not acted on", shortened(&self.header))
    }
}

/// The beginning of a name or value, as a sentence has it.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS_TOLD) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_string(),
    }
}
