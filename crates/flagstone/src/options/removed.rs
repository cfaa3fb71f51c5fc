//! Options that earlier versions of this engine had, and RocksDB never did.
//!
//! OPTIONS files still contain them as comments, and programs still set them. They are accepted
//! with any value and have no effect. A value other than the former default is reported, and not
//! written again.

use std::fmt;

use super::known::same_text;

/// An option that is gone. All of them were options of column families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// The name.
    pub name: &'static str,
    /// The former default: nothing is missed where it has that value.
    default: &'static str,
}

const REMOVED: &[Removed] = &[
    Removed { name: "blob_commit_direct_min_size", default: "0" },
    Removed { name: "seek_compaction_bytes", default: "0" },
];

/// The option that is gone, if `name` is one; it may have the prefix `cf.`.
pub fn find(name: &str) -> Option<&'static Removed> {
    let plain = name.strip_prefix("cf.").unwrap_or(name);
    REMOVED.iter().find(|removed| removed.name == plain)
}

impl Removed {
    /// Whether `value` is the former default.
    pub fn is_default(&self, value: &str) -> bool {
        same_text(self.default, value)
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option '{}' has no effect: this version no longer has it", self.name)
    }
}

#[cfg(test)]
mod tests;
