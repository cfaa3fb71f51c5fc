//! RocksDB leads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rocksdb::backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BottommostLevelCompaction, BoundColumnFamily, Cache, ColumnFamilyDescriptor, ColumnFamilyTtl,
    CompactOptions, DBAccess, DBPath, DBRawIteratorWithThreadMode, DBWithThreadMode, Env,
    ErrorKind, FlushOptions, IngestExternalFileOptions, MultiThreaded, Options, ReadOptions,
    SnapshotWithThreadMode, SstFileWriter, WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::choices::Settings;
use super::flagstone::{entity_batch, logged, timed_batch};
use super::model::{Edit, Pair};
use super::party::{Access, Depth, How, Opening, Party, Place, Start, Table, View, Walk};
use crate::engine::Result;

type Db = DBWithThreadMode<MultiThreaded>;

struct RocksDb {
    db: Db,
    access: Access,
    has_ttl: bool,
}

struct Past<'a> {
    rocksdb: &'a RocksDb,
    snapshot: SnapshotWithThreadMode<'a, Db>,
}

pub fn open(place: &Place, opening: &Opening) -> Result<Box<dyn Party>> {
    let (mut options, families) =
        if opening.from_file { from_file(&place.directory)? } else { from_settings(opening)? };
    if !place.paths.is_empty() {
        let paths: std::result::Result<Vec<_>, _> =
            place.paths.iter().map(|(path, size)| DBPath::new(path, *size)).collect();
        options.set_db_paths(&paths?);
    }
    let directory = &place.directory;
    let db = match opening.access {
        _ if opening.ttl.is_some() => open_with_ttl(directory, opening, options, families)?,
        Access::Lead => Db::open_cf_descriptors(&options, directory, families)?,
        Access::Read => Db::open_cf_descriptors_read_only(&options, directory, families, false)?,
        Access::Follow => {
            let own = directory.with_extension("follower");
            Db::open_cf_descriptors_as_secondary(&options, directory, &own, families)?
        }
    };
    Ok(Box::new(RocksDb { db, access: opening.access, has_ttl: opening.ttl.is_some() }))
}

/// For reading a copy is opened for writing, as there is no other way in which it heeds the times.
fn open_with_ttl(
    directory: &Path,
    opening: &Opening,
    options: Options,
    mut families: Vec<ColumnFamilyDescriptor>,
) -> Result<Db> {
    let ttl = Duration::from_secs(opening.ttl.unwrap_or_default().into());
    families.iter_mut().for_each(|family| family.set_ttl(ColumnFamilyTtl::SameAsDb));
    if opening.access == Access::Lead {
        return Ok(Db::open_cf_descriptors_with_ttl(&options, directory, families, ttl)?);
    }
    let copy = directory.with_extension("copy");
    super::command::copy_anew(directory, &copy)?;
    Ok(Db::open_cf_descriptors_with_ttl(&options, copy, families, ttl)?)
}

fn parsed(settings: &Settings) -> Result<Options> {
    let text = settings.text_for_rocksdb();
    Ok(Options::default()
        .get_options_from_string(&text)
        .map_err(|error| format!("{text}: {error}"))?)
}

fn from_settings(opening: &Opening) -> Result<(Options, Vec<ColumnFamilyDescriptor>)> {
    let families = opening.families.iter();
    let families: Result<_> =
        families.map(|(name, own)| Ok(ColumnFamilyDescriptor::new(name, parsed(own)?))).collect();
    Ok((parsed(&opening.database)?, families?))
}

fn from_file(directory: &Path) -> Result<(Options, Vec<ColumnFamilyDescriptor>)> {
    Ok(Options::load_latest(directory, Env::new()?, false, Cache::new_lru_cache(1 << 20))?)
}

/// Whether values that were written to blob files directly keep it from being copied.
fn wants_a_flush(error: &rocksdb::Error) -> bool {
    error.to_string().contains("Retry with flush enabled")
}

/// Restores the newest backup.
pub fn restore(backup: &Path, restored: &Path) -> Result<()> {
    let mut engine = BackupEngine::open(&BackupEngineOptions::new(backup)?, &Env::new()?)?;
    Ok(engine.restore_from_latest_backup(restored, restored, &RestoreOptions::default())?)
}

impl RocksDb {
    fn family(&self, name: &str) -> Result<Arc<BoundColumnFamily<'_>>> {
        Ok(self.db.cf_handle(name).ok_or_else(|| format!("there is no family '{name}'"))?)
    }

    fn get_with(&self, read: &ReadOptions, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.db.get_cf_opt(&self.family(family)?, key, read)?)
    }

    fn multi_get_with(
        &self,
        read: &ReadOptions,
        family: &str,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        if self.has_ttl {
            // The times would be left at the values.
            return keys.iter().map(|key| self.get_with(read, family, key)).collect();
        }
        let found = self.db.batched_multi_get_cf_opt(&self.family(family)?, keys, false, read);
        found.into_iter().map(|value| Ok(value?.map(|value| value.to_vec()))).collect()
    }

    fn walk_with(&self, mut read: ReadOptions, family: &str, walk: &Walk) -> Result<Vec<Pair>> {
        if let Some(lower) = &walk.lower {
            read.set_iterate_lower_bound(lower.clone());
        }
        if let Some(upper) = &walk.upper {
            read.set_iterate_upper_bound(upper.clone());
        }
        read.set_total_order_seek(!walk.in_prefix);
        read.set_prefix_same_as_start(walk.in_prefix);
        go(self.db.raw_iterator_cf_opt(&self.family(family)?, read), walk)
    }
}

fn go<D: DBAccess>(mut iter: DBRawIteratorWithThreadMode<'_, D>, walk: &Walk) -> Result<Vec<Pair>> {
    match &walk.start {
        Start::First => iter.seek_to_first(),
        Start::Last => iter.seek_to_last(),
        Start::Seek(key) => iter.seek(key),
        Start::SeekForPrev(key) => iter.seek_for_prev(key),
    }
    let (mut found, mut moves) = (Vec::new(), walk.moves.iter());
    while let Some((key, value)) = iter.item() {
        found.push((key.to_vec(), value.to_vec()));
        match moves.next() {
            Some(true) => iter.next(),
            Some(false) => iter.prev(),
            None => break,
        }
    }
    iter.status()?;
    Ok(found)
}

impl View for RocksDb {
    fn get(&self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(&ReadOptions::default(), family, key)
    }

    fn multi_get(&self, family: &str, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        self.multi_get_with(&ReadOptions::default(), family, keys)
    }

    fn walk(&self, family: &str, walk: &Walk) -> Result<Vec<Pair>> {
        self.walk_with(ReadOptions::default(), family, walk)
    }
}

impl Past<'_> {
    fn read(&self) -> ReadOptions {
        let mut read = ReadOptions::default();
        read.set_snapshot(&self.snapshot);
        read
    }
}

impl View for Past<'_> {
    fn get(&self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.rocksdb.get_with(&self.read(), family, key)
    }

    fn multi_get(&self, family: &str, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        self.rocksdb.multi_get_with(&self.read(), family, keys)
    }

    fn walk(&self, family: &str, walk: &Walk) -> Result<Vec<Pair>> {
        self.rocksdb.walk_with(self.read(), family, walk)
    }
}

/// As `TransactionDB` writes what was not prepared: with a record without contents in front, behind
/// the sequence number and the count, and something for who reads the log.
fn committed(batch: &WriteBatch) -> WriteBatch {
    const HEADER: usize = 12;
    const NOOP: u8 = 0x0d;
    let (header, records) = batch.data().split_at(HEADER);
    let mut marked = WriteBatch::from_data(&[header, &[NOOP], records].concat());
    marked.put_log_data("committed");
    marked
}

/// Writes a table to be taken in.
fn table(edits: &[Edit], options: &Options, index: usize, scratch: &Path) -> Result<PathBuf> {
    let file = scratch.join(format!("{index}.sst"));
    let mut writer = SstFileWriter::create(options);
    writer.open(&file)?;
    for edit in edits {
        match edit {
            Edit::Put { key, value } => writer.put(key, value)?,
            Edit::Delete { key } => writer.delete(key)?,
            Edit::Merge { key, operand } => writer.merge(key, operand)?,
            Edit::DeleteRange { begin, end } => writer.delete_range(begin, end)?,
            other => return Err(format!("no table is written with {other:?}").into()),
        }
    }
    writer.finish()?;
    Ok(file)
}

impl Party for RocksDb {
    fn families(&self) -> Result<Vec<String>> {
        Ok(Db::list_cf(&Options::default(), self.db.path())?)
    }

    fn write(&self, batch: &[(String, Edit)], how: How) -> Result<()> {
        let mut written = WriteBatch::default();
        for (name, edit) in batch {
            let family = self.family(name)?;
            match edit {
                Edit::Put { key, value } => written.put_cf(&family, key, value),
                // Its C interface has no call for it, but takes batches as they are in the WAL.
                Edit::PutEntity { key, columns } if batch.len() == 1 && name == super::DEFAULT => {
                    written = WriteBatch::from_data(&entity_batch(key, columns)?);
                }
                Edit::TimedPut { key, value, time }
                    if batch.len() == 1 && name == super::DEFAULT =>
                {
                    written = WriteBatch::from_data(&timed_batch(key, value, *time)?);
                }
                Edit::PutEntity { .. } | Edit::TimedPut { .. } => {
                    return Err("this has a batch of the default family".into());
                }
                Edit::Delete { key } => written.delete_cf(&family, key),
                // `DBWithTTL` takes none in a batch.
                Edit::SingleDelete { key } if self.has_ttl => written.delete_cf(&family, key),
                Edit::SingleDelete { key } => written.single_delete_cf(&family, key),
                Edit::Merge { key, operand } => written.merge_cf(&family, key, operand),
                Edit::DeleteRange { begin, end } => written.delete_range_cf(&family, begin, end),
            }
        }
        if how.committed && !self.has_ttl {
            written = committed(&written);
        }
        let mut options = WriteOptions::default();
        options.set_sync(how.sync);
        options.disable_wal(how.unlogged);
        Ok(self.db.write_opt(written, &options)?)
    }

    fn flush(&self, family: Option<&str>) -> Result<()> {
        let names = family.map_or_else(|| self.families(), |name| Ok(vec![name.to_string()]))?;
        let families: Result<Vec<_>> = names.iter().map(|name| self.family(name)).collect();
        let families = families?;
        let families: Vec<_> = families.iter().collect();
        Ok(self.db.flush_cfs_opt(&families, &FlushOptions::default())?)
    }

    fn flush_wal(&self) -> Result<()> {
        Ok(self.db.flush_wal(false)?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn compact(&self, family: &str, [begin, end]: [Option<&[u8]>; 2], depth: Depth) -> Result<()> {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(if depth.to_the_bottom {
            BottommostLevelCompaction::Force
        } else {
            BottommostLevelCompaction::IfHaveCompactionFilter
        });
        options.set_change_level(depth.then_to.is_some());
        options.set_target_level(depth.then_to.unwrap_or(-1));
        self.db.compact_range_cf_opt(&self.family(family)?, begin, end, &options);
        Ok(())
    }

    fn delete_files(&self, family: &str, begin: &[u8], end: &[u8]) -> Result<()> {
        Ok(self.db.delete_file_in_range_cf(&self.family(family)?, begin, end)?)
    }

    fn compact_files(&self, _family: &str, _seed: u64) -> Result<bool> {
        Ok(false)
    }

    fn create_family(&self, name: &str, settings: &Settings) -> Result<()> {
        Ok(self.db.create_cf(name, &parsed(settings)?)?)
    }

    fn drop_family(&self, name: &str) -> Result<()> {
        Ok(self.db.drop_cf(name)?)
    }

    fn set_options(&self, family: &str, settings: &Settings) -> Result<()> {
        let changes = settings.own_of_rocksdb();
        let changes: Vec<_> =
            changes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Ok(self.db.set_options_cf(&self.family(family)?, &changes)?)
    }

    fn ingest(
        &self,
        family: &str,
        tables: &[Vec<Edit>],
        settings: &Settings,
        scratch: &Path,
    ) -> Result<()> {
        let options = parsed(settings)?;
        let files: Result<Vec<_>> = tables
            .iter()
            .enumerate()
            .map(|(index, edits)| table(edits, &options, index, scratch))
            .collect();
        let files = files?;
        let mut how = IngestExternalFileOptions::default();
        how.set_move_files(tables.iter().map(Vec::len).sum::<usize>().is_multiple_of(2));
        let family = self.family(family)?;
        let take_in =
            || self.db.ingest_external_file_cf_opts(&family, &how, files.iter().collect());
        match take_in() {
            // It met a memtable that an atomic flush had not come to yet, and wants to be asked
            // again.
            Err(error) if error.kind() == ErrorKind::TryAgain => {
                self.flush(None)?;
                take_in()?;
            }
            taken => taken?,
        }
        Ok(())
    }

    fn checkpoint(&self, flushed: bool, directory: &Path) -> Result<()> {
        let copy = Checkpoint::new(&self.db)?;
        let size = if flushed { 0 } else { u64::MAX };
        match copy.create_checkpoint_with_log_size(directory, size) {
            Err(error) if wants_a_flush(&error) => {
                Ok(copy.create_checkpoint_with_log_size(directory, 0)?)
            }
            done => Ok(done?),
        }
    }

    fn back_up(&self, flushed: bool, backup: &Path) -> Result<()> {
        let mut engine = BackupEngine::open(&BackupEngineOptions::new(backup)?, &Env::new()?)?;
        match engine.create_new_backup_flush(&self.db, flushed) {
            Err(error) if wants_a_flush(&error) => {
                Ok(engine.create_new_backup_flush(&self.db, true)?)
            }
            done => Ok(done?),
        }
    }

    fn catch_up(&mut self) -> Result<()> {
        Ok(self.db.try_catch_up_with_primary()?)
    }

    fn snapshot(&self) -> Box<dyn View + '_> {
        Box::new(Past { rocksdb: self, snapshot: self.db.snapshot() })
    }

    fn logged(&self) -> Result<Vec<Pair>> {
        let mut all = Vec::new();
        for update in self.db.get_updates_since(0)? {
            all.extend(logged(update?.1.data())?);
        }
        Ok(all)
    }

    fn last_sequence(&self) -> u64 {
        self.db.latest_sequence_number()
    }

    fn tables(&self) -> Result<Vec<Table>> {
        let files = self.db.live_files()?.into_iter();
        let tables = files.map(|file| {
            let number = file.name.trim_start_matches('/').trim_end_matches(".sst");
            Ok(Table {
                family: file.column_family_name,
                level: usize::try_from(file.level)?,
                number: number.parse()?,
                size: file.size as u64,
                smallest: file.start_key.unwrap_or_default(),
                largest: file.end_key.unwrap_or_default(),
            })
        });
        let mut tables: Vec<_> = tables.collect::<Result<_>>()?;
        tables.sort();
        Ok(tables)
    }

    fn verify(&self) -> Result<()> {
        // The crate has no VerifyChecksum; a reading past the cache checks the same blocks, but for
        // filters.
        for family in self.families()? {
            let mut read = ReadOptions::default();
            read.set_verify_checksums(true);
            read.fill_cache(false);
            let all = Walk {
                lower: None,
                upper: None,
                start: Start::First,
                moves: vec![true; 1_000_000],
                in_prefix: false,
            };
            self.walk_with(read, &family, &all)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        match self.access {
            // A compaction that failed says so here.
            Access::Lead => self.settle(),
            Access::Read | Access::Follow => Ok(()),
        }
    }
}
