//! What an iterator consists of: memtables, tables and levels merged as of one sequence number.

use std::panic::Location;
use std::sync::Arc;

use crate::base::sync::{Mutex, Ordering};
use crate::base::{PrefixExtractor, Result, SequenceNumber, SnapshotList, timestamp};
use crate::cache::{Held, MemoryKind};
use crate::db::family::parked::Parked;
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::as_of::as_of;
use crate::db::reading::cursor_blobs::{CountedReadahead, CursorBlobs};
use crate::db::reading::read::read_settings;
use crate::db::reading::source::Source;
use crate::db::tables::level_files::{FileList, LevelFiles, truncated};
use crate::db::tables::live_cursors::{Origin, Registered};
use crate::db::tables::{Tables, tombstones_of};
use crate::iter::{
    ConcatIterator, DbIter, DbIterSettings, KeyBounds, MergingIterator, TombstoneSource,
    TombstoneView,
};
use crate::manifest::{TableFile, Version};
use crate::options::{ColumnFamilyOptions, ReadOptions};
use crate::sst::{AutoReadahead, IterSettings};

/// About what a cursor over one source allocates for keys and places, without the blocks that it
/// stands on.
const SOURCE_BUFFERS: usize = 512;

/// What an iterator consists of, and a family keeps for the next one.
pub(in crate::db) struct Cursor {
    pub(super) entries: DbIter<Source, CursorBlobs>,
    /// Whether an iterator with plain options may take it over.
    pub(super) reusable: bool,
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
        sequence: impl Fn(&SnapshotList) -> SequenceNumber,
    ) -> Result<Box<Self>> {
        let CursorBlobs { tables, family, options, snapshots, .. } = self.entries.resolver();
        let (current, sequence) = family.pinned(|| sequence(snapshots));
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

    /// The last write that readers see now.
    pub(in crate::db) fn published(&self) -> SequenceNumber {
        self.entries.resolver().snapshots.published.load(Ordering::Acquire)
    }

    /// Whether the family has a newer super version.
    pub(in crate::db) fn is_outdated(&self) -> bool {
        !self.is_of(&self.entries.resolver().family.current.load())
    }

    /// Whether it is what the family would make now, but for the snapshot.
    pub(super) fn is_current(&self, family: &Family) -> bool {
        self.is_of(&family.current.load()) && Arc::ptr_eq(&self.made_by, &family.options.load())
    }
}

impl Parked for Cursor {
    fn is_of(&self, current: &Arc<SuperVersion>) -> bool {
        Arc::ptr_eq(&self.entries.resolver().current, current)
    }

    fn rest(&mut self) {
        self.entries.rest(Source::rest);
        // What is read ahead of a file that is still written is as old as the cursor.
        self.entries.resolver().forget_ahead();
        self.live.rest();
    }
}

/// A cursor for what `snapshot` sees in a super version: one that was kept, if that will do.
pub(super) fn make_cursor(
    tables: &Arc<Tables>,
    snapshots: &Arc<SnapshotList>,
    family: &Arc<Family>,
    current: Arc<SuperVersion>,
    snapshot: SequenceNumber,
    options: &ReadOptions,
    origin: Origin,
) -> Result<Box<Cursor>> {
    let family_options = family.options.load();
    let as_of = as_of(options, family, &current)?;
    let is_plain = is_plain(options) && as_of.is_none();
    let max_sequential_skips = family_options.settings.max_sequential_skip_in_iterations as usize;
    if is_plain
        && current.generations().all(|mem| mem.num_range_tombstones() == 0)
        && let Some(mut cursor) = family.parked.take::<Cursor>(&current)
    {
        cursor.entries.begin_anew(snapshot, max_sequential_skips);
        cursor.live.begin(origin);
        return Ok(cursor);
    }
    let bounds = bounds_of(options, family);
    let (sources, tombstones) = sources(tables, options, family, &current, snapshot, &bounds)?;
    let same_prefix: Option<PrefixExtractor> =
        if options.prefix_same_as_start { family_options.prefix_extractor.clone() } else { None };
    let auto_prefix = auto_prefix(options, family, &family_options);
    let settings = DbIterSettings {
        comparator: family.comparator().clone(),
        snapshot,
        merge_operator: family_options.merge_operator.clone(),
        bounds,
        same_prefix,
        auto_prefix,
        max_sequential_skips,
        // They know of keys that are gone for good, not as of a timestamp.
        dead_ranges: (as_of.is_none()
            && !options.ignore_range_deletions
            && !options.prefix_same_as_start
            && !options.auto_prefix_mode)
            .then(|| family.dead_ranges.clone()),
        past: current.past,
        max_skippable: options.max_skippable_internal_keys,
        as_of: as_of.clone(),
    };
    let reusable =
        is_plain && tombstones.is_empty() && sources.first().is_some_and(Source::is_live);
    let mut view = TombstoneView::new(family.comparator().clone(), snapshot, tombstones);
    if let Some(as_of) = as_of {
        view = view.as_of(as_of.newest);
    }
    let bytes = size_of::<Cursor>() + sources.len() * (size_of::<Source>() + SOURCE_BUFFERS);
    let held = tables.account().hold(MemoryKind::Cursors, bytes);
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
        limits: tables.read_limits(options),
    };
    let entries = DbIter::new(settings, merged, view, resolver);
    let made_by = Arc::clone(&family_options);
    Ok(Box::new(Cursor { entries, reusable, made_by, _held: held, live }))
}

/// By what prefixes seeks are confined where that changes nothing.
fn auto_prefix(
    options: &ReadOptions,
    family: &Family,
    family_options: &ColumnFamilyOptions,
) -> Option<PrefixExtractor> {
    let is_asked = options.auto_prefix_mode && !options.prefix_same_as_start;
    let may_be = is_asked && family.order.timestamp_size() == 0;
    family_options.prefix_extractor.clone().filter(|_| may_be)
}

/// The keys that a scan is limited to, as they are stored: before all their versions.
fn bounds_of(options: &ReadOptions, family: &Family) -> KeyBounds {
    let size = family.order.timestamp_size();
    let bound =
        |key: &Option<Vec<u8>>| key.as_ref().map(|key| Arc::from(timestamp::before_all(key, size)));
    KeyBounds {
        lower: bound(&options.iterate_lower_bound),
        upper: bound(&options.iterate_upper_bound),
    }
}

/// The cursors of all sources, newest first, and the range tombstones of those that have some.
#[expect(clippy::type_complexity, reason = "two lists that belong together, taken apart at once")]
pub(super) fn sources(
    tables: &Arc<Tables>,
    options: &ReadOptions,
    family: &Arc<Family>,
    current: &Arc<SuperVersion>,
    snapshot: SequenceNumber,
    bounds: &KeyBounds,
) -> Result<(Vec<Source>, Vec<(usize, TombstoneSource)>)> {
    let settings = iter_settings(options, family, bounds);
    let mut sources = Vec::new();
    let mut tombstones = Vec::new();
    for mem in std::iter::once(&current.mem).chain(&current.immutable) {
        let visible = mem.range_tombstones(snapshot);
        tombstones.extend(
            visible.iter().map(|part| (sources.len(), TombstoneSource::One(part.untruncated()))),
        );
        sources.push(Source::Mem(if settings.prefix_same_as_start {
            mem.prefix_iter()
        } else {
            mem.iter()
        }));
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
        sources.push(if options.admits(table.properties()) {
            Source::Table(table.iter(IterSettings { level: Some(0), ..settings.clone() }))
        } else {
            // Its tombstones have a source to belong to.
            let none = FileList::Chosen(Vec::new());
            let none = LevelFiles::new(tables.clone(), family.clone(), none, settings.clone());
            Source::Level(ConcatIterator::new(family.order.clone(), none, bounds.clone()))
        });
    }
    for (level, files) in
        version.levels.iter().enumerate().skip(1).filter(|(_, files)| !files.is_empty())
    {
        let whole = || FileList::WholeLevel(current.version.clone(), level);
        let settings = IterSettings { level: Some(level), ..settings.clone() };
        let level = |list| LevelFiles::new(tables.clone(), family.clone(), list, settings.clone());
        if !known_without_tombstones(files) {
            tombstones.push((sources.len(), TombstoneSource::Level(Box::new(level(whole())))));
        }
        let list = match &options.table_filter {
            None => whole(),
            Some(_) => FileList::Chosen(admitted(tables, options, family, files, bounds)?),
        };
        let prefixes = family
            .options
            .load()
            .prefix_extractor
            .clone()
            .filter(|_| settings.prefix_same_as_start);
        let cursor = ConcatIterator::new(family.order.clone(), level(list), bounds.clone());
        let cursor = cursor.with_prefixes(prefixes);
        sources.push(Source::Level(cursor));
    }
    if options.ignore_range_deletions {
        tombstones.clear();
    }
    Ok((sources, tombstones))
}

/// The cursors of the sources that may have versions of one key, and the range tombstones of those
/// that may hide them.
#[expect(clippy::type_complexity, reason = "two lists that belong together, taken apart at once")]
pub(super) fn sources_of_key(
    tables: &Arc<Tables>,
    options: &ReadOptions,
    family: &Arc<Family>,
    current: &SuperVersion,
    snapshot: SequenceNumber,
    key: &[u8],
) -> Result<(Vec<Source>, Vec<(usize, TombstoneSource)>)> {
    let (size, order) = (family.order.timestamp_size(), family.comparator());
    let first = timestamp::before_all(key, size);
    let settings =
        IterSettings { upper_bound: None, ..iter_settings(options, family, &KeyBounds::default()) };
    let (mut sources, mut tombstones) = (Vec::new(), Vec::new());
    for mem in current.generations() {
        let visible = mem.range_tombstones(snapshot);
        tombstones.extend(
            visible.iter().map(|part| (sources.len(), TombstoneSource::One(part.untruncated()))),
        );
        sources.push(Source::Mem(mem.iter()));
    }
    let holds = |file: &&Arc<TableFile>| {
        order.compare_keys(file.meta.smallest.user_key(), &first).is_le()
            && order.compare_keys(&first, file.meta.largest.user_key()).is_le()
    };
    for (level, files) in current.version.levels.iter().enumerate() {
        let begin = match level {
            0 => 0,
            _ => files.partition_point(|file| {
                order.compare_keys(file.meta.largest.user_key(), &first).is_lt()
            }),
        };
        let behind = |file: &&Arc<TableFile>| {
            level == 0 || order.compare_keys(file.meta.smallest.user_key(), &first).is_le()
        };
        for file in files[begin..].iter().take_while(behind).filter(holds) {
            let table = tables.open_for(family, file, options.cache_only)?;
            if let Some(found) = tombstones_of(table) {
                tombstones.push((sources.len(), TombstoneSource::One(truncated(found, file))));
            }
            let may_have =
                table.has_points() && table.may_have_versions(&first, key, &settings.read)?;
            sources.push(if may_have {
                Source::Table(table.iter(settings.clone()))
            } else {
                // Its tombstones have a source to belong to.
                let none = FileList::Chosen(Vec::new());
                let none = LevelFiles::new(tables.clone(), family.clone(), none, settings.clone());
                Source::Level(ConcatIterator::new(family.order.clone(), none, KeyBounds::default()))
            });
        }
    }
    if options.ignore_range_deletions {
        tombstones.clear();
    }
    Ok((sources, tombstones))
}

/// The tables of a level that may have keys within the bounds, and that the options' filter admits.
fn admitted(
    tables: &Tables,
    options: &ReadOptions,
    family: &Family,
    files: &[Arc<TableFile>],
    bounds: &KeyBounds,
) -> Result<Vec<Arc<TableFile>>> {
    let mut chosen = Vec::new();
    for file in files.iter().filter(|file| !outside(family, file, bounds)) {
        if options.admits(tables.open_for(family, file, options.cache_only)?.properties()) {
            chosen.push(file.clone());
        }
    }
    Ok(chosen)
}

/// Whether the options, but for the snapshot, are those of most reads: cursors are kept for these.
fn is_plain(options: &ReadOptions) -> bool {
    options.verify_checksums
        && options.fill_cache
        && !options.cache_only
        && options.iterate_lower_bound.is_none()
        && options.iterate_upper_bound.is_none()
        && !options.prefix_same_as_start
        && !options.auto_prefix_mode
        && !options.limits_reads()
        && options.readahead_size == 0
        && options.max_skippable_internal_keys == 0
        && !options.ignore_range_deletions
        && !options.tailing
        && options.table_filter.is_none()
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

fn iter_settings(options: &ReadOptions, family: &Family, bounds: &KeyBounds) -> IterSettings {
    let family_options = family.options.load();
    let has_prefix = family_options.prefix_extractor.is_some();
    let table = &family_options.table;
    IterSettings {
        read: read_settings(options),
        upper_bound: bounds.upper.as_deref().map(<[u8]>::to_vec),
        readahead_size: options.readahead_size as usize,
        auto_readahead: AutoReadahead {
            initial: table.initial_auto_readahead_size as usize,
            most: table.max_auto_readahead_size as usize,
            after_reads: table.num_file_reads_for_auto_readahead as u32,
        },
        // A prefix filter is not asked where timestamps follow the keys: it would take them along.
        prefix_same_as_start: has_prefix
            && family.order.timestamp_size() == 0
            && ((options.prefix_same_as_start && !options.total_order_seek)
                || options.auto_prefix_mode),
        read_cache_hits: None,
        maps_readahead: false,
        notes_readahead: true,
        level: None,
    }
}

#[cfg(test)]
mod tests;
