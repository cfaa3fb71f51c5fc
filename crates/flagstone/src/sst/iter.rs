//! The cursor over a table.
//!
//! **Invariants**: `data` is positioned exactly when `positioned`; it then belongs to the block of
//! the index cursor's current entry. After an error nothing is positioned until the next seek.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::{Error, InternalIterator, InternalKey, InternalKeyBuf, PinnedValue, Result};

use super::block::BlockIter;
use super::cursor::IndexCursor;
use super::embedded::WholeValue;
use super::fetch::Purpose;
use super::readahead::{OwnFile, Readahead};
use super::settings::IterSettings;
use super::shown::Shown;
use super::table::Table;

/// What a scan will wait for at the next block: some waits for memory one after the other, as long
/// as many steps within a block. They are spread over the last steps in the block before. Where
/// blocks have many entries, scans seldom come to another.
#[derive(Default)]
struct Approach {
    /// The next step, until all has been asked for; and whether the scan goes back.
    next: Option<(u32, bool)>,
}

impl Approach {
    /// After each step of the scan.
    #[inline]
    fn follow(&mut self, data: &BlockIter, cursor: &IndexCursor, table: &Table) {
        // Only a scan back has to find where it begins.
        if let Some((step, back)) = self.next
            && data.is_near_end(if back { 5 } else { 3 } - step, back)
        {
            self.go_on(step, back, cursor, table);
        }
    }

    #[inline(never)]
    fn go_on(&mut self, step: u32, back: bool, cursor: &IndexCursor, table: &Table) {
        let purpose = if back { Purpose::ScanBack } else { Purpose::Scan };
        let place = cursor.neighbour(table, back);
        let next = place.and_then(|place| table.source.approach(place, step, purpose));
        self.next = next.map(|step| (step, back));
    }
}

/// A cursor over all point entries of a table.
///
/// With an upper bound it may end before, at or shortly after the bound: it does not read blocks
/// beyond, and does not compare each key.
pub struct TableIterator {
    table: Arc<Table>,
    settings: IterSettings,
    cursor: IndexCursor,
    data: Option<BlockIter>,
    /// Where the block in `data` lies.
    loaded: Option<u64>,
    positioned: bool,
    /// Whether only keys with the prefix of the key sought are wanted.
    confined: bool,
    approach: Approach,
    readahead: Readahead,
    error: Option<Error>,
    /// What is shown of an entry, where that is not what is stored.
    shown: Option<Box<Shown>>,
}

impl TableIterator {
    pub(super) fn new(table: Arc<Table>, settings: IterSettings, own: Option<OwnFile>) -> Self {
        let memory = settings.notes_readahead.then(|| table.cursor_memory()).flatten();
        let readahead = Readahead::new(settings.readahead_size, settings.auto_readahead, own);
        let shown = Shown::of(&table);
        let mut settings = settings;
        if let Some(bound) = settings.upper_bound.as_mut().filter(|_| table.padding > 0) {
            bound.truncate(bound.len().saturating_sub(table.padding));
        }
        Self {
            shown,
            readahead: readahead.noted_as(memory).mapped_if(settings.maps_readahead),
            table,
            settings,
            cursor: IndexCursor::default(),
            data: None,
            loaded: None,
            positioned: false,
            confined: false,
            approach: Approach::default(),
            error: None,
        }
    }

    /// Stands nowhere and holds no block.
    pub fn rest(&mut self) {
        self.positioned = false;
        self.error = None;
        (self.data, self.loaded) = (None, None);
        if let Some(shown) = &mut self.shown {
            shown.forget();
        }
        self.approach.next = None;
        self.cursor = IndexCursor::default();
        self.readahead.forget();
    }

    #[inline]
    fn current(&self) -> &BlockIter {
        self.data.as_ref().expect("a positioned cursor has a block")
    }

    /// Notes what is shown, after a movement.
    #[inline]
    fn show(&mut self) {
        if self.shown.is_some() {
            self.note_shown();
        }
    }

    #[cold]
    fn note_shown(&mut self) {
        let (Some(shown), Some(data)) = (&mut self.shown, &self.data) else { return };
        if !self.positioned || self.error.is_some() {
            return shown.forget();
        }
        if let Err(error) = shown.note(data, &self.table.source, &self.settings.read) {
            shown.forget();
            self.error = Some(self.locate(error));
            (self.positioned, self.loaded) = (false, None);
        }
    }

    /// The value, where it is not what is stored.
    #[inline]
    fn whole_value(&self) -> Option<&WholeValue> {
        self.shown.as_ref().and_then(|shown| shown.value())
    }

    /// Runs a movement; an error ends the iteration.
    fn go(&mut self, movement: impl FnOnce(&mut Self) -> Result<()>) {
        self.positioned = false;
        self.error = None;
        if let Err(error) = movement(self) {
            self.positioned = false;
            self.loaded = None;
            self.error = Some(error);
        }
        self.show();
    }

    /// Makes `data` the block of the index cursor's entry; `false` if there is no entry.
    fn load(&mut self) -> Result<bool> {
        let Some((handle, seen)) = self.cursor.place(&self.table) else { return Ok(false) };
        if self.loaded == Some(handle.offset) {
            return Ok(true);
        }
        self.loaded = None;
        let source = &self.table.source;
        let time = perf::time(PerfMetric::NewTableBlockIterNanos);
        let level = self.settings.level.map(perf::at_level);
        let block = match &self.settings.read_cache_hits {
            None => {
                source.data_block((handle, seen), &self.settings.read, Some(&mut self.readahead))?
            }
            Some(read_cache_hits) => source.data_block_noting(
                handle,
                &self.settings.read,
                &mut self.readahead,
                read_cache_hits,
            )?,
        };
        drop((time, level));
        match &mut self.data {
            Some(data) => data.reset(block),
            None => {
                let comparator = self.table.comparator.clone();
                self.data = Some(BlockIter::new(block, comparator, self.table.global_sequence));
            }
        }
        self.loaded = Some(handle.offset);
        Ok(true)
    }

    /// Notes that the scan will come to the block behind the current one, or before it.
    fn look_ahead(&mut self, back: bool) {
        self.approach.next = None;
        let Some(data) = self
            .data
            .as_ref()
            .filter(|data| self.settings.read_cache_hits.is_none() && data.is_coarse())
        else {
            return;
        };
        self.approach.next = Some((0, back));
        self.approach.follow(data, &self.cursor, &self.table);
    }

    /// Loads the block of the index cursor's entry and moves within it.
    fn load_and(&mut self, movement: impl FnOnce(&mut BlockIter)) -> Result<bool> {
        if !self.load()? {
            return Ok(false);
        }
        if let Some(data) = &mut self.data {
            let time = perf::time(PerfMetric::BlockSeekNanos);
            movement(data);
            drop(time);
            self.positioned = data.valid();
            if !self.positioned {
                data.status().map_err(|error| self.locate(error))?;
            }
        }
        Ok(true)
    }

    /// Adds to an error in which block of the table it is.
    pub fn locate(&self, error: Error) -> Error {
        error.at(self.table.source.path()).at_offset(self.loaded.unwrap_or(0))
    }

    /// Where the block lies on which the cursor stands.
    pub(super) fn block_offset(&self) -> Option<u64> {
        self.loaded
    }

    /// Goes on to the first entry of the blocks behind the current one.
    fn forward(&mut self) -> Result<()> {
        while !self.positioned {
            if self.beyond_bound() {
                return Ok(());
            }
            self.cursor.next(&self.table, &self.settings.read)?;
            if !self.load_and(BlockIter::seek_to_first)? {
                return Ok(());
            }
            self.look_ahead(false);
        }
        Ok(())
    }

    /// Whether all blocks behind the current one lie beyond the upper bound.
    fn beyond_bound(&self) -> bool {
        let Some(bound) = &self.settings.upper_bound else { return false };
        self.cursor.compare_user_key(&self.table, bound).is_some_and(Ordering::is_ge)
    }

    /// Goes back to the last entry of the blocks before the current one.
    fn backward(&mut self) -> Result<()> {
        while !self.positioned {
            self.cursor.prev(&self.table, &self.settings.read)?;
            if !self.load_and(BlockIter::seek_to_last)? {
                return Ok(());
            }
            self.look_ahead(true);
        }
        Ok(())
    }

    #[cold]
    fn leave_block(&mut self, leave: impl FnOnce(&mut Self) -> Result<()>) {
        self.go(|iter| {
            if let Some(data) = &iter.data {
                data.status().map_err(|error| iter.locate(error))?;
            }
            leave(iter)
        });
    }

    /// Whether the prefix filter rules a seek out. It knows nothing of keys with other prefixes.
    fn ruled_out(&self, target: InternalKey<'_>) -> Result<bool> {
        if !(self.confined && self.settings.prefix_same_as_start) {
            return Ok(false);
        }
        Ok(!self.table.may_contain_prefix(target.user_key(), &self.settings.read)?)
    }
}

impl InternalIterator for TableIterator {
    #[inline]
    fn valid(&self) -> bool {
        self.positioned
    }

    fn seek_to_first(&mut self) {
        self.go(|iter| {
            iter.cursor.seek_to_first(&iter.table, &iter.settings.read)?;
            if iter.load_and(BlockIter::seek_to_first)? {
                iter.forward()?;
            }
            Ok(())
        });
    }

    fn seek_to_last(&mut self) {
        self.go(|iter| {
            iter.cursor.seek_to_last(&iter.table, &iter.settings.read)?;
            if iter.load_and(BlockIter::seek_to_last)? {
                iter.backward()?;
            }
            Ok(())
        });
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        let stored = self.shown.as_ref().map(|shown| shown.place(target, false));
        let target = stored.as_ref().map_or(target, InternalKeyBuf::as_key);
        self.go(|iter| {
            if iter.ruled_out(target)? {
                return Ok(());
            }
            iter.cursor.seek(&iter.table, target, &iter.settings.read)?;
            if iter.load_and(|data| data.seek(target))? {
                iter.look_ahead(false);
                iter.forward()?;
            }
            Ok(())
        });
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        let stored = self.shown.as_ref().map(|shown| shown.place(target, true));
        let target = stored.as_ref().map_or(target, InternalKeyBuf::as_key);
        self.go(|iter| {
            if iter.ruled_out(target)? {
                return Ok(());
            }
            iter.cursor.seek(&iter.table, target, &iter.settings.read)?;
            if iter.cursor.handle(&iter.table).is_none() {
                iter.cursor.seek_to_last(&iter.table, &iter.settings.read)?;
            }
            if iter.load_and(|data| data.seek_for_prev(target))? {
                iter.look_ahead(true);
                iter.backward()?;
            }
            Ok(())
        });
    }

    fn confine(&mut self, to_prefix: bool) {
        self.confined = to_prefix;
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.positioned);
        let Some(data) = &mut self.data else { return };
        data.next();
        self.approach.follow(data, &self.cursor, &self.table);
        if !data.valid() {
            self.leave_block(Self::forward);
        }
        self.show();
    }

    #[inline]
    fn prev(&mut self) {
        debug_assert!(self.positioned);
        let Some(data) = &mut self.data else { return };
        data.prev();
        self.approach.follow(data, &self.cursor, &self.table);
        if !data.valid() {
            self.leave_block(Self::backward);
        }
        self.show();
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        match &self.shown {
            None => self.current().key(),
            Some(shown) => shown.key(),
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self.whole_value() {
            None => self.current().value(),
            Some(value) => value.bytes(),
        }
    }

    fn pin_value(&self) -> Option<PinnedValue> {
        match self.whole_value() {
            None => Some(self.current().pin_value()),
            Some(value) => Some(value.pin()),
        }
    }

    fn upcoming(&self, visit: &mut dyn FnMut(u8, &[u8]) -> bool) {
        // Others do not know references to values within the table.
        if !self.shown.as_ref().is_some_and(|shown| shown.has_records()) {
            self.current().upcoming(visit);
        }
    }

    fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for TableIterator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableIterator({:?})", self.table)
    }
}
