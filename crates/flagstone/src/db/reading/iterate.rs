//! Cursors over what a user sees: memtables, tables and levels merged as of one sequence number.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::cursor_blobs::{CountedReadahead, CursorBlobs};
use super::level_files::{FileList, LevelFiles, truncated};
use super::live_cursors::{Origin, Registered};
use super::read::read_settings;
use super::refresh::AutoRefresh;
use crate::base::sync::Mutex;
use crate::base::{
    Error, InternalIterator, InternalKey, Mutant, PinnedValue, PrefixExtractor, Result, SequenceNumber,
    SnapshotList,
};
use crate::cache::{Held, Holder};
use crate::db::family::{Family, SuperVersion};
use crate::db::files::{Tables, tombstones_of};
use crate::db::{DbInner, Statistics, Ticker};
use crate::iter::{
    ConcatIterator, DbIter, DbIterSettings, KeyBounds, MergingIterator, TombstoneSource, TombstoneView,
};
use crate::manifest::{TableFile, Version};
use crate::memtable::MemTableIterator;
use crate::options::{ColumnFamilyOptions, ReadOptions};
use crate::sst::{AutoReadahead, IterSettings, TableIterator};

/// About what a cursor over one source allocates for keys and places, without the blocks that it stands on.
const SOURCE_BUFFERS: usize = 512;

/// A cursor over one source; no virtual calls.
pub(in crate::db) enum Source {
    Mem(MemTableIterator),
    Table(TableIterator),
    Level(ConcatIterator<LevelFiles>),
}

impl Source {
    /// Adds to an error about the entry on which the cursor stands, which must be valid, where that lies, if it is in a table.
    pub(in crate::db) fn locate(&self, error: Error) -> Error {
        match self {
            Self::Mem(_) => error,
            Self::Table(table) => table.locate(error),
            Self::Level(level) => level.current().locate(error),
        }
    }
}

macro_rules! each_source {
    ($source:expr, $inner:ident => $call:expr) => {
        match $source {
            Source::Mem($inner) => $call,
            Source::Table($inner) => $call,
            Source::Level($inner) => $call,
        }
    };
}

impl InternalIterator for Source {
    #[inline]
    fn valid(&self) -> bool {
        each_source!(self, inner => inner.valid())
    }

    fn seek_to_first(&mut self) {
        each_source!(self, inner => inner.seek_to_first());
    }

    fn seek_to_last(&mut self) {
        each_source!(self, inner => inner.seek_to_last());
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        each_source!(self, inner => inner.seek(target));
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        each_source!(self, inner => inner.seek_for_prev(target));
    }

    fn confine(&mut self, to_prefix: bool) {
        each_source!(self, inner => inner.confine(to_prefix));
    }

    #[inline]
    fn next(&mut self) {
        each_source!(self, inner => inner.next());
    }

    #[inline]
    fn prev(&mut self) {
        each_source!(self, inner => inner.prev());
    }

    #[inline]
    fn next_key(&mut self) -> Option<InternalKey<'_>> {
        each_source!(self, inner => inner.next_key())
    }

    #[inline]
    fn prev_key(&mut self) -> Option<InternalKey<'_>> {
        each_source!(self, inner => inner.prev_key())
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        each_source!(self, inner => inner.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        each_source!(self, inner => inner.value())
    }

    fn pin_value(&self) -> Option<PinnedValue> {
        each_source!(self, inner => inner.pin_value())
    }

    fn upcoming(&self, visit: &mut dyn FnMut(u8, &[u8]) -> bool) {
        each_source!(self, inner => inner.upcoming(visit));
    }

    fn status(&self) -> Result<()> {
        each_source!(self, inner => inner.status())
    }
}

impl Source {
    /// Lets go of blocks and buffers.
    fn rest(&mut self) {
        match self {
            Self::Mem(_) => {}
            Self::Table(inner) => inner.rest(),
            Self::Level(inner) => {
                if let Some(open) = inner.open_cursor() {
                    open.rest();
                }
            }
        }
    }

    /// Whether a cursor over this source shows what came in after it was made.
    fn is_live(&self) -> bool {
        matches!(self, Self::Mem(MemTableIterator::BTree(_) | MemTableIterator::SkipList(_)))
    }
}

impl From<MemTableIterator> for Source {
    fn from(inner: MemTableIterator) -> Self {
        Self::Mem(inner)
    }
}

/// What an iterator consists of, and a family keeps for the next one.
pub(in crate::db) struct Cursor {
    entries: DbIter<Source, CursorBlobs>,
    /// Whether an iterator with plain options may take it over.
    reusable: bool,
    /// The family's options when it was made, by which it reads.
    made_by: Arc<ColumnFamilyOptions>,
    /// What stands for it in the account of memory.
    _held: Held,
    live: Registered,
}

impl Cursor {
    /// Another one like it, for what `sequence` sees in the family's newest super version.
    pub(in crate::db) fn renewed(
        &self,
        origin: Origin,
        sequence: impl FnOnce(&SnapshotList) -> SequenceNumber,
    ) -> Result<Box<Self>> {
        let CursorBlobs { tables, family, options, snapshots, .. } = self.entries.resolver();
        let current = family.current.load_full();
        let sequence = sequence(snapshots);
        make_cursor(tables, snapshots, family, current, sequence, options, origin)
    }

    /// When and where the iterator was made that has it.
    pub(in crate::db) fn origin(&self) -> Origin {
        self.live.origin()
    }

    /// Of an iterator that is made now.
    pub(in crate::db) fn origin_now(&self, made_at: &'static Location<'static>) -> Origin {
        Origin { since_us: self.entries.resolver().tables.coarse_us(), made_at }
    }

    /// Whether the family has a newer super version.
    pub(in crate::db) fn is_outdated(&self) -> bool {
        !self.is_of(&self.entries.resolver().family.current.load())
    }

    pub(in crate::db) fn is_of(&self, current: &Arc<SuperVersion>) -> bool {
        Arc::ptr_eq(&self.entries.resolver().current, current)
    }

    /// Whether it is what the family would make now, but for the snapshot.
    fn is_current(&self, family: &Family) -> bool {
        self.is_of(&family.current.load()) && Arc::ptr_eq(&self.made_by, &family.options.load())
    }

    /// Lets go of what is not needed to begin anew.
    pub(in crate::db) fn rest(&mut self) {
        self.entries.rest(Source::rest);
        // What is read ahead of a file that is still written is as old as the cursor.
        self.entries.resolver().forget_ahead();
        self.live.rest();
    }
}

/// A cursor over the keys of one family, in their order, as of one moment.
///
/// It starts out unpositioned. It keeps the files and memtables alive that it may read.
pub struct Iter {
    /// Always there until it is dropped.
    pub(in crate::db) cursor: Option<Box<Cursor>>,
    statistics: Arc<Statistics>,
    pub(in crate::db) auto_refresh: Option<Box<AutoRefresh>>,
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.valid() {
            true => write!(f, "Iter(at {})", self.key().escape_ascii()),
            false => f.write_str("Iter(on no key)"),
        }
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        self.park();
    }
}

impl Iter {
    /// Gives the cursor back, for the family's next iterator.
    pub(in crate::db) fn park(&mut self) {
        let Some(ended) = self.cursor.as_ref().map(|cursor| cursor.entries.status()) else { return };
        if let Err(error) = &ended {
            self.suspect(error);
        }
        if let Some(cursor) = self.cursor.take_if(|cursor| cursor.reusable && ended.is_ok()) {
            let family = cursor.entries.resolver().family.clone();
            family.parked.park(cursor, |cursor| cursor.is_current(&family));
        }
    }

    #[inline]
    fn entries(&self) -> &DbIter<Source, CursorBlobs> {
        &self.cursor.as_ref().expect("not dropped yet").entries
    }

    #[inline]
    pub(in crate::db) fn entries_mut(&mut self) -> &mut DbIter<Source, CursorBlobs> {
        &mut self.cursor.as_mut().expect("not dropped yet").entries
    }

    /// Whether the cursor stands on a key; if not, [`Iter::status`] tells the end from an error.
    #[inline]
    pub fn valid(&self) -> bool {
        self.entries().valid()
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        self.refresh_before_seek();
        self.statistics.add(Ticker::Seeks, 1);
        self.entries_mut().seek_to_first();
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        self.refresh_before_seek();
        self.statistics.add(Ticker::Seeks, 1);
        self.entries_mut().seek_to_last();
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        self.refresh_before_seek();
        self.statistics.add(Ticker::Seeks, 1);
        self.entries_mut().seek(target.as_ref());
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        self.refresh_before_seek();
        self.statistics.add(Ticker::Seeks, 1);
        self.entries_mut().seek_for_prev(target.as_ref());
    }

    /// Moves on.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn next(&mut self) {
        if self.auto_refresh.is_some() && self.refresh_before_next() {
            return;
        }
        self.entries_mut().next();
    }

    /// Moves back.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn prev(&mut self) {
        if self.auto_refresh.is_some() && self.refresh_before_prev() {
            return;
        }
        self.entries_mut().prev();
    }

    /// The key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.entries().key()
    }

    /// The value; the cursor stays valid after an error. Large values are read from their blob file
    /// now, so a scan that asks only for keys never touches one. While several in a row lie closely together in a file, those
    /// to come are read with them: up to 256 KiB of a file at a time, 4 MiB together.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of the blob file; a merge operator's refusal.
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[inline]
    pub fn value(&mut self) -> Result<&[u8]> {
        self.entries_mut().value()
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// `Corruption`, `IoError`; `Incomplete` for a cursor that must not touch the disk.
    pub fn status(&self) -> Result<()> {
        self.entries().status().inspect_err(|error| self.suspect(error))
    }

    /// Files that cannot be read are known to the database, whoever met them.
    #[cold]
    fn suspect(&self, error: &Error) {
        let CursorBlobs { tables, family, .. } = self.entries().resolver();
        tables.suspects().add(family, error);
    }

    /// The key and value, and a step forward; `None` at the end, and of a cursor that was not sent anywhere yet. Copies both.
    /// After an error the cursor stands where it stood.
    ///
    /// ```
    /// # fn main() -> flagstone::base::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let mut options = flagstone::options::Options::default();
    /// # options.create_if_missing = true;
    /// # let db = flagstone::db::Db::open(directory.path(), &options)?;
    /// # db.put("stone", "flag")?;
    /// let mut iter = db.iter(&Default::default())?;
    /// iter.seek_to_first();
    /// while let Some((key, value)) = iter.next_entry()? {
    ///     assert_eq!((key, value), (b"stone".to_vec(), b"flag".to_vec()));
    /// }
    /// // As an iterator of Rust's:
    /// iter.seek_to_first();
    /// assert_eq!(std::iter::from_fn(|| iter.next_entry().transpose()).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Iter::value`] and [`Iter::status`].
    pub fn next_entry(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if !self.valid() {
            return self.status().map(|()| None);
        }
        let key = self.key().to_vec();
        let value = self.value()?.to_vec();
        self.next();
        Ok(Some((key, value)))
    }
}

impl DbInner {
    /// A cursor for an iterator that the caller is said to have made, or who stands behind the call.
    pub(in crate::db) fn iterate(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        made_at: &'static Location<'static>,
    ) -> Result<Iter> {
        family.check_owner(&self.obsolete)?;
        let early = Mutant::ReadSequenceBeforePin.is_on().then(|| self.read_sequence(options));
        let current = family.current.load_full();
        let snapshot = early.unwrap_or_else(|| self.read_sequence(options))?;
        let origin = Origin { since_us: self.tables.coarse_us(), made_at };
        let cursor = make_cursor(&self.tables, &self.snapshots, family, current, snapshot, options, origin)?;
        let auto_refresh = AutoRefresh::by(options);
        Ok(Iter { cursor: Some(cursor), statistics: self.statistics.clone(), auto_refresh })
    }
}

/// A cursor for what `snapshot` sees in a super version: one that was kept, if that will do.
fn make_cursor(
    tables: &Arc<Tables>,
    snapshots: &Arc<SnapshotList>,
    family: &Arc<Family>,
    current: Arc<SuperVersion>,
    snapshot: SequenceNumber,
    options: &ReadOptions,
    origin: Origin,
) -> Result<Box<Cursor>> {
    let family_options = family.options.load();
    let is_plain = is_plain(options);
    let max_sequential_skips = family_options.settings.max_sequential_skip_in_iterations as usize;
    if is_plain
        && current.generations().all(|mem| mem.num_range_tombstones() == 0)
        && let Some(mut cursor) = family.parked.take(&current)
    {
        cursor.entries.begin_anew(snapshot, max_sequential_skips);
        cursor.live.begin(origin);
        return Ok(cursor);
    }
    let bounds = KeyBounds {
        lower: options.iterate_lower_bound.as_deref().map(Arc::from),
        upper: options.iterate_upper_bound.as_deref().map(Arc::from),
    };
    let (sources, tombstones) = sources(tables, options, family, &current, snapshot, &bounds)?;
    let same_prefix: Option<PrefixExtractor> =
        if options.prefix_same_as_start { family_options.prefix_extractor.clone() } else { None };
    let settings = DbIterSettings {
        comparator: family.comparator().clone(),
        snapshot,
        merge_operator: family_options.merge_operator.clone(),
        bounds,
        same_prefix,
        max_sequential_skips,
        dead_ranges: (!options.ignore_range_deletions && !options.prefix_same_as_start)
            .then(|| family.dead_ranges.clone()),
        past: current.past,
        max_skippable: options.max_skippable_internal_keys,
    };
    let reusable = is_plain && tombstones.is_empty() && sources.first().is_some_and(Source::is_live);
    let view = TombstoneView::new(family.comparator().clone(), snapshot, tombstones);
    let bytes = size_of::<Cursor>() + sources.len() * (size_of::<Source>() + SOURCE_BUFFERS);
    let held = tables.account().hold(Holder::Cursors, bytes);
    let live = tables.live_cursors().register(family, &current, origin);
    let merged = MergingIterator::new(family.order.clone(), sources);
    let resolver = CursorBlobs {
        tables: tables.clone(),
        family: family.clone(),
        current,
        // What it pins is what the snapshot sees.
        options: ReadOptions { snapshot: None, ..options.clone() },
        ahead: Mutex::new(CountedReadahead::new(tables.account())),
        asked: Default::default(),
        snapshots: snapshots.clone(),
    };
    let entries = DbIter::new(settings, merged, view, resolver);
    let made_by = Arc::clone(&family_options);
    Ok(Box::new(Cursor { entries, reusable, made_by, _held: held, live }))
}

/// The cursors of all sources, newest first, and the range tombstones of those that have some.
#[expect(clippy::type_complexity, reason = "two lists that belong together, taken apart at once")]
fn sources(
    tables: &Arc<Tables>,
    options: &ReadOptions,
    family: &Arc<Family>,
    current: &Arc<SuperVersion>,
    snapshot: SequenceNumber,
    bounds: &KeyBounds,
) -> Result<(Vec<Source>, Vec<(usize, TombstoneSource)>)> {
    let settings = iter_settings(options, family);
    let mut sources = Vec::new();
    let mut tombstones = Vec::new();
    for mem in std::iter::once(&current.mem).chain(&current.immutable) {
        let visible = mem.range_tombstones(snapshot);
        tombstones
            .extend(visible.iter().map(|part| (sources.len(), TombstoneSource::One(part.untruncated()))));
        sources.push(Source::Mem(if settings.prefix_same_as_start { mem.prefix_iter() } else { mem.iter() }));
    }
    let version: &Version = &current.version;
    for file in &version.levels[0] {
        if outside(family, file, bounds) {
            continue;
        }
        let table = tables.open_for(family, file, options.cache_only)?;
        if let Some(found) = tombstones_of(table) {
            tombstones.push((sources.len(), TombstoneSource::One(truncated(found, file))));
        }
        sources.push(Source::Table(table.iter(settings.clone())));
    }
    for (level, files) in version.levels.iter().enumerate().skip(1).filter(|(_, files)| !files.is_empty()) {
        let whole = || FileList::WholeLevel(current.version.clone(), level);
        let level = || LevelFiles::new(tables.clone(), family.clone(), whole(), settings.clone());
        if !known_without_tombstones(files) {
            tombstones.push((sources.len(), TombstoneSource::Level(Box::new(level()))));
        }
        let prefixes =
            family.options.load().prefix_extractor.clone().filter(|_| settings.prefix_same_as_start);
        let cursor = ConcatIterator::new(family.order.clone(), level(), bounds.clone());
        let cursor = cursor.with_prefixes(prefixes);
        sources.push(Source::Level(cursor));
    }
    if options.ignore_range_deletions {
        tombstones.clear();
    }
    Ok((sources, tombstones))
}

/// Whether the options, but for the snapshot, are those of most reads: cursors are kept for these.
fn is_plain(options: &ReadOptions) -> bool {
    options.verify_checksums
        && options.fill_cache
        && !options.cache_only
        && options.iterate_lower_bound.is_none()
        && options.iterate_upper_bound.is_none()
        && !options.prefix_same_as_start
        && options.readahead_size == 0
        && options.max_skippable_internal_keys == 0
        && !options.ignore_range_deletions
}

/// Whether every table of a level is open and none has range tombstones: then a scan need not ask.
fn known_without_tombstones(files: &[Arc<TableFile>]) -> bool {
    files.iter().all(|file| file.table.get().is_some_and(|table| tombstones_of(table).is_none()))
}

fn outside(family: &Family, file: &TableFile, bounds: &KeyBounds) -> bool {
    let order = family.comparator();
    let below = bounds
        .lower
        .as_deref()
        .is_some_and(|lower| order.compare(file.meta.largest.user_key(), lower).is_lt());
    let above = bounds
        .upper
        .as_deref()
        .is_some_and(|upper| order.compare(file.meta.smallest.user_key(), upper).is_ge());
    below || above
}

fn iter_settings(options: &ReadOptions, family: &Family) -> IterSettings {
    let family_options = family.options.load();
    let has_prefix = family_options.prefix_extractor.is_some();
    let table = &family_options.table;
    IterSettings {
        read: read_settings(options),
        upper_bound: options.iterate_upper_bound.clone(),
        readahead_size: options.readahead_size as usize,
        auto_readahead: AutoReadahead {
            initial: table.initial_auto_readahead_size as usize,
            most: table.max_auto_readahead_size as usize,
            after_reads: table.num_file_reads_for_auto_readahead as u32,
        },
        prefix_same_as_start: has_prefix && options.prefix_same_as_start && !options.total_order_seek,
        warmth: None,
        notes_readahead: true,
    }
}
