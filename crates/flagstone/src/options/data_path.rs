//! The text of `db_paths` and `cf_paths`.
//!
//! ```text
//! {path=/fast;target_size=10737418240;}:{path=/slow;target_size=0;}
//! ```
//!
//! RocksDB has these options, but neither writes nor reads them in an OPTIONS file. This is the
//! form in which it writes other lists of structs; in a path, a backslash also precedes `;`, `{`
//! and `}`. A missing size is 0, and `/fast:/slow` is short for paths without sizes.

use std::path::PathBuf;

use super::nested::nested_settings;
use super::table::{Section, settings};
use super::text::{escape, split_list, unescape};
use super::value::{RandomBits, SettingValue};
use crate::base::{Error, Result};

/// RocksDB's limit.
const PATHS_MAX: usize = 4;

settings! {
    /// A directory for tables.
    pub struct DataPath in Section::Db;

    /// The directory.
    fixed path: PathText = PathText::default();
    /// Bytes of tables that it should hold; the last path takes all that the others do not.
    fixed target_size: u64 = 0;
}

nested_settings!(DataPath);

/// A path as text inside braces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathText(pub String);

impl SettingValue for PathText {
    fn assign(&mut self, text: &str) -> Result<()> {
        self.0 = unescape(text);
        Ok(())
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for c in escape(&self.0).chars() {
            if matches!(c, ';' | '{' | '}') {
                out.push('\\');
            }
            out.push(c);
        }
        out
    }

    fn sample(random: RandomBits<'_>) -> Self {
        const DRAWN: [&str; 4] = ["/fast", "/slow disk/tables", "/odd;{\\}:#/x", "relative"];
        Self(DRAWN[(random() % DRAWN.len() as u64) as usize].to_string())
    }
}

/// Checks that an OPTIONS file preserves a path exactly. Otherwise a program that opens the
/// database by the file would look in another directory.
pub(super) fn check_kept_path(name: &str, path: &str) -> Result<()> {
    if path.trim() == path {
        Ok(())
    } else {
        Err(Error::invalid_argument(format!(
            "{name} '{path}' begins or ends with a space, which OPTIONS files do not preserve; rename the directory"
        )))
    }
}

/// Directories for tables, indexed by path id; empty for the directory that is otherwise used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataPathList(pub Vec<DataPath>);

impl DataPathList {
    /// Directories, each with the bytes that it should hold.
    pub fn of(paths: &[(&str, u64)]) -> Self {
        let path = |&(path, target_size): &(&str, u64)| DataPath {
            path: PathText(path.to_string()),
            target_size,
        };
        Self(paths.iter().map(path).collect())
    }

    /// Each directory with the bytes that it should hold.
    pub(crate) fn directories(&self) -> Vec<(PathBuf, u64)> {
        self.0.iter().map(|path| (PathBuf::from(&path.path.0), path.target_size)).collect()
    }

    pub(crate) fn check(&self, name: &str) -> Result<()> {
        if self.0.len() > PATHS_MAX {
            let count = self.0.len();
            return Err(Error::not_supported(format!(
                "{name} has {count} paths; at most four are supported"
            )));
        }
        if self.0.iter().any(|path| path.path.0.is_empty()) {
            return Err(Error::invalid_argument(format!("{name} holds an empty path")));
        }
        self.0.iter().try_for_each(|path| check_kept_path(name, &path.path.0))
    }
}

impl SettingValue for DataPathList {
    fn assign(&mut self, text: &str) -> Result<()> {
        let mut paths = Vec::new();
        for element in split_list(text)? {
            let mut path = DataPath::default();
            if element.starts_with('{') {
                path.assign(element)?
            } else {
                path.path.assign(element)?
            }
            paths.push(path);
        }
        self.0 = paths;
        Ok(())
    }

    fn text(&self) -> String {
        self.0.iter().map(SettingValue::text).collect::<Vec<_>>().join(":")
    }

    fn sample(random: RandomBits<'_>) -> Self {
        let count = random() % (PATHS_MAX as u64 + 1);
        Self((0..count).map(|_| DataPath::sample(random)).collect())
    }
}

#[cfg(test)]
mod tests;
