//! Writes, done to the engine and to the model.

use std::path::Path;

use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::ColumnFamily;
use flagstone::env::IoPriority;
use flagstone::options::{CompactionStyle, WriteOptions};

use super::life::Life;
use super::operation::Durability;
use crate::model::{Edit, Family};
use crate::{compare, external};

impl Life {
    pub(super) fn write(&mut self, durability: Durability, edits: &[(String, Edit)]) {
        let (mut written, mut batch) = (Vec::new(), WriteBatch::new());
        // What removes keys that are put once must not be lost where what puts them again is not.
        let mut must_be_logged = false;
        for (name, edit) in edits {
            let Some(family) = self.model.families.get_mut(name) else {
                if let Some(handle) = self.held.gone.get(name) {
                    compare::add(&mut batch, handle, edit);
                }
                continue;
            };
            let Some(edit) = allowed(family, edit) else { continue };
            must_be_logged |= removes_put_once(family, &edit);
            self.has_ranges |= matches!(edit, Edit::DeleteRange { .. });
            family.apply(&edit);
            self.held.touched.note(self.turn, name, family, &edit);
            compare::add(&mut batch, &self.db.column_family(name).expect("it exists"), &edit);
            written.push((name.clone(), edit));
        }
        if durability == Durability::Ingested && !written.is_empty() {
            return self.ingest(batch, written);
        }
        if !batch.is_empty() && self.any(9) == 0 {
            batch.put_log_data("for whoever reads along").expect("a small batch");
        }
        let sync = durability == Durability::Synced;
        let disable_wal = durability == Durability::Unlogged && !must_be_logged;
        let options = WriteOptions {
            sync,
            disable_wal,
            low_pri: self.any(7) == 0,
            no_slowdown: self.any(6) == 0,
            ignore_missing_column_families: true,
            rate_limiter_priority: (self.any(8) == 0).then_some(IoPriority::User),
            protection_bytes_per_key: if batch.count() % 2 == 0 { 8 } else { 0 },
        };
        let begun = self.fs.changes();
        self.write_in_the_end(&options, &batch).expect("a write");
        self.written.note(&self.db, batch, !disable_wal);
        self.note_write(begun, written, &options);
    }

    /// Has tables with these edits, which the model has, become part of the database.
    fn ingest(&mut self, batch: WriteBatch, edits: Vec<(String, Edit)>) {
        let env = self.db.options().env.clone();
        let begun = self.fs.changes();
        let outside = Path::new("/outside");
        let mut groups = external::tables(&self.db, &env, outside, &edits).expect("tables");
        if groups.is_empty() {
            return;
        }
        for group in &mut groups {
            group.options.move_files = self.any(4) == 0;
            group.options.link_files = self.any(5) == 0;
            group.options.write_global_seqno = self.any(6) == 0;
            group.options.verify_checksums_before_ingest = self.any(7) == 0;
        }
        self.db.ingest_together(&groups).expect("an ingestion");
        external::remove(&env, &groups);
        self.written.note(&self.db, batch, false);
        self.note_write(begun, edits, &WriteOptions::synced());
    }

    /// Of a write that is refused, as it would have to wait, nothing is there: it is as if it had
    /// not been tried.
    fn write_in_the_end(&self, options: &WriteOptions, batch: &WriteBatch) -> Result<()> {
        match self.db.write_with(options, batch.clone()) {
            Err(error) if options.no_slowdown && error.code() == Code::Incomplete => {
                // Threads may have let writers go meanwhile.
                let is_due = self.unasked.is_none() || self.may_hold_up(options);
                assert!(is_due, "a write is refused though nothing holds it up: {error}");
                self.db.write_with(&WriteOptions { no_slowdown: false, ..*options }, batch.clone())
            }
            outcome => outcome,
        }
    }

    /// Whether a write may have to wait: by what the database says of itself; for compactions, if
    /// it gives way to them; or before the end of the space that blob files may take, of which
    /// there are some, or WALs, which a flush is to let go of.
    fn may_hold_up(&self, options: &WriteOptions) -> bool {
        let says = |name| self.db.aggregated_int_property(name).expect("a known property") > 0;
        let files = self.db.live_files();
        let holds_up = |family: &ColumnFamily| {
            let set = family.options();
            let has = |level: fn(usize) -> bool| {
                let own = files.iter().filter(|file| file.column_family == family.name());
                own.filter_map(|file| file.level).any(level)
            };
            let has_runs = match set.compaction_style {
                _ if set.disable_auto_compactions => false,
                CompactionStyle::Level => has(|level| level == 0),
                CompactionStyle::Universal => has(|_| true),
                CompactionStyle::Fifo | CompactionStyle::None => false,
            };
            let mut blobs = files.iter().filter(|file| file.level.is_none());
            let has_blobs = blobs.any(|file| file.column_family == family.name());
            let is_limited =
                set.max_space_amplification > 0.0 && set.compaction_style != CompactionStyle::Fifo;
            options.low_pri && has_runs || is_limited && has_blobs
        };
        says("rocksdb.is-write-stopped")
            || says("rocksdb.actual-delayed-write-rate")
            || self.db.column_families().iter().any(holds_up)
            || self.setup.chosen.options.db.max_total_wal_size > 0
                && says("rocksdb.num-immutable-mem-table")
    }

    /// Writes a value piece by piece, if the family may be given it.
    pub(super) fn put_stream(
        &mut self,
        durability: Durability,
        name: &str,
        key: &[u8],
        buffer: usize,
        pieces: &[Vec<u8>],
    ) {
        let Some(handle) = self.family(name) else { return };
        let family = self.model.families.get_mut(name).expect("it has a handle");
        // Secondaries of RocksDB could not read it, and so it is refused.
        if !family.may_put(key) || self.db.options().readable_by_rocksdb_secondaries {
            return;
        }
        let put = Edit::Put { key: key.to_vec(), value: pieces.concat() };
        family.apply(&put);
        self.held.touched.note(self.turn, name, family, &put);
        let options = WriteOptions {
            sync: durability == Durability::Synced,
            disable_wal: durability == Durability::Unlogged,
            ..WriteOptions::default()
        };
        let begun = self.fs.changes();
        let mut writer =
            self.db.put_stream(&handle, key, &options).expect("a stream").with_buffer(buffer);
        pieces.iter().for_each(|piece| writer.append(piece).expect("a piece"));
        writer.commit().expect("a write");
        let mut batch = WriteBatch::new();
        compare::add(&mut batch, &handle, &put);
        self.written.note(&self.db, batch, !options.disable_wal);
        self.note_write(begun, vec![(name.to_string(), put)], &options);
    }

    pub(super) fn note_write(
        &mut self,
        begun: usize,
        written: Vec<(String, Edit)>,
        options: &WriteOptions,
    ) {
        self.journal.wrote(begun, self.fs.changes(), written, !options.disable_wal);
        self.note_logged(options);
    }

    /// What was logged by a write with these options, and all before it, is as durable as they ask.
    pub(super) fn note_logged(&mut self, options: &WriteOptions) {
        self.note_handed_over();
        if options.sync {
            self.journal.synced(self.fs.changes());
        }
    }

    /// Without `manual_wal_flush` nothing waits in memory.
    pub(super) fn note_handed_over(&mut self) {
        if !self.setup.chosen.options.manual_wal_flush {
            self.journal.written(self.fs.changes());
        }
    }

    /// What lay in the tables may come to light again in older versions, until the range is
    /// deleted. Nobody can say what snapshots see of it, nor what a crash before that deletion
    /// leaves.
    pub(super) fn delete_files(&mut self, name: &str, begin: &[u8], end: &[u8], include_end: bool) {
        let Some(handle) = self.family(name) else { return };
        let family = &self.model.families[name];
        let (begin, end) = if family.is_before(end, begin) { (end, begin) } else { (begin, end) };
        // What has no bound reaches to keys at which, or behind which, nothing is written.
        let (is_from_first, is_to_last) = (self.any(5) == 0, self.any(7) == 0);
        let (first, last) = family.ends();
        let (begin, end) =
            (if is_from_first { first } else { begin }, if is_to_last { last } else { end });
        let include_end = is_to_last || include_end && family.may_overwrite(end);
        self.held.snapshots.clear();
        self.held.scans.clear();
        self.held.transactions.clear();
        self.held.readers.retain(|reader| !reader.moves_on);
        // Two ranges that touch are less than one: a table may lie in neither.
        let between = family.keys_between(begin, end);
        let (from, to) = ((!is_from_first).then_some(begin), (!is_to_last).then_some(end));
        let ranges = match between.get(between.len() / 2).filter(|_| self.any(3) == 0) {
            Some(middle) => vec![(from, Some(&**middle)), (Some(&**middle), to)],
            None => vec![(from, to)],
        };
        self.db.delete_files_in_ranges(&handle, &ranges, include_end).expect("files are deleted");
        let mut edits = vec![Edit::DeleteRange { begin: begin.to_vec(), end: end.to_vec() }];
        edits.extend(include_end.then(|| Edit::Delete { key: end.to_vec() }));
        let edits: Vec<_> = edits.into_iter().map(|edit| (name.to_string(), edit)).collect();
        self.write(Durability::Synced, &edits);
        self.created = self.fs.changes();
        self.opened = self.created;
    }
}

/// The edit as the family may be given it: ranges begin before they end, and the contracts of keys
/// that are put once are kept.
pub(super) fn allowed(family: &Family, edit: &Edit) -> Option<Edit> {
    match edit {
        Edit::Put { key, .. } | Edit::PutEntity { key, .. } => {
            family.may_put(key).then(|| edit.clone())
        }
        Edit::SingleDelete { key } => family.may_single_delete(key).then(|| edit.clone()),
        Edit::Delete { key } | Edit::Merge { key, .. } => {
            family.may_overwrite(key).then(|| edit.clone())
        }
        Edit::DeleteRange { begin, end } if family.is_before(end, begin) => {
            Some(Edit::DeleteRange { begin: end.clone(), end: begin.clone() })
        }
        Edit::DeleteRange { .. } => Some(edit.clone()),
    }
}

pub(super) fn removes_put_once(family: &Family, edit: &Edit) -> bool {
    match edit {
        Edit::SingleDelete { .. } => true,
        Edit::DeleteRange { begin, end } => {
            family.keys_between(begin, end).iter().any(|key| !family.may_overwrite(key))
        }
        _ => false,
    }
}
