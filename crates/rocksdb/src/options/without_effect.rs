//! Options that change nothing here: any value is accepted. The OPTIONS file names it, so that
//! RocksDB has it when it opens the database.

use flagstone::options::known::{self, INERT};
use flagstone::options::{KeptSetting, Section};

use super::Options;

/// Beside those that concern RocksDB's own threads and log ([`INERT`]): how files are read and
/// written, how a block or memtable is searched, what scans do to memtables, what memtables and
/// caches are made of, and checks that are always made.
const OTHERS: &[&str] = &[
    "allow_concurrent_memtable_write",
    "allow_mmap_writes",
    "avoid_unnecessary_blocking_io",
    "experimental_mempurge_threshold",
    "index_block_search_type",
    "inplace_update_support",
    "memtable_avg_op_scan_flush_trigger",
    "memtable_batch_lookup_optimization",
    "memtable_huge_page_size",
    "memtable_op_scan_flush_trigger",
    "metadata_cache_options",
    "optimize_filters_for_memory",
    "track_and_verify_wals_in_manifest",
    "uniform_cv_threshold",
    "use_fsync",
    "write_dbid_to_manifest",
];

/// Whether the option called `name` has no effect, whatever its value is.
pub fn has_no_effect(name: &str) -> bool {
    INERT.contains(&name) || OTHERS.contains(&name)
}

/// Keeps the value of an option without effect among `kept`, unless it is RocksDB's default.
pub(super) fn keep(kept: &mut Vec<KeptSetting>, name: &str, value: &str) {
    let known = known::find(name).expect("the engine knows the options that it does not act on");
    kept.retain(|kept| kept.name != name);
    if known.defaults[0] != value {
        kept.push(KeptSetting {
            section: known.section,
            name: name.to_string(),
            value: value.to_string(),
            taken_for: None,
            in_comment: !known.in_both,
            file: None,
        });
    }
}

impl Options {
    /// Keeps the value of an option without effect.
    #[doc(hidden)]
    pub fn note(&mut self, name: &'static str, value: impl ToString) {
        let value = value.to_string();
        let known = known::find(name).expect("the engine knows the options that it ignores");
        let kept = match known.section {
            Section::Db => &mut self.db.kept,
            _ => &mut self.db.cf.kept,
        };
        keep(kept, name, &value);
    }

    /// The value of an option without effect: as it was set, or RocksDB's default.
    #[doc(hidden)]
    pub fn noted(&self, name: &str) -> &str {
        let mut all = self.db.kept.iter().chain(&self.db.cf.kept);
        let kept = all.find(|kept| kept.name == name);
        let default = || known::find(name).map_or("", |known| known.defaults[0]);
        kept.map_or_else(default, |kept| kept.value.as_str())
    }

    /// The same of one that is true or false.
    pub(super) fn is_noted(&self, name: &str) -> bool {
        matches!(self.noted(name), "true" | "1")
    }
}
