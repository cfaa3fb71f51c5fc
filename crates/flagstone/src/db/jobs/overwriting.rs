//! Whether what is flushed takes the place of something older: a few keys are looked up, before a merge tells for all.
//!
//! Only where memtables hold values that lie in blob files or will: what these leave behind is what blob files may waste, and the
//! keys are few.

use std::sync::Arc;

use crate::base::{InternalIterator, InternalKey, Result, ValueType};
use crate::blob::BlobIndex;
use crate::db::Ticker;
use crate::db::family::Family;
use crate::db::generation::Generation;
use crate::db::jobs::Jobs;
use crate::iter::Outcome;
use crate::options::ReadOptions;

/// How many keys of a memtable are looked up.
const SAMPLES: u64 = 16;

impl Jobs {
    /// Looks up some keys of the newest of these memtables, and notes how many of them overwrite something.
    pub(in crate::db) fn sample_overwrites(&self, family: &Arc<Family>, memtables: &[Arc<Generation>]) {
        let options = family.options.load();
        let bounds_space = options.separates_values() && options.max_space_amplification > 0.0;
        // Smaller ones lie in the memtable itself until it is flushed.
        let is_large =
            |newest: &Generation| newest.is_mostly_blobs() || newest.mean_entry() >= options.smallest_blob();
        let Some(newest) = memtables.last().filter(|newest| bounds_space && is_large(newest)) else { return };
        // What cannot be read is met by those who need it.
        let Ok(share) = self.share_of_overwrites(family, newest) else {
            self.context.statistics.add(Ticker::TablesNotOpened, 1);
            return;
        };
        self.tree.note_share_of_overwrites(family, share);
    }

    /// About how many bytes of values in blob files become garbage with a memtable: some of its keys are looked up in what is
    /// older. Merge operands do not count, as what comes of them takes the place again.
    pub(in crate::db) fn blob_bytes_overwritten(
        &self,
        family: &Arc<Family>,
        memtable: &Generation,
    ) -> Result<u64> {
        let Some(first) = memtable.first_sequence() else { return Ok(0) };
        let (mut looked_up, mut bytes) = (0u64, 0u64);
        Self::look_up_some(memtable, |entry, options| {
            looked_up += 1;
            let (key, before) = (entry.user_key(), first.saturating_sub(1));
            let current = family.current.load();
            let older = self.reader.search(options, family, &current, before, key)?.finish();
            if let Outcome::Found(ValueType::BlobIndex, index) = older
                && entry.value_type() != Some(ValueType::Merge)
            {
                bytes = bytes.saturating_add(BlobIndex::decode(&index)?.record_bytes(key.len()));
            }
            Ok(())
        })?;
        Ok((bytes / looked_up.max(1)).saturating_mul(memtable.num_entries()))
    }

    fn share_of_overwrites(&self, family: &Arc<Family>, memtable: &Generation) -> Result<f64> {
        let (mut looked_up, mut overwrites) = (0u32, 0u32);
        Self::look_up_some(memtable, |entry, options| {
            let (key, before) = (entry.user_key(), entry.sequence().saturating_sub(1));
            let current = family.current.load();
            let older = self.reader.search(options, family, &current, before, key)?.finish();
            looked_up += 1;
            overwrites += u32::from(!matches!(older, Outcome::NotFound));
            Ok(())
        })?;
        Ok(f64::from(overwrites) / f64::from(looked_up.max(1)))
    }

    /// Goes through a memtable and calls `look_up` with [`SAMPLES`] of its entries, or a few more.
    fn look_up_some(
        memtable: &Generation,
        mut look_up: impl FnMut(InternalKey<'_>, &ReadOptions) -> Result<()>,
    ) -> Result<()> {
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let stride = (memtable.num_entries() / SAMPLES).max(1);
        let mut entries = memtable.iter();
        entries.seek_to_first();
        let mut at = 0;
        while entries.valid() {
            if at % stride == 0 {
                look_up(entries.key(), &options)?;
            }
            entries.next();
            at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::compaction::pick::Overwriting;
    use crate::db::Db;
    use crate::env::Env;
    use crate::options::Options;

    /// A database that was only ever added to was overwritten as fast as memory let it: half of its room was gone before the
    /// first merge told that there was anything to collect.
    #[test]
    fn the_first_flush_of_overwrites_tells_that_keys_are_overwritten() {
        tells_what_is_overwritten(20_000);
    }

    /// Values that lie in the memtable until they are flushed were not looked at: a load of 1 KiB took 1.6 times its space before
    /// anybody was delayed.
    #[test]
    fn so_does_one_that_moves_small_values_to_a_blob_file() {
        tells_what_is_overwritten(1000);
    }

    /// What a flush found was not told to those who work out what writers may do: whoever did so for another reason, before the
    /// flush was done, held an invariant for broken (a debug build panicked, with the state lock held).
    #[test]
    fn what_a_flush_finds_is_told_at_once() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        let settings =
            [("create_if_missing", "true"), ("enable_blob_files", "true"), ("min_blob_size", "1000")];
        settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        let db = Db::open("/db", &options).unwrap();
        let put = || (0..16).for_each(|key: u32| db.put(key.to_string(), [7; 2000]).unwrap());
        put();
        db.flush_all().unwrap();
        put();
        let (inner, family) = (db.inner(), &db.default_column_family().0);
        let memtable = family.current.load().mem.clone();
        inner.jobs.sample_overwrites(family, &[memtable]);
        let mut state = inner.tree.lock();
        inner.tree.update_stall(&mut state);
        assert!(state.agenda.pressures.is_felt(family.id));
    }

    fn tells_what_is_overwritten(value_size: usize) {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        let settings = [
            ("create_if_missing", "true"),
            ("enable_blob_files", "true"),
            ("min_blob_size", "1000"),
            ("disable_auto_compactions", "true"),
        ];
        settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        let db = Db::open("/db", &options).unwrap();
        let put = |keys: std::ops::Range<u32>| {
            keys.for_each(|key| db.put(format!("key{key:03}"), vec![7; value_size]).unwrap());
            db.flush_all().unwrap();
            let state = db.inner().tree.lock();
            state.families.values().next().unwrap().overwriting
        };
        let seen = |share| {
            let mut seen = Overwriting::default();
            seen.note_share(share);
            seen
        };
        assert_eq!(put(0..16), seen(0.0));
        assert_eq!(put(100..164), seen(0.0), "beside them");
        assert_eq!(put(0..16), seen(1.0));
        assert_eq!(put(200..216), seen(0.5), "it is believed by halves that there are no more");
    }
}
