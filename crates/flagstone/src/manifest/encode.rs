//! Writing a version edit, in RocksDB's order of fields.

use super::edit::VersionEdit;

impl VersionEdit {
    /// Appends the edit's bytes; see `format` for the grammar.
    pub fn encode(&self, _out: &mut Vec<u8>) {
        todo!()
    }
}
