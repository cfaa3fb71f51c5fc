//! Flagstone leads.

use std::path::{Path, PathBuf};

use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::base::Code;
use flagstone::batch::{BatchView, Operation, WriteBatch};
use flagstone::db::{ColumnFamily, Db, Iter, SalvagedKind, Secondary, TtlDb, TtlIter, TtlOptions};
use flagstone::env::Env;
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{
    BottommostLevelCompaction, ColumnFamilyOptions, CompactFilesOptions, CompactRangeOptions,
    FlushOptions, IngestExternalFileOptions, LoadedOptions, Options, ReadOptions, WriteOptions,
    load_latest,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::choices::Settings;
use super::model::{Edit, Pair};
use super::party::{Access, Depth, How, Opening, Party, Place, Start, Table, View, Walk};
use crate::engine::Result;

struct Flagstone {
    db: Db,
    /// The handle over it, if values have a time to live.
    ttl: Option<TtlDb>,
    /// What shows it, if another engine leads.
    secondary: Option<Secondary>,
}

struct Past<'a> {
    flagstone: &'a Flagstone,
    read: ReadOptions,
}

/// With what a database is opened: its options, and its families with theirs.
type Prepared = (Options, Vec<(String, ColumnFamilyOptions)>);

fn prepared(place: &Place, opening: &Opening) -> Result<Prepared> {
    let (mut options, mut families) = if opening.from_file {
        from_file(&place.directory, opening)?
    } else {
        from_settings(opening)?
    };
    if !place.paths.is_empty() {
        let path = |(path, size): &(std::path::PathBuf, u64)| {
            format!("{{path={};target_size={size}}}", path.display())
        };
        let paths: Vec<_> = place.paths.iter().map(path).collect();
        options.set("db_paths", &paths.join(":"))?;
    }
    if opening.for_a_crash {
        // What was written to blob files at the commit RocksDB would not find after a crash.
        for (_, family) in &mut families {
            family.set("blob_write_mode", "flush")?;
        }
    }
    Ok((options, families))
}

pub fn open(place: &Place, opening: &Opening) -> Result<Box<dyn Party>> {
    let (options, families) = prepared(place, opening)?;
    let listed: Vec<_> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    if let Some(seconds) = opening.ttl {
        return open_with_ttl(place, opening.access, &options, families, seconds);
    }
    let path = &place.directory;
    let db = match opening.access {
        Access::Lead => Db::open_with_families(path, &options, &listed)?,
        Access::Read => Db::open_read_only_with_families(path, &options, &listed)?,
        Access::Follow => {
            let own = path.with_extension("follower");
            let secondary = Secondary::open_with_families(path, own, &options, &listed)?;
            let db = secondary.now();
            return Ok(Box::new(Flagstone { db, ttl: None, secondary: Some(secondary) }));
        }
    };
    Ok(Box::new(Flagstone { db, ttl: None, secondary: None }))
}

fn ttl_options(seconds: u32) -> TtlOptions {
    TtlOptions { ttl_seconds: seconds.into(), strict_reads: true, eternal_values: false }
}

fn open_with_ttl(
    place: &Place,
    access: Access,
    options: &Options,
    families: Vec<(String, ColumnFamilyOptions)>,
    seconds: u32,
) -> Result<Box<dyn Party>> {
    let listed: Vec<_> = families
        .iter()
        .map(|(name, family)| (name.as_str(), family.clone(), ttl_options(seconds)))
        .collect();
    let ttl = match access {
        Access::Lead => TtlDb::open_with_families(&place.directory, options, &listed)?,
        Access::Read => TtlDb::open_read_only_with_families(&place.directory, options, &listed)?,
        Access::Follow => return Err("values with a time to live are not followed".into()),
    };
    Ok(Box::new(Flagstone { db: ttl.base().clone(), ttl: Some(ttl), secondary: None }))
}

/// Builds a new database from the files of one that is healthy.
pub fn salvage(place: &Place, opening: &Opening, target: &Path) -> Result<()> {
    let (options, families) = prepared(place, opening)?;
    let listed: Vec<_> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let report = flagstone::db::salvage(&place.directory, target, &options, &listed, &mut |_| {})?;
    let recycles = opening.database.get("recycle_log_file_num") != "0";
    let wals = report.files.iter().filter(|file| file.kind == SalvagedKind::Wal);
    let newest = wals.map(|wal| wal.path.as_path()).max();
    // Behind the last record of a recycled log may be a part of an older one, which looks damaged.
    let is_end = recycles
        && report.places_lost() == 1
        && report.values_lost() == 0
        && report.losses.iter().all(|loss| loss.error.path() == newest);
    if report.is_complete() || is_end {
        Ok(())
    } else {
        Err(format!("salvage finds that something is lost: {report:#?}").into())
    }
}

/// Restores the newest backup.
pub fn restore(backup: &Path, restored: &Path) -> Result<()> {
    BackupEngine::open(BackupEngineOptions::new(backup))?.restore_latest(restored)?;
    Ok(())
}

/// Writes a table to be taken in.
fn table(
    edits: &[Edit],
    options: &SstFileWriterOptions,
    index: usize,
    scratch: &Path,
) -> Result<PathBuf> {
    let file = scratch.join(format!("{index}.sst"));
    let mut writer = SstFileWriter::create(&file, options)?;
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

fn from_settings(opening: &Opening) -> Result<Prepared> {
    let mut options = Options::default();
    for (name, value) in &opening.database.own_of_flagstone() {
        options.set(name, value).map_err(|error| format!("{name}={value}: {error}"))?;
    }
    let families = opening.families.iter();
    let families: Result<_> =
        families.map(|(name, own)| Ok((name.clone(), family(own)?))).collect();
    Ok((options, families?))
}

fn family(settings: &Settings) -> Result<ColumnFamilyOptions> {
    let mut options = ColumnFamilyOptions::default();
    for (name, value) in &settings.own_of_flagstone() {
        options.set(name, value).map_err(|error| format!("{name}={value}: {error}"))?;
    }
    Ok(options)
}

fn from_file(directory: &Path, opening: &Opening) -> Result<Prepared> {
    let loaded = load_latest(&Env::default(), directory)?.ok_or("there is no OPTIONS file")?;
    if let Some(unknown) = loaded.warnings().iter().find(|warning| warning.contains("not known")) {
        return Err(format!("the OPTIONS file: {unknown}").into());
    }
    let LoadedOptions { options, families, .. } = loaded;
    let mut listed: Vec<_> = families.iter().map(|(name, _)| name.as_str()).collect();
    let mut wanted: Vec<_> = opening.families.iter().map(|(name, _)| name.as_str()).collect();
    listed.sort_unstable();
    wanted.sort_unstable();
    if listed != wanted {
        return Err(format!("the OPTIONS file has families {listed:?}, expected {wanted:?}").into());
    }
    Ok((options, families))
}

impl Flagstone {
    fn family(&self, name: &str) -> Result<ColumnFamily> {
        Ok(self.db.column_family(name).ok_or_else(|| format!("there is no family '{name}'"))?)
    }

    fn get_with(&self, read: &ReadOptions, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let family = self.family(family)?;
        let found = match &self.ttl {
            Some(ttl) => ttl.get_with(read, &family, key)?,
            None => self.db.get_with(read, &family, key)?,
        };
        Ok(found.map(|value| value.to_vec()))
    }

    fn multi_get_with(
        &self,
        read: &ReadOptions,
        family: &str,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let family = self.family(family)?;
        let found = match &self.ttl {
            Some(ttl) => ttl.multi_get_with(read, &family, keys),
            None => self.db.multi_get_with(read, &family, keys),
        };
        found.into_iter().map(|value| Ok(value?.map(|value| value.to_vec()))).collect()
    }

    fn walk_with(&self, read: &ReadOptions, family: &str, walk: &Walk) -> Result<Vec<Pair>> {
        let read = ReadOptions {
            iterate_lower_bound: walk.lower.clone(),
            iterate_upper_bound: walk.upper.clone(),
            total_order_seek: !walk.in_prefix,
            prefix_same_as_start: walk.in_prefix,
            ..read.clone()
        };
        let family = self.family(family)?;
        match &self.ttl {
            Some(ttl) => ttl.iter_cf(&family, &read)?.go(walk),
            None => self.db.iter_cf(&family, &read)?.go(walk),
        }
    }
}

/// What is said where the levels in between are not empty, or there are none.
fn stays(code: Code) -> bool {
    [Code::NotSupported, Code::InvalidArgument, Code::Aborted].contains(&code)
}

/// The two kinds of cursors.
trait Cursor {
    fn go(self, walk: &Walk) -> Result<Vec<Pair>>;
}

macro_rules! goes {
    ($cursor:ty) => {
        impl Cursor for $cursor {
            fn go(mut self, walk: &Walk) -> Result<Vec<Pair>> {
                match &walk.start {
                    Start::First => self.seek_to_first(),
                    Start::Last => self.seek_to_last(),
                    Start::Seek(key) => self.seek(key),
                    Start::SeekForPrev(key) => self.seek_for_prev(key),
                }
                let (mut found, mut moves) = (Vec::new(), walk.moves.iter());
                while self.valid() {
                    let key = self.key().to_vec();
                    found.push((key, self.value()?.to_vec()));
                    match moves.next() {
                        Some(true) => self.next(),
                        Some(false) => self.prev(),
                        None => break,
                    }
                }
                self.status()?;
                Ok(found)
            }
        }
    };
}
goes!(Iter);
goes!(TtlIter);

impl View for Flagstone {
    fn get(&self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(&ReadOptions::default(), family, key)
    }

    fn multi_get(&self, family: &str, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        self.multi_get_with(&ReadOptions::default(), family, keys)
    }

    fn walk(&self, family: &str, walk: &Walk) -> Result<Vec<Pair>> {
        self.walk_with(&ReadOptions::default(), family, walk)
    }
}

impl View for Past<'_> {
    fn get(&self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.flagstone.get_with(&self.read, family, key)
    }

    fn multi_get(&self, family: &str, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        self.flagstone.multi_get_with(&self.read, family, keys)
    }

    fn walk(&self, family: &str, walk: &Walk) -> Result<Vec<Pair>> {
        self.flagstone.walk_with(&self.read, family, walk)
    }
}

impl Party for Flagstone {
    fn families(&self) -> Result<Vec<String>> {
        Ok(self.db.column_families().iter().map(|family| family.name().to_string()).collect())
    }

    fn write(&self, batch: &[(String, Edit)], how: How) -> Result<()> {
        if let ([(name, Edit::Put { key, value })], true, None) = (batch, how.streamed, &self.ttl) {
            let options = WriteOptions { sync: how.sync, ..WriteOptions::default() };
            let mut stream =
                self.db.put_stream(&self.family(name)?, key, &options)?.with_buffer(10);
            value.chunks(100).try_for_each(|piece| stream.append(piece))?;
            return Ok(stream.commit()?);
        }
        let mut written = WriteBatch::new();
        for (name, edit) in batch {
            match edit {
                // So does RocksDB then; a key must not have deletions of both kinds.
                Edit::SingleDelete { key } if self.ttl.is_some() => {
                    written.delete_cf(&self.family(name)?, key)?;
                }
                _ => add(&mut written, &self.family(name)?, edit)?,
            }
        }
        let how =
            WriteOptions { sync: how.sync, disable_wal: how.unlogged, ..WriteOptions::default() };
        match &self.ttl {
            Some(ttl) => ttl.write_with(&how, &written)?,
            None => self.db.write_with(&how, written)?,
        }
        Ok(())
    }

    fn flush(&self, family: Option<&str>) -> Result<()> {
        match family {
            Some(family) => Ok(self.db.flush(&self.family(family)?, &FlushOptions::default())?),
            None => Ok(self.db.flush_all()?),
        }
    }

    fn flush_wal(&self) -> Result<()> {
        Ok(self.db.flush_wal(false)?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.db.wait_for_compactions()?)
    }

    fn compact(&self, family: &str, [begin, end]: [Option<&[u8]>; 2], depth: Depth) -> Result<()> {
        let bottommost_level_compaction = if depth.to_the_bottom {
            BottommostLevelCompaction::Force
        } else {
            BottommostLevelCompaction::IfHaveCompactionFilter
        };
        let options = CompactRangeOptions {
            bottommost_level_compaction,
            change_level: depth.then_to.is_some(),
            target_level: depth.then_to.unwrap_or(-1),
            ..CompactRangeOptions::default()
        };
        match self.db.compact_range(&self.family(family)?, begin, end, &options) {
            // It is compacted, and stays where it is.
            Err(error) if depth.then_to.is_some() && stays(error.code()) => Ok(()),
            done => Ok(done?),
        }
    }

    fn delete_files(&self, family: &str, begin: &[u8], end: &[u8]) -> Result<()> {
        Ok(self.db.delete_files_in_ranges(
            &self.family(family)?,
            &[(Some(begin), Some(end))],
            true,
        )?)
    }

    fn compact_files(&self, family: &str, seed: u64) -> Result<bool> {
        let of_family = self.family(family)?;
        let levels: usize =
            of_family.options().get("num_levels").ok_or("it has levels")?.parse()?;
        let mut random = SmallRng::seed_from_u64(seed);
        let files = self.db.live_files();
        let tables =
            files.iter().filter(|file| file.column_family == family && file.level.is_some());
        let chosen: Vec<_> = tables.filter(|_| random.random_bool(0.4)).collect();
        let Some(deepest) = chosen.iter().filter_map(|file| file.level).max() else {
            return Ok(false);
        };
        let to = random.random_range(deepest..levels.max(deepest + 1));
        let numbers: Vec<_> = chosen.iter().map(|file| file.number).collect();
        match self.db.compact_files(&of_family, &numbers, to, &CompactFilesOptions::default()) {
            // Another compaction has got there first.
            Err(error) if [Code::Aborted, Code::InvalidArgument].contains(&error.code()) => {
                Ok(false)
            }
            done => Ok(done.map(|_| true)?),
        }
    }

    fn create_family(&self, name: &str, settings: &Settings) -> Result<()> {
        match &self.ttl {
            Some(ttl) => {
                drop(ttl.create_column_family(name, &family(settings)?, ttl_options(0))?)
            }
            None => drop(self.db.create_column_family(name, &family(settings)?)?),
        }
        Ok(())
    }

    fn drop_family(&self, name: &str) -> Result<()> {
        Ok(self.db.drop_column_family(&self.family(name)?)?)
    }

    fn set_options(&self, family: &str, settings: &Settings) -> Result<()> {
        let changes = settings.own_of_flagstone();
        let changes: Vec<_> =
            changes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Ok(self.db.set_options(&self.family(family)?, &changes)?)
    }

    fn ingest(
        &self,
        family: &str,
        tables: &[Vec<Edit>],
        settings: &Settings,
        scratch: &Path,
    ) -> Result<()> {
        let options = SstFileWriterOptions::new(&self::family(settings)?);
        let tables = tables.iter().enumerate();
        let files: Result<Vec<_>> =
            tables.map(|(index, edits)| table(edits, &options, index, scratch)).collect();
        let files = files?;
        let how = IngestExternalFileOptions {
            move_files: files.len().is_multiple_of(2),
            ..IngestExternalFileOptions::default()
        };
        Ok(self.db.ingest_external_files(&self.family(family)?, &files, &how)?)
    }

    fn checkpoint(&self, flushed: bool, directory: &Path) -> Result<()> {
        let done = if flushed {
            self.db.checkpoint(directory)
        } else {
            self.db.checkpoint_with_wals(directory)
        };
        Ok(done?)
    }

    fn back_up(&self, flushed: bool, backup: &Path) -> Result<()> {
        let mut how = CreateBackupOptions::default();
        how.flush_before_backup = flushed;
        let engine = BackupEngine::open(BackupEngineOptions::new(backup))?;
        engine.create_new_backup(&self.db, &how)?;
        Ok(())
    }

    fn catch_up(&mut self) -> Result<()> {
        let secondary = self.secondary.as_ref().ok_or("it does not follow")?;
        secondary.catch_up()?;
        self.db = secondary.now();
        Ok(())
    }

    fn snapshot(&self) -> Box<dyn View + '_> {
        let read = ReadOptions { snapshot: Some(self.db.snapshot()), ..ReadOptions::default() };
        Box::new(Past { flagstone: self, read })
    }

    fn logged(&self) -> Result<Vec<Pair>> {
        let Some(first) = self.db.oldest_update()? else { return Ok(Vec::new()) };
        let (mut all, mut updates) = (Vec::new(), self.db.get_updates_since(first)?);
        while let Some(update) = updates.next_update()? {
            all.extend(logged(&update.batch.into_bytes())?);
        }
        Ok(all)
    }

    fn last_sequence(&self) -> u64 {
        self.db.latest_sequence_number()
    }

    fn tables(&self) -> Result<Vec<Table>> {
        let files = self.db.live_files().into_iter();
        let mut tables: Vec<_> = files
            .filter_map(|file| {
                Some(Table {
                    family: file.column_family,
                    level: file.level?,
                    number: file.number.0,
                    size: file.size,
                    smallest: file.smallest,
                    largest: file.largest,
                })
            })
            .collect();
        tables.sort();
        Ok(tables)
    }

    fn verify(&self) -> Result<()> {
        let (read, listed) = (self.db.verify(|_| {}).faults, self.db.check()?.faults);
        match (read.first(), listed.first()) {
            (None, None) => Ok(()),
            (Some(fault), _) | (_, Some(fault)) => Err(format!("verify: {fault:?}").into()),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}

/// A batch with nothing but an entity of the default family, in the form that both engines have in
/// their WALs.
pub fn entity_batch(key: &[u8], columns: &[Pair]) -> Result<Vec<u8>> {
    let mut batch = WriteBatch::new();
    batch.put_encoded_entity(flagstone::base::ColumnFamilyId::DEFAULT, key, entity(columns))?;
    Ok(batch.into_bytes())
}

/// What is in a batch.
pub fn logged(batch: &[u8]) -> Result<Vec<Pair>> {
    let edit = |operation| {
        Ok(match operation? {
            Operation::Put { key, value, .. } => {
                Some(Edit::Put { key: key.to_vec(), value: value.to_vec() })
            }
            Operation::Delete { key, .. } => Some(Edit::Delete { key: key.to_vec() }),
            Operation::SingleDelete { key, .. } => Some(Edit::SingleDelete { key: key.to_vec() }),
            Operation::Merge { key, operand, .. } => {
                Some(Edit::Merge { key: key.to_vec(), operand: operand.to_vec() })
            }
            Operation::DeleteRange { begin, end, .. } => {
                Some(Edit::DeleteRange { begin: begin.to_vec(), end: end.to_vec() })
            }
            Operation::LogData(_) | Operation::Noop => None,
            other => return Err(format!("the log has {other:?}").into()),
        })
    };
    let edits = BatchView::parse(batch)?.iter().map(edit);
    edits.filter_map(|edit| edit.map(|edit| edit.map(|edit| edit.logged())).transpose()).collect()
}

/// A batch with nothing but a put of the default family that says when its value was written.
pub fn timed_batch(key: &[u8], value: &[u8], time: u64) -> Result<Vec<u8>> {
    const HEADER: usize = 12;
    const TIMED_PUT: u8 = 0x18;
    let mut batch = WriteBatch::new();
    // But for the tag it is a put of what is longer by the time.
    batch.put(key, [value, &time.to_le_bytes()].concat())?;
    let mut bytes = batch.into_bytes();
    bytes[HEADER] = TIMED_PUT;
    Ok(bytes)
}

/// Version 1: the number of columns, the name of each and how long its value is, the values.
fn entity(columns: &[Pair]) -> Vec<u8> {
    let small = |length: usize| {
        u8::try_from(length).expect("names, values and their number are small") & 0x7f
    };
    let mut bytes = vec![1, small(columns.len())];
    for (name, value) in columns {
        bytes.push(small(name.len()));
        bytes.extend_from_slice(name);
        bytes.push(small(value.len()));
    }
    columns.iter().for_each(|(_, value)| bytes.extend_from_slice(value));
    bytes
}

fn add(batch: &mut WriteBatch, family: &ColumnFamily, edit: &Edit) -> Result<()> {
    match edit {
        Edit::Put { key, value } | Edit::TimedPut { key, value, .. } => {
            batch.put_cf(family, key, value)?
        }
        Edit::PutEntity { key, columns } => {
            batch.put_encoded_entity(family, key, entity(columns))?
        }
        Edit::Delete { key } => batch.delete_cf(family, key)?,
        Edit::SingleDelete { key } => batch.single_delete_cf(family, key)?,
        Edit::Merge { key, operand } => batch.merge_cf(family, key, operand)?,
        Edit::DeleteRange { begin, end } => batch.delete_range_cf(family, begin, end)?,
    }
    Ok(())
}
