//! Point lookups of many keys at once: as in `read`, but source by source for all keys, so that they wait together.
//!
//! 1. Search the memtables for each key.
//! 2. For each table of level 0, newest first, and each table of the deeper levels in turn: prepare the keys that it may
//!    hold (`sst::many`), then search it for each.
//! 3. After each level, leave out the keys that are settled.

use std::sync::Arc;

use super::family::{Family, SuperVersion};
use super::read::{cover, may_hold, read_settings, search_memtables};
use super::{DbInner, Ticker, Value};
use crate::base::{Error, KeyBuffer, Mutant, Result, SequenceNumber, Sometimes};
use crate::iter::Lookup;
use crate::manifest::{TableFile, Version};
use crate::options::ReadOptions;
use crate::sst::{Prepared, Sought};

/// How many keys go together: what they touch should stay in the nearest caches.
const BATCH: usize = 64;

/// Keys that are looked up together.
struct Batch<'a> {
    options: &'a ReadOptions,
    family: &'a Arc<Family>,
    sought: Vec<Sought<'a>>,
    lookups: Vec<Lookup<Value>>,
    failures: Vec<Option<Error>>,
    /// The keys that are not settled.
    open: Vec<usize>,
    /// Empty between two tables.
    prepared: Vec<Prepared>,
}

impl DbInner {
    pub(super) fn multi_get(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Value>>> {
        let current = family.current.load();
        let sequence = || match Mutant::MultiGetWithoutSnapshot.is_on() {
            true => self.read_sequence(&ReadOptions::default()),
            false => self.read_sequence(options),
        };
        let snapshot = match family.check_owner(&self.obsolete).and_then(|()| sequence()) {
            Ok(snapshot) => snapshot,
            Err(error) => return keys.iter().map(|_| Err(error.clone())).collect(),
        };
        self.statistics.add(Ticker::KeysRead, keys.len() as u64);
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH) {
            self.look_up_together(options, family, &current, snapshot, keys, &mut values);
        }
        values
    }

    fn look_up_together(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        current: &SuperVersion,
        snapshot: SequenceNumber,
        keys: &[&[u8]],
        values: &mut Vec<Result<Option<Value>>>,
    ) {
        let targets: Vec<_> = keys.iter().map(|key| KeyBuffer::for_seek(key, snapshot)).collect();
        let mut batch = Batch {
            options,
            family,
            sought: targets.iter().map(|target| Sought::new(target.as_key())).collect(),
            lookups: keys.iter().map(|_| Lookup::new()).collect(),
            failures: vec![None; keys.len()],
            open: Vec::with_capacity(keys.len()),
            prepared: Vec::with_capacity(keys.len()),
        };
        for (at, key) in keys.iter().enumerate() {
            if !search_memtables(current, key, snapshot, options, &mut batch.lookups[at]) {
                batch.open.push(at);
            }
        }
        self.search_tables_together(&current.version, &mut batch);
        for ((key, lookup), failure) in keys.iter().zip(batch.lookups).zip(batch.failures) {
            values.push(match failure {
                None => self.finish_lookup(options, family, current, key, lookup),
                Some(failure) => Err(failure),
            });
        }
    }

    fn search_tables_together(&self, version: &Version, batch: &mut Batch<'_>) {
        for file in &version.levels[0] {
            let is_inside = |at: &usize| may_hold(batch.family, file, batch.sought[*at].target().user_key());
            let keys: Vec<usize> = batch.open.iter().copied().filter(is_inside).collect();
            self.search_table_together(file, &keys, batch);
            batch.settle();
        }
        for (level, files) in version.levels.iter().enumerate().skip(1).filter(|(_, files)| !files.is_empty())
        {
            let mut places: Vec<(usize, usize)> = (batch.open.iter())
                .map(|&at| (version.file_index_for_key(level, batch.sought[at].target()), at))
                .filter(|&(place, at)| {
                    let key = batch.sought[at].target().user_key();
                    files.get(place).is_some_and(|file| may_hold(batch.family, file, key))
                })
                .collect();
            places.sort_unstable();
            for group in places.chunk_by(|a, b| a.0 == b.0) {
                let keys: Vec<usize> = group.iter().map(|&(_, at)| at).collect();
                self.search_table_together(&files[group[0].0], &keys, batch);
                self.search_next_tables(&files[group[0].0..], &keys, batch);
            }
            batch.settle();
        }
    }

    /// Searches one table for some keys of the batch.
    fn search_table_together(&self, file: &TableFile, keys: &[usize], batch: &mut Batch<'_>) {
        let settings = read_settings(batch.options);
        let mut prepared = std::mem::take(&mut batch.prepared);
        let opened = self.tables.open(batch.family, file);
        let table = opened
            .and_then(|table| table.prepare(&batch.sought, keys, &settings, &mut prepared).map(|()| table));
        match table {
            Ok(table) => {
                for &at in keys {
                    cover(table, batch.sought[at].target(), batch.options, &mut batch.lookups[at]);
                }
                for one in prepared.drain(..) {
                    let (at, lookup) = (one.at, &mut batch.lookups[one.at]);
                    let found =
                        table.search_prepared(one, &batch.sought[at], &settings, |sequence, kind, value| {
                            Ok(lookup.add(sequence, kind, Value::from(value.pin())))
                        });
                    batch.failures[at] = found.err();
                }
            }
            // Something went wrong for one of them: each by itself gets its own answer.
            Err(_) => {
                for &at in keys {
                    let (sought, lookup) = (&batch.sought[at], &mut batch.lookups[at]);
                    let found = self.search_table(batch.options, batch.family, file, sought, lookup);
                    batch.failures[at] = found.err();
                }
            }
        }
        batch.prepared = prepared;
    }

    /// Goes on with the keys that end the first of these tables: their versions may straddle it and the next.
    fn search_next_tables(&self, files: &[Arc<TableFile>], keys: &[usize], batch: &mut Batch<'_>) {
        let order = batch.family.comparator();
        for &at in keys {
            let (sought, lookup) = (&batch.sought[at], &mut batch.lookups[at]);
            let largest = files[0].meta.largest.user_key();
            let goes_on = batch.failures[at].is_none() && !lookup.has_ended();
            if goes_on && order.compare(largest, sought.target().user_key()).is_eq() {
                Sometimes::KeyStraddledTables.reached();
                let found = self.search_level(batch.options, batch.family, &files[1..], sought, lookup);
                batch.failures[at] = found.err();
            }
        }
    }
}

impl Batch<'_> {
    /// Leaves out the keys that no older source matters to.
    fn settle(&mut self) {
        let (lookups, failures) = (&self.lookups, &self.failures);
        self.open.retain(|&at| !lookups[at].is_done() && failures[at].is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::BATCH;
    use crate::base::file_name;
    use crate::db::Db;
    use crate::env::{Env, OpenMode};
    use crate::options::{CompactRangeOptions, Options};

    fn key(number: usize) -> String {
        format!("key{number:04}")
    }

    #[test]
    fn a_damaged_block_fails_its_own_keys_only() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.create_if_missing = true;
        let count = 2 * BATCH;
        let db = Db::open(directory.path(), &options).unwrap();
        for number in 0..count {
            db.put(key(number), vec![b'0' + (number % 10) as u8; 400]).unwrap();
        }
        db.flush_all().unwrap();
        let family = db.default_column_family();
        db.compact_range(family, None, None, &CompactRangeOptions::default()).unwrap();
        let path = file_name::table(directory.path(), db.live_files()[0].number);
        db.close().unwrap();
        drop(db);

        let file = Env::os().fs.open(&path, OpenMode::Update).unwrap();
        file.write_at(10, b"damage").unwrap();
        let db = Db::open(directory.path(), &options).unwrap();
        let keys: Vec<String> = (0..count).rev().map(key).collect();
        let mut damaged = 0;
        for (key, joint) in keys.iter().zip(db.multi_get(&keys)) {
            match (joint, db.get(key)) {
                (Ok(joint), Ok(single)) => assert_eq!(joint.unwrap(), single.unwrap()),
                (Err(joint), Err(single)) => {
                    assert!(joint.is_corruption());
                    assert_eq!(joint.to_string(), single.to_string());
                    damaged += 1;
                }
                (joint, single) => panic!("{key}: {joint:?} and {single:?}"),
            }
        }
        assert!(damaged > 0 && damaged < count / 2, "{damaged}");
    }
}
