//! A version edit as text for people.

use std::fmt;

use super::edit::VersionEdit;

impl fmt::Display for VersionEdit {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}
