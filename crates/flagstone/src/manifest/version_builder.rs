//! Edits applied to a version.
//!
//! 1. Within one edit: blob additions, blob garbage, deleted tables, new tables. A table deleted
//!    and added again moves.
//! 2. If any table's epoch is unknown in what is read back, all are inferred: the deepest level is
//!    the oldest, then upwards; level 0 by seqno.
//! 3. Level 0 is ordered by epoch, deeper levels by key.
//! 4. Blob files older than every linked one go, and so do those without links that are all
//!    garbage.
//! 5. What comes out is checked. RocksDB opens a family *empty* and deletes its tables if these
//!    rules are broken, so a change that breaks them must fail here, before it is written.
//!
//! A change that we write must satisfy both RocksDB 11, which orders level 0 by epoch, and 7.8,
//! which orders it by seqno, where history allows that: tables that were taken in may have been
//! merged. What an existing MANIFEST says is held only to RocksDB 11's rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::edit::VersionEdit;
use super::live::{BlobFile, ObsoleteFiles, TableFile};
use super::metadata::{BlobFileAddition, BlobFileGarbage, FileMetadata};
use super::version::{BlobFileState, Version, newest_by_epoch, newest_by_seqno, user_keys_overlap};
use crate::base::{
    DataPaths, Error, FileNumber, InternalKeyBuf, InternalKeyComparator, Remedy, Result, counted,
    form, timestamp,
};

/// Nobody has come so far, one table after the other.
const EPOCH_MAX: u64 = 1 << 62;

/// A version in the making.
#[derive(Clone)]
pub struct VersionBuilder {
    comparator: InternalKeyComparator,
    paths: Arc<DataPaths>,
    num_levels: usize,
    tables: HashMap<FileNumber, Table>,
    /// Tables of the base version that were deleted; one that is added again keeps its identity.
    removed: HashMap<FileNumber, Arc<TableFile>>,
    blob_files: BTreeMap<FileNumber, BlobFileState>,
    queue: Arc<ObsoleteFiles>,
    /// Of the base version, newest first.
    level_zero: Vec<Arc<TableFile>>,
    /// Whether new files are our own work, to be held to the rules of RocksDB 7.8 too.
    for_writing: bool,
    /// Whether tables that are added have no timestamps, although the family has.
    are_unstamped: bool,
}

#[derive(Clone)]
struct Table {
    level: usize,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// Part of the base version.
    Base(Arc<TableFile>),
    /// Came with an edit.
    Edit(Box<FileMetadata>),
}

impl Source {
    fn meta(&self) -> &FileMetadata {
        match self {
            Self::Base(file) => &file.meta,
            Self::Edit(meta) => meta,
        }
    }
}

impl VersionBuilder {
    /// Starts from `base` to make a version that will be written.
    pub fn new(base: &Version, queue: Arc<ObsoleteFiles>) -> Self {
        let table = |(level, file): (usize, &Arc<TableFile>)| {
            (file.number(), Table { level, source: Source::Base(file.clone()) })
        };
        Self {
            comparator: base.comparator.clone(),
            paths: base.paths.clone(),
            num_levels: base.levels.len(),
            tables: base.files().map(table).collect(),
            removed: HashMap::new(),
            blob_files: base.blob_files.clone(),
            queue,
            level_zero: base.levels[0].clone(),
            for_writing: true,
            are_unstamped: false,
        }
    }

    /// Starts from an empty version to read back what was written, by whomever.
    pub fn for_recovery(empty: &Version, queue: Arc<ObsoleteFiles>) -> Self {
        Self { for_writing: false, ..Self::new(empty, queue) }
    }

    /// Applies the file changes of `edit`.
    ///
    /// # Errors
    /// `Corruption` if the edit does not fit; the builder is then of no further use.
    pub fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        for addition in &edit.blob_file_additions {
            self.add_blob_file(addition)?;
        }
        for garbage in &edit.blob_file_garbages {
            self.add_garbage(garbage)?;
        }
        for &(level, number) in &edit.deleted_files {
            self.delete_table(level, number)?;
        }
        for (level, file) in &edit.new_files {
            self.add_table(*level, file)?;
        }
        Ok(())
    }

    fn add_blob_file(&mut self, addition: &BlobFileAddition) -> Result<()> {
        let number = addition.number;
        if self.blob_files.contains_key(&number) {
            return Err(Error::corruption(format!("blob file #{number} is added twice")));
        }
        let file = Arc::new(BlobFile::new(addition.clone(), &self.paths, self.queue.clone()));
        let state = BlobFileState {
            file,
            garbage_count: 0,
            garbage_bytes: 0,
            linked_tables: BTreeSet::new(),
        };
        self.blob_files.insert(number, state);
        Ok(())
    }

    fn add_garbage(&mut self, garbage: &BlobFileGarbage) -> Result<()> {
        let number = garbage.number;
        let state = self.blob_files.get_mut(&number).ok_or_else(|| {
            Error::corruption(format!("garbage in blob file #{number}, which is unknown"))
        })?;
        let (total_count, total_bytes) = (state.file.meta.total_count, state.file.meta.total_bytes);
        let count =
            state.garbage_count.checked_add(garbage.count).filter(|&count| count <= total_count);
        let bytes =
            state.garbage_bytes.checked_add(garbage.bytes).filter(|&bytes| bytes <= total_bytes);
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Err(Error::corruption(format!(
                "garbage in blob file #{number} exceeds its {} or {total_bytes} bytes",
                counted(total_count, "blob")
            )));
        };
        (state.garbage_count, state.garbage_bytes) = (count, bytes);
        Ok(())
    }

    /// Lowers the garbage that an edit of ours counts to what is left of the file's records,
    /// without one if the file stays in use. Whoever wrote the MANIFEST may have counted too much:
    /// nobody, RocksDB neither, accepts more than there is, and a file that seems to be nothing but
    /// garbage is removed.
    pub(super) fn bound_garbage(&self, edit: &mut VersionEdit) {
        let mut garbages = std::mem::take(&mut edit.blob_file_garbages);
        let mut counted: HashMap<FileNumber, (u64, u64)> = HashMap::new();
        for garbage in &mut garbages {
            let Some(state) = self.blob_files.get(&garbage.number) else { continue };
            let (total_count, total_bytes) =
                (state.file.meta.total_count, state.file.meta.total_bytes);
            let sum =
                counted.entry(garbage.number).or_insert((state.garbage_count, state.garbage_bytes));
            let (count, bytes) =
                (total_count.saturating_sub(sum.0), total_bytes.saturating_sub(sum.1));
            let stays = garbage.count >= count && self.will_be_used(garbage.number, edit);
            if garbage.count > count - u64::from(stays && count > 0) || garbage.bytes > bytes {
                tracing::warn!(?garbage, left = ?(count, bytes), "more garbage in a blob file than it can have");
                let (one, its_bytes) =
                    if stays { (1, total_bytes / total_count.max(1)) } else { (0, 0) };
                garbage.count = garbage.count.min(count.saturating_sub(one));
                garbage.bytes = garbage.bytes.min(bytes.saturating_sub(its_bytes));
            }
            (sum.0, sum.1) = (sum.0 + garbage.count, sum.1 + garbage.bytes);
        }
        edit.blob_file_garbages = garbages;
    }

    /// Whether a table is known to refer to the blob file when `edit` has been applied.
    fn will_be_used(&self, number: FileNumber, edit: &VersionEdit) -> bool {
        let uses = |table: &FileMetadata| {
            let known = table.blob_references.as_ref().map_or(&[][..], |known| known.files());
            table.oldest_blob_file == Some(number) || known.iter().any(|(file, _)| *file == number)
        };
        let goes = |table: &FileNumber| edit.deleted_files.iter().any(|(_, gone)| gone == table);
        let mut staying = self.tables.iter().filter(|(number, _)| !goes(number));
        edit.new_files.iter().any(|(_, table)| uses(table))
            || staying.any(|(_, table)| uses(table.source.meta()))
    }

    fn delete_table(&mut self, level: usize, number: FileNumber) -> Result<()> {
        match self.tables.get(&number) {
            Some(table) if table.level == level => {}
            Some(table) => {
                let actual = table.level;
                return Err(Error::corruption(format!(
                    "cannot delete table file #{number} from level {level} since it is on level {actual}"
                )));
            }
            None => {
                return Err(Error::corruption(format!(
                    "cannot delete table file #{number} from level {level} since it is not in the LSM tree"
                )));
            }
        }
        if let Some(Table { source: Source::Base(file), .. }) = self.tables.remove(&number) {
            self.removed.insert(number, file);
        }
        Ok(())
    }

    /// The tables that are added from now on are from before the family had timestamps.
    pub(super) fn note_unstamped(&mut self) {
        self.are_unstamped = true;
    }

    /// What is known of a table whose keys have no timestamps, with bounds that have the least one.
    fn padded(&self, meta: &FileMetadata) -> Option<FileMetadata> {
        let size = self.comparator.timestamp_size();
        let is_stamped = meta.user_timestamps_persisted && !self.are_unstamped;
        if size == 0 || is_stamped || meta.padded_bytes > 0 {
            return None;
        }
        let padded = |bound: &InternalKeyBuf| {
            let (user_key, packed) = bound.as_bytes().split_at(bound.user_key().len());
            let key = [&timestamp::last_of(user_key, size), packed].concat();
            InternalKeyBuf::parse_bound(&key)
        };
        Some(FileMetadata {
            smallest: padded(&meta.smallest)?,
            largest: padded(&meta.largest)?,
            user_timestamps_persisted: false,
            padded_bytes: size,
            ..meta.clone()
        })
    }

    fn add_table(&mut self, level: usize, meta: &FileMetadata) -> Result<()> {
        let number = meta.number;
        let padded = self.padded(meta);
        let meta = padded.as_ref().unwrap_or(meta);
        if let Some(present) = self.tables.get(&number) {
            let present = present.level;
            return Err(Error::corruption(format!(
                "cannot add table file #{number} to level {level} since it is already in the LSM tree on level \
                 {present}"
            )));
        }
        if meta.epoch_number > EPOCH_MAX {
            return Err(Error::corruption(format!(
                "table file #{number} has the epoch number {}: none is left for what is newer",
                meta.epoch_number
            )));
        }
        if self.for_writing && meta.epoch_number == 0 {
            return Err(Error::invalid_argument(format!(
                "table file #{number} has no epoch number"
            )));
        }
        if self.comparator.compare(meta.smallest.as_key(), meta.largest.as_key()).is_gt() {
            return Err(Error::corruption(format!(
                "table file #{number}: its smallest key {:?} is above its largest {:?}",
                meta.smallest, meta.largest
            )));
        }
        let source = match self.removed.get(&number) {
            Some(file) if file.meta == *meta => Source::Base(file.clone()),
            _ => Source::Edit(Box::new(meta.clone())),
        };
        self.tables.insert(number, Table { level, source });
        Ok(())
    }

    /// The resulting version, in order and checked.
    ///
    /// # Errors
    /// `Corruption` if the files contradict each other; `InvalidArgument` if there are more levels
    /// than the family has.
    pub fn build(mut self) -> Result<Version> {
        self.build_version()
    }

    /// [`VersionBuilder::build`], and which tables of the base version are no longer part of it.
    pub(super) fn build_and_removed(mut self) -> Result<(Version, Vec<Arc<TableFile>>)> {
        let gone = self.removed.iter().filter(|(number, _)| !self.tables.contains_key(number));
        let removed = gone.map(|(_, file)| file.clone()).collect();
        Ok((self.build_version()?, removed))
    }

    fn build_version(&mut self) -> Result<Version> {
        let deepest = self.tables.values().map(|table| table.level).max().unwrap_or(0);
        if deepest >= self.num_levels {
            return Err(Error::invalid_argument(format!(
                "the database has more levels than num_levels: a table is on level {deepest}, num_levels is {}",
                self.num_levels
            ))
            .advise(Remedy::RaiseNumLevels { to: deepest + 1 }));
        }
        let mut levels: Vec<Vec<Source>> = Vec::new();
        levels.resize_with(self.num_levels, Vec::new);
        for (_, table) in std::mem::take(&mut self.tables) {
            levels[table.level].push(table.source);
        }
        self.sort(&mut levels);
        self.check_level_zero(&levels[0])?;
        for (level, files) in levels.iter().enumerate().skip(1) {
            self.check_sorted_level(level, files)?;
        }
        self.link_blob_files(&levels)?;
        self.drop_blob_files()?;
        let levels =
            levels.into_iter().map(|files| files.into_iter().map(|s| self.share(s)).collect());
        let (comparator, paths) = (self.comparator.clone(), self.paths.clone());
        Ok(Version::new(comparator, paths, levels.collect(), std::mem::take(&mut self.blob_files)))
    }

    fn sort(&self, levels: &mut [Vec<Source>]) {
        for files in levels.iter_mut().skip(1) {
            files.sort_unstable_by(|a, b| {
                let (a, b) = (a.meta().smallest.as_key(), b.meta().smallest.as_key());
                self.comparator.compare(a, b)
            });
        }
        if levels.iter().flatten().any(|file| file.meta().epoch_number == 0) {
            levels[0].sort_unstable_by(|a, b| newest_by_seqno(a.meta(), b.meta()));
            infer_epochs(levels);
        } else {
            levels[0].sort_unstable_by(|a, b| newest_by_epoch(a.meta(), b.meta()));
        }
    }

    fn check_level_zero(&self, files: &[Source]) -> Result<()> {
        for same_epoch in files.chunk_by(|a, b| a.meta().epoch_number == b.meta().epoch_number) {
            let mut by_key: Vec<_> = same_epoch.iter().map(Source::meta).collect();
            by_key.sort_unstable_by(|a, b| {
                self.comparator.compare(a.smallest.as_key(), b.smallest.as_key())
            });
            for pair in by_key.windows(2) {
                if user_keys_overlap(self.comparator.keys(), pair[0], pair[1]) {
                    return Err(inconsistent(
                        0,
                        pair[0],
                        pair[1],
                        "overlap and have the same epoch number",
                    ));
                }
            }
        }
        if !self.for_writing {
            return Ok(());
        }
        let added: Vec<bool> = files.iter().map(|file| matches!(file, Source::Edit(_))).collect();
        let files: Vec<&FileMetadata> = files.iter().map(Source::meta).collect();
        self.check_level_zero_by_seqno(&files, &added).or_else(|error| {
            if !self.keeps_history(&files, &added) {
                return Err(error);
            }
            tracing::warn!(%error, "RocksDB before 7.10 would not open level 0");
            Ok(())
        })
    }

    /// Whether level 0 stays in the order of history, although sequence numbers do not tell it.
    /// Readers take what they find first by epoch, so of two tables that overlap the one with the
    /// higher epoch must be the newer, key by key.
    ///
    /// - What gets an epoch above all others is flushed. Memtables are flushed in their order, so
    ///   it is newer than what came by way of other memtables. What RocksDB took in since the
    ///   memtable began has no key of what the memtable held then, or that would have been flushed
    ///   first; and what came later is newer. So it is newer than that, too, whatever that was
    ///   merged with. Each write has a number of its own: if one is in an older table also, a write
    ///   was flushed twice. Where what is flushed has as many entries as numbers, it has each of
    ///   these; else nothing tells whether one of them was taken in.
    /// - What has no higher epoch was merged, and has the lowest epoch of its inputs. Nothing that
    ///   stays may have been older than an input and be newer than the result, or the reverse.
    fn keeps_history(&self, files: &[&FileMetadata], added: &[bool]) -> bool {
        let overlap =
            |a: &FileMetadata, b: &FileMetadata| user_keys_overlap(self.comparator.keys(), a, b);
        let highest = self.level_zero.iter().map(|file| file.meta.epoch_number).max().unwrap_or(0);
        let base = self.level_zero.iter().map(|file| &file.meta);
        let gone: Vec<_> = base.filter(|meta| self.removed.contains_key(&meta.number)).collect();
        let new =
            || files.iter().copied().zip(added).filter(|(_, added)| **added).map(|(file, _)| file);
        let kept =
            || files.iter().copied().zip(added).filter(|(_, added)| !**added).map(|(file, _)| file);
        let has = |file: &FileMetadata, seqno| {
            seqno > 0 && [file.smallest_seqno, file.largest_seqno].contains(&seqno)
        };
        let shares = |a: &FileMetadata, b: &FileMetadata| {
            has(a, b.smallest_seqno) || has(a, b.largest_seqno)
        };
        let is_dense = |file: &FileMetadata| {
            // Pieces of a range deletion have the number of the whole.
            let numbers = file.largest_seqno.saturating_sub(file.smallest_seqno).saturating_add(1);
            file.entry_stats
                .is_some_and(|of| of.entries.saturating_sub(of.range_deletions) >= numbers)
        };
        let reaches_into = |a: &FileMetadata, b: &FileMetadata| {
            let within = b.smallest_seqno.max(1)..=b.largest_seqno;
            within.contains(&a.smallest_seqno) || within.contains(&a.largest_seqno)
        };
        let is_flushed_once = |file: &FileMetadata| {
            let follows = |older: &FileMetadata| {
                older.epoch_number >= file.epoch_number || older.largest_seqno < file.smallest_seqno
            };
            let is_twice = |other: &FileMetadata| {
                shares(file, other) || is_dense(file) && reaches_into(other, file)
            };
            !kept().any(|other| overlap(file, other) && is_twice(other))
                && new().all(|older| follows(older) || !overlap(file, older))
        };
        let is_in_place = |file: &FileMetadata| {
            let passes = |input: &FileMetadata, other: &FileMetadata| {
                let epochs = [file.epoch_number, input.epoch_number];
                let is_between = |epoch| {
                    epochs.iter().any(|one| *one < epoch) && epochs.iter().any(|one| *one > epoch)
                };
                is_between(other.epoch_number) && overlap(input, other)
            };
            !gone.is_empty() && !kept().any(|other| gone.iter().any(|input| passes(input, other)))
        };
        new().all(|file| {
            if file.epoch_number > highest { is_flushed_once(file) } else { is_in_place(file) }
        })
    }

    /// RocksDB 7.8 knows no epochs: it must find the same order among overlapping tables by their
    /// seqnos, and refuses to open tables whose seqnos interleave. Only what was added is checked:
    /// the rest may come from RocksDB 11, which may have taken in the older of two tables while
    /// what is in the newer one was in a memtable, without a flush: they share no key.
    fn check_level_zero_by_seqno(&self, files: &[&FileMetadata], added: &[bool]) -> Result<()> {
        for (at, file) in files.iter().enumerate().filter(|(at, _)| added[*at]) {
            for (other_at, other) in files.iter().enumerate() {
                let (newer, older) = if at <= other_at { (file, other) } else { (other, file) };
                let is_taken_in = older.smallest_seqno == older.largest_seqno
                    && newer.largest_seqno < older.smallest_seqno;
                if newest_by_seqno(newer, older).is_gt()
                    && !is_taken_in
                    && user_keys_overlap(self.comparator.keys(), newer, older)
                {
                    let why =
                        "overlap, but the one with the higher epoch number has the lower seqnos";
                    return Err(inconsistent(0, newer, older, why));
                }
            }
        }
        let mut by_seqno: Vec<_> = files.iter().copied().zip(added).collect();
        by_seqno.sort_unstable_by(|(a, _), (b, _)| newest_by_seqno(a, b));
        for pair in by_seqno.windows(2).filter(|pair| pair.iter().any(|(_, added)| **added)) {
            let (newer, older) = (pair[0].0, pair[1].0);
            let fits = if older.smallest_seqno == older.largest_seqno {
                older.largest_seqno < newer.largest_seqno || older.largest_seqno == 0
            } else {
                newer.smallest_seqno > older.smallest_seqno
            };
            if !fits {
                return Err(inconsistent(0, newer, older, "have interleaved seqnos"));
            }
        }
        Ok(())
    }

    fn check_sorted_level(&self, level: usize, files: &[Source]) -> Result<()> {
        for pair in files.windows(2) {
            let (left, right) = (pair[0].meta(), pair[1].meta());
            if self.comparator.compare(left.largest.as_key(), right.smallest.as_key()).is_ge() {
                return Err(inconsistent(level, left, right, "overlap"));
            }
        }
        Ok(())
    }

    fn link_blob_files(&mut self, levels: &[Vec<Source>]) -> Result<()> {
        for state in self.blob_files.values_mut() {
            state.linked_tables.clear();
        }
        for file in levels.iter().flatten() {
            let meta = file.meta();
            let Some(oldest) = meta.oldest_blob_file else { continue };
            match self.blob_files.get_mut(&oldest) {
                Some(state) => {
                    state.linked_tables.insert(meta.number);
                }
                None if self.for_writing && matches!(file, Source::Edit(_)) => {
                    return Err(Error::corruption(format!(
                        "table file #{} names blob file #{oldest} as its oldest, which is unknown",
                        meta.number
                    )));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn drop_blob_files(&mut self) -> Result<()> {
        let oldest_linked = self
            .blob_files
            .iter()
            .find(|(_, state)| !state.linked_tables.is_empty())
            .map(|(&number, _)| number);
        self.blob_files.retain(|&number, state| {
            oldest_linked.is_some_and(|oldest| number >= oldest)
                && !(state.linked_tables.is_empty() && state.is_all_garbage())
        });
        match self.blob_files.iter().find(|(_, state)| state.is_all_garbage()) {
            Some((number, state)) => Err(Error::corruption(format!(
                "blob file #{number} consists entirely of garbage, yet {} {} linked to it",
                counted(state.linked_tables.len(), "table"),
                form(state.linked_tables.len(), "is", "are")
            ))),
            None => Ok(()),
        }
    }

    fn share(&self, source: Source) -> Arc<TableFile> {
        match source {
            Source::Base(file) => file,
            Source::Edit(meta) => Arc::new(match self.removed.get(&meta.number) {
                Some(file) => file.with_meta(*meta),
                None => TableFile::new(*meta, &self.paths, self.queue.clone()),
            }),
        }
    }
}

mod followed;

/// One epoch for each level from the deepest up, then one for each table of level 0 from the oldest
/// on.
fn infer_epochs(levels: &mut [Vec<Source>]) {
    let mut epoch = 0;
    let (level_zero, deeper) = levels.split_at_mut(1);
    for files in deeper.iter_mut().rev().filter(|files| !files.is_empty()) {
        epoch += 1;
        for file in files {
            set_epoch(file, epoch);
        }
    }
    for file in level_zero[0].iter_mut().rev() {
        epoch += 1;
        set_epoch(file, epoch);
    }
}

fn set_epoch(file: &mut Source, epoch: u64) {
    match file {
        Source::Edit(meta) => meta.epoch_number = epoch,
        // Of a version that is followed, from before an edit that knows no epochs.
        Source::Base(known) if known.meta.epoch_number == epoch => {}
        Source::Base(known) => {
            let meta = FileMetadata { epoch_number: epoch, ..known.meta.clone() };
            *file = Source::Base(Arc::new(known.with_meta(meta)));
        }
    }
}

fn inconsistent(level: usize, a: &FileMetadata, b: &FileMetadata, why: &str) -> Error {
    let file = |f: &FileMetadata| {
        format!(
            "#{} [{:?} .. {:?}] (seqnos {}..{}, epoch {})",
            f.number, f.smallest, f.largest, f.smallest_seqno, f.largest_seqno, f.epoch_number
        )
    };
    Error::corruption(format!("level {level}: table files {} and {} {why}", file(a), file(b)))
}
