//! Collecting the facts.

use super::diagnose::{Finding, diagnose};
use super::facts::{DatabaseFacts, Facts, FamilyFacts};
use crate::base::Result;
use crate::base::file_name::FileKind;
use crate::base::sync::Ordering;
use crate::db::family::ColumnFamily;
use crate::db::properties::garbage_bytes;
use crate::db::settings::{leveled_settings, stall_input, stall_settings};
use crate::db::space::blob_file_bytes;
use crate::db::{Db, DbInner, Ticker};

impl Db {
    /// What is wrong with the database, why its writes are slow, and what to change: the worst first; nothing if all is well.
    ///
    /// Looks at the directory, at the shape of the trees and the properties of tables (which are opened), and, if it was opened
    /// for writing, at what it has counted since. No contents are read: that is for [`Db::verify`].
    ///
    /// # Errors
    /// `IoError` if the directory cannot be listed.
    pub fn doctor(&self) -> Result<Vec<Finding>> {
        Ok(diagnose(&self.facts()?))
    }

    /// What [`Db::doctor`] goes by.
    ///
    /// # Errors
    /// As [`Db::doctor`].
    pub fn facts(&self) -> Result<Facts> {
        let mut facts = Facts::default();
        let checked = self.check()?;
        for fault in checked.faults {
            facts.faults.push(match fault.key_range {
                None => fault.error.to_string(),
                Some((from, to)) => {
                    format!("{}; keys '{}' to '{}'", fault.error, from.escape_ascii(), to.escape_ascii())
                }
            });
        }
        let inner = self.inner();
        for family in self.column_families() {
            facts.families.push(inner.family_facts(&family, &mut facts.faults));
        }
        facts.faults.extend(self.damaged_files().iter().map(ToString::to_string));
        facts.faults.dedup();
        facts.database = inner.database_facts(checked.strays.len() as u64);
        Ok(facts)
    }
}

impl DbInner {
    fn database_facts(&self, strays: u64) -> DatabaseFacts {
        let settings = self.settings.load();
        let free = self.env.fs.free_space(&self.path);
        DatabaseFacts {
            state: self.poison.describe(),
            free_bytes: free.ok().flatten().unwrap_or(0),
            reserved_disk_space: settings.reserved_disk_space,
            strays,
            wal_bytes: self.wal_bytes(),
            max_background_jobs: settings.max_background_jobs.max(0) as u64,
            keys_written: self.statistics.get(Ticker::KeysWritten),
            wal_syncs: self.statistics.get(Ticker::WalSyncs),
            stall_us: self.statistics.get(Ticker::StallMicros),
        }
    }

    /// Bytes of the WALs; where none is written, of those in the directory.
    fn wal_bytes(&self) -> u64 {
        if !self.read_only {
            return self.commit.lock().wal_size() + self.older_wal_bytes.load(Ordering::Relaxed);
        }
        let names = self.env.fs.list(&self.wal_directory).unwrap_or_default();
        let wals = names.iter().filter(|name| matches!(FileKind::parse(name), Some(FileKind::Wal(_))));
        let sizes = wals.filter_map(|name| self.env.fs.metadata(&self.wal_directory.join(name)).ok());
        sizes.map(|found| found.size).sum()
    }

    /// Tables that cannot be opened are faults, too.
    fn family_facts(&self, family: &ColumnFamily, faults: &mut Vec<String>) -> FamilyFacts {
        let options = family.0.options.load();
        let current = family.0.current.load_full();
        let version = &current.version;
        let input = stall_input(&options, version, current.immutable.len(), 0, &Default::default());
        let stalls = stall_settings(&options);
        let trigger = |trigger: Option<usize>| trigger.map_or(u64::MAX, |trigger| trigger as u64);
        let mut facts = FamilyFacts {
            name: family.name().to_string(),
            table_bytes: version.table_bytes(),
            level0_files: input.level0_files as u64,
            level0_slowdown_writes_trigger: trigger(stalls.level0_slowdown_writes_trigger),
            level0_stop_writes_trigger: trigger(stalls.level0_stop_writes_trigger),
            pending_compaction_bytes: input.pending_compaction_bytes,
            soft_pending_compaction_bytes_limit: options.soft_pending_compaction_bytes_limit,
            hard_pending_compaction_bytes_limit: options.hard_pending_compaction_bytes_limit,
            unflushed_memtables: current.immutable.len() as u64,
            max_write_buffer_number: stalls.max_write_buffer_number as u64,
            write_buffer_size: options.write_buffer_size,
            target_file_size_base: options.target_file_size_base,
            max_compaction_bytes: leveled_settings(&options).effective_max_compaction_bytes(),
            disable_auto_compactions: options.disable_auto_compactions,
            blob_bytes: blob_file_bytes(version.blob_files.values()),
            blob_garbage_bytes: garbage_bytes(version),
            max_space_amplification: options.max_space_amplification,
            enable_blob_garbage_collection: options.enable_blob_garbage_collection,
            ..FamilyFacts::default()
        };
        for (_, file) in version.files() {
            facts.tables += 1;
            match self.tables.open(&family.0, file) {
                Ok(table) => {
                    let properties = table.properties();
                    facts.entries += properties.num_entries;
                    facts.deletions += properties.num_deletions;
                    facts.deletion_tables += u64::from(properties.num_deletions * 2 > properties.num_entries);
                }
                // A missing one is known already.
                Err(error) if error.is_not_found() => {}
                Err(error) => faults.push(error.to_string()),
            }
        }
        facts
    }
}
