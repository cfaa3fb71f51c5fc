//! What an OPTIONS file says that the engine does not do: it is kept, and written again.

use std::fmt;

use super::table::Section;
use super::{known, removed};

/// A value that an OPTIONS file gave to a setting, and that the engine does not act on, or not as it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSetting {
    /// Where it stands in an OPTIONS file.
    pub section: Section,
    /// RocksDB's name.
    pub name: String,
    /// The value's text.
    pub value: String,
    /// What is done instead: the nearest number, where it lies outside the engine's range; the default, where it needs a
    /// component that is missing.
    pub taken_for: Option<String>,
}

impl KeptSetting {
    /// Whether nobody need hear of it: no value of that setting changes what is stored, or how safe it is.
    pub fn is_inert(&self) -> bool {
        self.taken_for.is_none() && known::INERT.contains(&self.name.as_str())
    }
}

impl fmt::Display for KeptSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, .. } = self;
        if let Some(removed) = removed::find(name) {
            return write!(f, "{removed}");
        }
        match &self.taken_for {
            Some(other) => write!(f, "option '{name}={value}' cannot be had here, and is taken for {other}"),
            None => write!(f, "option '{name}={value}' is known but not acted on"),
        }
    }
}
