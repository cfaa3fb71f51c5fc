//! Point lookups of many keys at once: as in `read`, but source by source for all keys, so that they wait together.
//!
//! 1. Search the memtables for each key.
//! 2. For each table of level 0, newest first, and for all tables of each deeper level: plan the keys that they may hold
//!    (`sst::many`), tell the system which blocks are to be read, read them, then search for each key.
//! 3. After each of these, leave out the keys that are settled.

use std::ops::Range;
use std::sync::Arc;

use super::family::{Family, SuperVersion};
use super::read::{cover, may_hold, read_settings, search_memtables};
use super::{DbInner, Ticker, Value};
use crate::base::{Error, KeyBuffer, Mutant, Result, SequenceNumber, Sometimes};
use crate::iter::Lookup;
use crate::manifest::{TableFile, Version};
use crate::options::ReadOptions;
use crate::sst::{Planned, Sought, Table, ValueRef};

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
    /// Empty between two levels.
    planned: Vec<Planned>,
}

/// The part of a batch that falls to one table.
struct Share<'a> {
    file: &'a TableFile,
    /// `None` if anything went wrong with it.
    table: Option<&'a Arc<Table>>,
    keys: &'a [usize],
    /// Its part of what was planned.
    planned: Range<usize>,
}

impl DbInner {
    pub(super) fn multi_get(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Value>>> {
        self.statistics.add(Ticker::KeysRead, keys.len() as u64);
        self.multi_get_again(options, family, keys)
    }

    /// [`Self::multi_get`] of keys that were counted already.
    pub(super) fn multi_get_again(
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
            planned: Vec::with_capacity(keys.len()),
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
        let level0 = &version.levels[0];
        for file in 0..level0.len() {
            let places = batch.places(level0, |_| file);
            self.search_level_together(level0, &places, batch);
            batch.settle();
        }
        for (level, files) in version.levels.iter().enumerate().skip(1).filter(|(_, files)| !files.is_empty())
        {
            let places = batch.places(files, |sought| version.file_index_for_key(level, sought.target()));
            self.search_level_together(files, &places, batch);
            for group in places.chunk_by(|a, b| a.0 == b.0) {
                self.search_next_tables(&files[group[0].0..], group, batch);
            }
            batch.settle();
        }
    }

    /// Searches disjoint tables, each for some keys of the batch: `places` has a table and a key, in the order of the tables.
    fn search_level_together(
        &self,
        files: &[Arc<TableFile>],
        places: &[(usize, usize)],
        batch: &mut Batch<'_>,
    ) {
        let keys: Vec<usize> = places.iter().map(|&(_, at)| at).collect();
        let mut planned = std::mem::take(&mut batch.planned);
        let settings = read_settings(batch.options);
        let mut start = 0;
        let mut shares: Vec<Share<'_>> = Vec::new();
        for group in places.chunk_by(|a, b| a.0 == b.0) {
            let (file, keys) = (&files[group[0].0], &keys[start..start + group.len()]);
            start += group.len();
            let first = planned.len();
            let table = self.tables.open_for(batch.family, file, settings.cache_only);
            let mut plan = |table: &Arc<Table>| table.plan(&batch.sought, keys, &settings, &mut planned);
            let table = table.and_then(|table| plan(table).map(|()| table)).ok();
            shares.push(Share { file, table, keys, planned: first..planned.len() });
        }
        if planned.iter().filter(|one| one.is_missing()).count() > 1 {
            for Share { table, planned: range, .. } in &shares {
                table
                    .iter()
                    .for_each(|table| planned[range.clone()].iter().for_each(|one| table.will_need(one)));
            }
        }
        for share in &mut shares {
            let fetch = |table: &&Arc<Table>| {
                table.fetch(&batch.sought, &mut planned[share.planned.clone()], &settings).is_ok()
            };
            share.table = share.table.filter(fetch);
        }
        let mut all = planned.drain(..);
        for share in &shares {
            let planned = all.by_ref().take(share.planned.len());
            self.search_table_together(share, planned, batch);
        }
        drop(all);
        batch.planned = planned;
    }

    fn search_table_together(
        &self,
        share: &Share<'_>,
        planned: impl Iterator<Item = Planned>,
        batch: &mut Batch<'_>,
    ) {
        let settings = read_settings(batch.options);
        let Some(table) = share.table else {
            // Something went wrong for one of the keys: each by itself gets its own answer.
            planned.for_each(drop);
            for &at in share.keys {
                let (sought, lookup) = (&batch.sought[at], &mut batch.lookups[at]);
                let found = self.search_table(batch.options, batch.family, share.file, sought, lookup);
                batch.failures[at] = found.err();
            }
            return;
        };
        for &at in share.keys {
            cover(table, batch.sought[at].target(), batch.options, &mut batch.lookups[at]);
        }
        for one in planned {
            let (at, lookup) = (one.at, &mut batch.lookups[one.at]);
            let visit = |sequence, kind, value: ValueRef<'_>| {
                Ok(lookup.add(sequence, kind, Value::from(value.pin())))
            };
            batch.failures[at] = table.search_planned(one, &batch.sought[at], &settings, visit).err();
        }
    }

    /// Goes on with the keys that end the first of these tables: their versions may straddle it and the next.
    fn search_next_tables(&self, files: &[Arc<TableFile>], places: &[(usize, usize)], batch: &mut Batch<'_>) {
        let order = batch.family.comparator();
        for &(_, at) in places {
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
    /// For each open key that lies within the bounds of the table that `choose` names: that table, and the key.
    fn places(&self, files: &[Arc<TableFile>], choose: impl Fn(&Sought<'_>) -> usize) -> Vec<(usize, usize)> {
        let place = |&at: &usize| {
            let sought = &self.sought[at];
            let file = choose(sought);
            let is_inside = may_hold(self.family, files.get(file)?, sought.target().user_key());
            is_inside.then_some((file, at))
        };
        let mut places: Vec<_> = self.open.iter().filter_map(place).collect();
        places.sort_unstable();
        places
    }

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
