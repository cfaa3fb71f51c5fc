//! Point lookups of many keys at once: as in `read`, but source by source for all keys, so that
//! they wait together.
//!
//! 1. Search the memtables for each key.
//! 2. For each table of level 0, newest first, and for all tables of each deeper level: plan the
//!    keys that they may hold (`sst::many`) and search the blocks that the cache has. A key whose
//!    block it does not have waits, whatever its level.
//! 3. Read the blocks that are waited for, of all levels together, and search them. A key that is
//!    not settled by its block, as when a filter was wrong or operands have to be merged, goes on
//!    at the next source, with 2.
//! 4. Read the values that lie in blob files, of all keys together.
//!
//! A key waits for one block at a time, the newest that may hold it: where filters rule out what
//! does not, deeper blocks would nearly always be read in vain.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::perf::{self, PerfMetric};
use crate::base::{Error, KeyBuffer, Result, SequenceNumber, ValueType};
use crate::cache::MemoryKind;
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::Reader;
use crate::db::reading::read::{
    count_read, cover, may_hold, note_found, read_settings, search_memtables, take,
};
use crate::db::reading::value::Value;
use crate::db::statistics::Ticker;
use crate::iter::{Lookup, Outcome};
use crate::manifest::{TableFile, Version};
use crate::options::ReadOptions;
use crate::sst::{LookupKey, Part, Planned, Table, ValueRef, plan, read_missing};

/// How many keys go together: what they touch should stay in the nearest caches.
const BATCH: usize = 64;

/// Stands for the next source of a key that waits.
const WAITING: usize = usize::MAX;

/// Keys that are looked up together.
struct Batch<'a> {
    options: &'a ReadOptions,
    family: &'a Arc<Family>,
    sought: Vec<LookupKey<'a>>,
    lookups: Vec<Lookup<Value>>,
    failures: Vec<Option<Error>>,
    /// The keys that are neither settled nor waiting, and for each of all keys the first source
    /// that may still have it.
    open: Vec<usize>,
    next_sources: Vec<usize>,
    /// The keys whose blocks have to be read.
    waiting: Vec<Waiting<'a>>,
    /// Empty between two levels.
    planned: Vec<Planned>,
}

/// A key that waits for a block.
struct Waiting<'a> {
    source: usize,
    /// Tables of the source from the one on that has the block.
    files: &'a [Arc<TableFile>],
    table: &'a Arc<Table>,
    planned: Planned,
}

impl Reader {
    pub(in crate::db) fn multi_get(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Value>>> {
        self.note_multi_get(family, keys);
        self.multi_get_again(options, family, keys)
    }

    /// [`Self::multi_get`] of keys that were counted already.
    pub(in crate::db) fn multi_get_again(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Value>>> {
        let mut values: Vec<Result<Option<Value>>> = Vec::with_capacity(keys.len());
        let _cpu = perf::time(PerfMetric::GetCpuNanos);
        // Each alone is too small to be counted, if it does not lie in the cache; many of them are
        // not small.
        let mut counted = self.tables.account().measured(MemoryKind::Values);
        let mut bytes = 0;
        let found = self.within(options, || {
            self.multi_search(options, family, keys, |current, keys, found| {
                bytes += self.finish_together(options, family, current, keys, found, &mut values);
                counted.set_large(bytes);
            })
        });
        match found {
            Ok(()) => values,
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Looks keys up, all as of one moment, and gives some at a time to `finish`, in their order.
    ///
    /// # Errors
    /// `InvalidArgument` for a family or snapshot of another database.
    pub(super) fn multi_search(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        keys: &[&[u8]],
        mut finish: impl FnMut(&SuperVersion, &[&[u8]], Vec<Result<Outcome<Value>>>),
    ) -> Result<()> {
        let current = family.current.load();
        self.check_family(family)?;
        let snapshot = self.read_sequence(options)?;
        for keys in keys.chunks(BATCH) {
            finish(&current, keys, self.search_together(options, family, &current, snapshot, keys));
        }
        Ok(())
    }

    fn search_together(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        current: &SuperVersion,
        snapshot: SequenceNumber,
        keys: &[&[u8]],
    ) -> Vec<Result<Outcome<Value>>> {
        let has_rows = self.tables.caches().rows().is_some();
        if has_rows || family.order.timestamp_size() > 0 || options.timestamp.is_some() {
            let find = |key: &&[u8]| self.search(options, family, current, snapshot, key);
            return keys.iter().map(find).map(|found| found.map(Lookup::finish)).collect();
        }
        let targets: Vec<_> = keys.iter().map(|key| KeyBuffer::for_seek(key, snapshot)).collect();
        let mut batch = Batch {
            options,
            family,
            sought: targets.iter().map(|target| LookupKey::new(target.as_key())).collect(),
            lookups: keys.iter().map(|_| Lookup::new()).collect(),
            failures: vec![None; keys.len()],
            open: Vec::with_capacity(keys.len()),
            next_sources: vec![0; keys.len()],
            waiting: Vec::new(),
            planned: Vec::with_capacity(keys.len()),
        };
        for (at, key) in keys.iter().enumerate() {
            match search_memtables(current, key, snapshot, options, &mut batch.lookups[at]) {
                Ok(true) => {}
                Ok(false) => batch.open.push(at),
                Err(error) => batch.failures[at] = Some(error),
            }
        }
        while !batch.open.is_empty() {
            self.search_cached_blocks(&current.version, &mut batch);
            self.search_other_blocks(&mut batch);
        }
        let Batch { lookups, failures, .. } = batch;
        let outcomes = lookups.into_iter().zip(failures);
        let outcomes = outcomes.map(|(lookup, failure)| failure.map_or(Ok(lookup.finish()), Err));
        outcomes.collect()
    }

    /// The keys' values go to `values`; how many bytes of them nobody counts.
    fn finish_together(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        current: &SuperVersion,
        keys: &[&[u8]],
        outcomes: Vec<Result<Outcome<Value>>>,
        values: &mut Vec<Result<Option<Value>>>,
    ) -> usize {
        let (blobs, mut bytes) =
            self.read_blobs_together(options, family, current, keys, &outcomes);
        for (at, outcome) in outcomes.into_iter().enumerate() {
            let blob = blobs.get(at).cloned().flatten();
            let value = match (outcome, blob) {
                (Err(failure), _) => Err(failure),
                (Ok(_), Some(blob)) => {
                    self.statistics.add(Ticker::BytesRead, blob.len() as u64);
                    Ok(Some(Value::from(blob)))
                }
                (Ok(outcome), None) => {
                    self.finish_outcome(options, family, current, keys[at], outcome)
                }
            };
            bytes += value.as_ref().ok().and_then(Option::as_ref).map_or(0, Value::owned_bytes);
            count_read(PerfMetric::MultigetReadBytes, value.as_ref().ok().and_then(Option::as_ref));
            values.push(value);
        }
        bytes
    }

    /// Goes through all sources with the open keys. Each is settled, waits, or is ruled out in the
    /// end.
    fn search_cached_blocks<'a>(&self, version: &'a Version, batch: &mut Batch<'a>) {
        let level0 = &version.levels[0];
        let at_level = perf::at_level(0);
        for source in 0..level0.len() {
            let places = batch.places(source, &level0[source..=source], |_| 0);
            self.search_level_together(source, &level0[source..=source], &places, batch);
            batch.settle();
        }
        drop(at_level);
        for (level, files) in
            version.levels.iter().enumerate().skip(1).filter(|(_, files)| !files.is_empty())
        {
            let _at_level = perf::at_level(level);
            let source = level0.len() + level - 1;
            let places = batch
                .places(source, files, |sought| version.file_index_for_key(level, sought.target()));
            self.search_level_together(source, files, &places, batch);
            batch.settle();
        }
        batch.open.clear();
    }

    /// Reads the blocks that are waited for, and searches them. What is still open then goes on at
    /// the next source.
    fn search_other_blocks(&self, batch: &mut Batch<'_>) {
        let mut waiting = std::mem::take(&mut batch.waiting);
        let settings = read_settings(batch.options);
        let mut missing: Vec<_> =
            waiting.iter_mut().map(|one| (&**one.table, &mut one.planned)).collect();
        let (reads, in_kernel) = read_missing(&mut missing, &settings);
        self.note_reads(reads, in_kernel);
        for Waiting { source, files, table, planned } in waiting.drain(..) {
            let at = planned.at;
            batch.search_block(table, planned);
            self.search_next_tables(files, at, batch);
            batch.next_sources[at] = source + 1;
            batch.open.push(at);
        }
        batch.waiting = waiting;
        batch.settle();
    }

    /// Searches disjoint tables, each for some keys of the batch: `places` has a table and a key,
    /// in the order of the tables.
    fn search_level_together<'a>(
        &self,
        source: usize,
        files: &'a [Arc<TableFile>],
        places: &[(usize, usize)],
        batch: &mut Batch<'a>,
    ) {
        let keys: Vec<usize> = places.iter().map(|&(_, at)| at).collect();
        let mut rest = keys.as_slice();
        let mut planned = std::mem::take(&mut batch.planned);
        let settings = read_settings(batch.options);
        let groups = places.chunk_by(|a, b| a.0 == b.0);
        let mut parts: Vec<Part<'_, '_>> = groups
            .map(|group| {
                let place = group[0].0;
                let (keys, others) = rest.split_at(group.len());
                rest = others;
                let table =
                    self.tables.open_for(batch.family, &files[place], settings.cache_only).ok();
                Part { place, table, keys, planned: 0..0 }
            })
            .collect();
        plan(&batch.sought, &mut parts, &settings, &mut planned);
        let mut all = planned.drain(..);
        for part in &parts {
            let planned = all.by_ref().take(part.planned.len());
            self.search_table_together(source, &files[part.place..], part, planned, batch);
        }
        drop(all);
        batch.planned = planned;
    }

    fn search_table_together<'a>(
        &self,
        source: usize,
        files: &'a [Arc<TableFile>],
        part: &Part<'a, '_>,
        planned: impl Iterator<Item = Planned>,
        batch: &mut Batch<'a>,
    ) {
        if let Some(table) = part.table {
            for &at in part.keys {
                cover(table, batch.sought[at].target(), batch.options, &mut batch.lookups[at]);
            }
            for planned in planned {
                if planned.is_missing() {
                    batch.next_sources[planned.at] = WAITING;
                    batch.waiting.push(Waiting { source, files, table, planned });
                } else {
                    batch.search_block(table, planned);
                }
            }
        } else {
            planned.for_each(drop);
            part.keys.iter().for_each(|&at| self.search_alone(&files[0], at, batch));
        }
        for &at in part.keys {
            if batch.next_sources[at] != WAITING {
                self.search_next_tables(files, at, batch);
            }
        }
    }

    /// Something went wrong with a table or a block, for one key or another: each by itself gets
    /// its own answer.
    fn search_alone(&self, file: &TableFile, at: usize, batch: &mut Batch<'_>) {
        let (sought, lookup) = (&batch.sought[at], &mut batch.lookups[at]);
        let found = self.search_table(batch.options, batch.family, file, sought, lookup);
        batch.failures[at] = found.err();
    }

    /// Goes on with a key that ends the first of these tables: its versions may straddle it and the
    /// next.
    fn search_next_tables(&self, files: &[Arc<TableFile>], at: usize, batch: &mut Batch<'_>) {
        let Some((first, others)) = files.split_first().filter(|(_, others)| !others.is_empty())
        else {
            return;
        };
        let (sought, lookup) = (&batch.sought[at], &mut batch.lookups[at]);
        let goes_on = batch.failures[at].is_none() && !lookup.has_ended();
        let key = sought.target().user_key();
        if goes_on && batch.family.comparator().compare(first.meta.largest.user_key(), key).is_eq()
        {
            let found = self.search_straddled(batch.options, batch.family, others, sought, lookup);
            batch.failures[at] = found.err();
        }
    }

    /// The values of those outcomes that lead into blob files, if there are several; what cannot be
    /// read is left out, and each by itself gets its own answer. And how many bytes of them nobody
    /// counts.
    fn read_blobs_together(
        &self,
        options: &ReadOptions,
        family: &Family,
        current: &SuperVersion,
        keys: &[&[u8]],
        outcomes: &[Result<Outcome<Value>>],
    ) -> (Vec<Option<Bytes>>, usize) {
        let mut wanted: Vec<(&[u8], &[u8])> = Vec::new();
        let mut whose = Vec::new();
        for (at, outcome) in outcomes.iter().enumerate() {
            if let Ok(Outcome::Found(ValueType::BlobIndex, index)) = outcome {
                wanted.push((keys[at], index));
                whose.push(at);
            }
        }
        if wanted.len() < 2 {
            return (Vec::new(), 0);
        }
        let read =
            self.tables.read_blobs(family, &current.version, &wanted, &read_settings(options));
        self.note_reads(read.reads, read.in_kernel);
        let mut values = vec![None; keys.len()];
        for (at, value) in whose.into_iter().zip(read.values) {
            values[at] = value;
        }
        (values, read.uncounted_bytes)
    }

    pub(super) fn note_reads(&self, together: usize, in_kernel: usize) {
        if together > 1 {
            self.statistics.add(Ticker::ReadsTogether, together as u64);
            self.statistics.add(Ticker::ReadsInKernel, in_kernel as u64);
        }
    }
}

impl Batch<'_> {
    /// For each open key that may be in this source, within the bounds of the table that `choose`
    /// names: that table, and the key.
    fn places(
        &self,
        source: usize,
        files: &[Arc<TableFile>],
        choose: impl Fn(&LookupKey<'_>) -> usize,
    ) -> Vec<(usize, usize)> {
        let place = |&at: &usize| {
            let sought = &self.sought[at];
            let file = choose(sought);
            let is_inside = may_hold(self.family, files.get(file)?, sought.target().user_key());
            is_inside.then_some((file, at))
        };
        let open = self.open.iter().filter(|&&at| self.next_sources[at] <= source);
        let mut places: Vec<_> = open.filter_map(place).collect();
        places.sort_unstable();
        places
    }

    /// Searches the block that a key was planned for; one that could not be read with others is
    /// read now.
    fn search_block(&mut self, table: &Table, planned: Planned) {
        let (at, lookup) = (planned.at, &mut self.lookups[planned.at]);
        let sought = &self.sought[at];
        let settings = read_settings(self.options);
        let before = lookup.versions();
        let visit =
            |sequence, kind, value: ValueRef<'_>| take(lookup, sought, sequence, kind, value);
        let _time = perf::time_table();
        self.failures[at] = table.search_planned(planned, sought, &settings, visit).err();
        note_found(table, &self.lookups[at], before);
    }

    /// Leaves out the keys that no older source matters to.
    fn settle(&mut self) {
        let (lookups, failures) = (&self.lookups, &self.failures);
        self.open.retain(|&at| !lookups[at].is_done() && failures[at].is_none());
    }
}

#[cfg(test)]
mod tests;
