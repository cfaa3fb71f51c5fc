//! Prefixes of user keys, for prefix filters and prefix seeks.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::Comparator;
use super::error::{Error, Result};

/// A prefix rule supplied by the application.
///
/// Keys with the same prefix must be adjacent in the comparator's order. The name is stored in
/// every table; two different rules must never share a name.
pub trait UserPrefixExtractor: Send + Sync {
    /// Name stored in tables.
    fn name(&self) -> &str;

    /// The prefix of `key`, or `None` if the rule does not apply to it.
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]>;
}

/// The rule for the prefix of a user key.
#[derive(Clone)]
pub enum PrefixExtractor {
    /// The first N bytes; shorter keys have no prefix. `rocksdb.FixedPrefix.<n>`
    FixedPrefix(usize),
    /// The first N bytes, or the whole key if it is shorter. `rocksdb.CappedPrefix.<n>`
    CappedPrefix(usize),
    /// The whole key. `rocksdb.Noop`
    Noop,
    /// The application's own.
    Custom(Arc<dyn UserPrefixExtractor>),
}

impl PrefixExtractor {
    /// Parses the text of the `prefix_extractor` option or of a table property; `nullptr` means
    /// none.
    ///
    /// # Errors
    /// `NotSupported` for a rule that is not built in.
    pub fn from_option_text(text: &str) -> Result<Option<Self>> {
        let text = text.trim();
        if matches!(text, "nullptr" | "") {
            return Ok(None);
        }
        if text == "rocksdb.Noop" {
            return Ok(Some(Self::Noop));
        }
        let length_after = |names: [&str; 2]| {
            names
                .iter()
                .find_map(|name| text.strip_prefix(name))
                .and_then(|length| length.parse().ok())
        };
        if let Some(length) = length_after(["rocksdb.FixedPrefix.", "fixed:"]) {
            return Ok(Some(Self::FixedPrefix(length)));
        }
        if let Some(length) = length_after(["rocksdb.CappedPrefix.", "capped:"]) {
            return Ok(Some(Self::CappedPrefix(length)));
        }
        Err(Error::not_supported(format!(
            "prefix extractor '{text}' is not built in; use 'fixed:<n>' or 'capped:<n>', or supply it from the program"
        )))
    }

    /// The prefix of `key`, or `None` if it has none.
    #[inline]
    pub fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::FixedPrefix(length) => key.get(..*length),
            Self::CappedPrefix(length) => Some(&key[..key.len().min(*length)]),
            Self::Noop => Some(key),
            Self::Custom(custom) => custom.prefix(key),
        }
    }

    /// Whether all keys from `first` on and before `end` are certain to have the prefix of `first`:
    /// `end` has it, too, or is the first key behind all those that have it. An application's order
    /// makes nothing certain.
    pub fn covers(&self, first: &[u8], end: &[u8], order: &Comparator) -> bool {
        if matches!(order, Comparator::Custom(_)) {
            return false;
        }
        let Some(prefix) = self.prefix(first) else { return false };
        if self.prefix(end) == Some(prefix) {
            return true;
        }
        match self {
            Self::FixedPrefix(length) | Self::CappedPrefix(length) => {
                matches!(order, Comparator::Bytewise)
                    && (prefix.len(), end.len()) == (*length, *length)
                    && is_next_of_its_length(prefix, end)
            }
            Self::Noop | Self::Custom(_) => false,
        }
    }

    /// The name stored in tables and in the OPTIONS file.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::FixedPrefix(length) => format!("rocksdb.FixedPrefix.{length}").into(),
            Self::CappedPrefix(length) => format!("rocksdb.CappedPrefix.{length}").into(),
            Self::Noop => "rocksdb.Noop".into(),
            Self::Custom(custom) => custom.name().into(),
        }
    }
}

/// Whether all strings from the first one on and before the second, of the same length, begin with
/// the first in bytewise order. Where the last byte is 0xff a shorter string lies between them.
fn is_next_of_its_length(before: &[u8], after: &[u8]) -> bool {
    let (Some((last, begin)), Some((next, begin_of_next))) =
        (before.split_last(), after.split_last())
    else {
        return false;
    };
    begin == begin_of_next && last.checked_add(1) == Some(*next)
}

impl PartialEq for PrefixExtractor {
    /// Two extractors are taken to be equal when their names are.
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for PrefixExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests;
