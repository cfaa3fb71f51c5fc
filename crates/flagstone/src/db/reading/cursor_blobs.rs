//! The large values that an iterator asks for.
//!
//! 1. A value is fetched when the iterator is asked for it: a scan over keys reads no blob file.
//! 2. Values in the cache: a scan looks at the entries to come in its block, and asks for the
//!    memory of several values at a time ([`Asked`]).
//! 3. Values one behind the other in a file are read together ([`BlobReadahead`]).
//! 4. Values here and there in files: where reads wait for the device, the system is told of
//!    several at once ([`Scattered`]).

use std::sync::Arc;

use bytes::Bytes;

use crate::base::sync::Mutex;
use crate::base::{FileNumber, Result, SnapshotList};
use crate::blob::{BlobIndex, BlobReadahead, RECORD_HEADER_SIZE};
use crate::cache::{CacheKey, Measured, MemoryAccount, MemoryKind};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::blob_values::BlobPlace;
use crate::db::reading::read::read_settings;
use crate::db::tables::Tables;
use crate::env::{Advice, ReadLimits};
use crate::iter::{Upcoming, ValueResolver};
use crate::options::ReadOptions;
use crate::sst::{BlockCache, CachedBlock, ReadSettings};

/// Fetches blobs for a cursor; keeps the version alive that names their files.
pub(in crate::db) struct CursorBlobs {
    pub(in crate::db) tables: Arc<Tables>,
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) current: Arc<SuperVersion>,
    pub(in crate::db) options: ReadOptions,
    /// Nobody else ever holds these locks.
    pub(in crate::db) ahead: Mutex<CountedReadahead>,
    pub(in crate::db) asked: Mutex<Asked>,
    pub(in crate::db) snapshots: Arc<SnapshotList>,
    pub(in crate::db) limits: Option<Arc<ReadLimits>>,
}

impl ValueResolver for CursorBlobs {
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        self.read(user_key, &self.tables.place_of_blob(&self.family, user_key, blob_index)?, None)
    }

    fn resolve_in_scan(
        &self,
        user_key: &[u8],
        blob_index: &[u8],
        upcoming: &Upcoming<'_>,
    ) -> Result<Bytes> {
        let place = self.tables.place_of_blob(&self.family, user_key, blob_index)?;
        if let Some(key) = place.cached_as
            && place.index.size < ASKED_BELOW
        {
            let key_of = |index: &[u8]| self.tables.cache_key_of(&BlobIndex::decode(index).ok()?);
            self.asked.lock().come_to(key, self.tables.caches().blobs(), |visit| {
                upcoming(&mut |index| key_of(index).is_none_or(&mut *visit));
            });
        }
        self.read(user_key, &place, Some(upcoming))
    }
}

impl CursorBlobs {
    fn read(
        &self,
        user_key: &[u8],
        place: &BlobPlace,
        upcoming: Option<&Upcoming<'_>>,
    ) -> Result<Bytes> {
        let settings = read_settings(&self.options);
        let value = match self.tables.cached_blob(place.cached_as, &settings) {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => ReadLimits::within(self.limits.as_ref(), || {
                self.read_uncached(user_key, place, &settings, upcoming)
            }),
            Err(error) => Err(error),
        };
        value.inspect_err(|error| self.tables.suspects().add(&self.family, error))
    }

    fn read_uncached(
        &self,
        user_key: &[u8],
        place: &BlobPlace,
        settings: &ReadSettings,
        upcoming: Option<&Upcoming<'_>>,
    ) -> Result<Bytes> {
        let mut ahead = self.ahead.lock();
        let leads = match upcoming {
            Some(upcoming) if ahead.scattered.waits && !ahead.scattered.come_to(&place.index) => {
                self.tell_of(&mut ahead.scattered, user_key, upcoming);
                true
            }
            _ => false,
        };
        let open =
            || self.tables.named_blob_file(&self.family, &self.current.version, place.index.file);
        let blobs = Some(&mut ahead.blobs);
        let value = self.tables.read_uncached_blob(user_key, place, settings, blobs, open);
        let alone_us = ahead.blobs.take_alone_us();
        ahead.scattered.note(alone_us, leads);
        ahead.count();
        value
    }

    /// Has the system fetch the values that a scan comes to next.
    #[cold]
    fn tell_of(&self, scattered: &mut Scattered, user_key: &[u8], upcoming: &Upcoming<'_>) {
        let most = scattered.next_told();
        let mut bytes = 0u64;
        upcoming(&mut |index| {
            let Ok(index) = BlobIndex::decode(index) else { return true };
            let cached_as = self.tables.blob_cache_key(&self.family, &index);
            if cached_as.is_some_and(|key| self.tables.has_cached(key)) {
                return true;
            }
            let named =
                self.tables.named_blob_file(&self.family, &self.current.version, index.file);
            // What is wrong with the file, if anything is, the read will tell.
            let Ok(reader) = named else { return true };
            if reader.file().is_direct() {
                return false;
            }
            // Its key is about as long as this one.
            let before = RECORD_HEADER_SIZE as u64 + user_key.len() as u64;
            let offset = index.offset.saturating_sub(before);
            let length = index.size.saturating_add(before);
            reader.file().advise(Advice::WillNeed { offset, length });
            scattered.told.push((index.file, index.offset));
            bytes = bytes.saturating_add(length);
            scattered.told.len() < most && bytes < TOLD_BYTES_MAX
        });
    }

    /// Lets go of what was read ahead.
    pub(in crate::db) fn forget_ahead(&self) {
        let mut ahead = self.ahead.lock();
        ahead.blobs.forget();
        ahead.count();
    }
}

/// What a cursor reads ahead of blob files, in the account.
pub(in crate::db) struct CountedReadahead {
    blobs: BlobReadahead,
    scattered: Scattered,
    memory: Measured,
}

impl CountedReadahead {
    pub(in crate::db) fn new(account: &Arc<MemoryAccount>) -> Self {
        let memory = account.measured(MemoryKind::Cursors);
        Self { blobs: BlobReadahead::default(), scattered: Scattered::default(), memory }
    }

    fn count(&mut self) {
        self.memory.set(self.blobs.memory());
    }
}

/// The system is told of so many values at first, of twice as many up to so many times while a scan
/// comes to all that it was told of, and of at most so many bytes and one value.
const TOLD_FIRST: usize = 16;
const TOLD_DOUBLED_MAX: usize = 2;
const TOLD_BYTES_MAX: u64 = 4 << 20;

/// Who takes so many microseconds for a read waits for the device.
const WAITS_US: u64 = 30;

/// Values of a scan that lie here and there in blob files, and not in memory. A device reads many
/// of them in the time of one, so the system is told of several at once, if reads were seen to
/// wait: of values in the page cache it need not be told.
#[derive(Default)]
struct Scattered {
    waits: bool,
    told: Vec<(FileNumber, u64)>,
    /// So many of them the scan has come to.
    passed: usize,
    /// How often in a row it has come to all.
    in_a_row: usize,
}

impl Scattered {
    /// Forgets what the system was told of; of how many it is to be told next. A short scan comes
    /// to few beyond the first.
    fn next_told(&mut self) -> usize {
        let has_come_to_all = !self.told.is_empty() && self.passed == self.told.len();
        self.in_a_row = if has_come_to_all { self.in_a_row + 1 } else { 0 };
        self.told.clear();
        self.passed = 0;
        TOLD_FIRST << self.in_a_row.saturating_sub(1).min(TOLD_DOUBLED_MAX)
    }

    /// Whether the system was told of this value.
    fn come_to(&mut self, index: &BlobIndex) -> bool {
        let place = (index.file, index.offset);
        let at = self.told[self.passed..].iter().position(|told| *told == place);
        self.passed += at.map_or(0, |at| at + 1);
        at.is_some()
    }

    /// How long it took to read a value that was not in order. What the system was told of says
    /// nothing about the others.
    fn note(&mut self, alone_us: Option<u64>, leads: bool) {
        match alone_us {
            Some(us) if us >= WAITS_US => self.waits = true,
            Some(_) if leads => self.waits = false,
            _ => {}
        }
    }
}

/// Longer values are not asked for: whoever reads so much of each hardly notices what it takes to
/// find it, and so few of them fit into a cache that what finds them mostly is in the processor's.
const ASKED_BELOW: u64 = 64 << 10;

/// So many values at a time are asked for where a scan begins, and where it goes on.
const FIRST_ASKED: usize = 4;
const ASKED: usize = 8;

/// The cached values that a scan is to come to, whose memory was asked for: several at a time,
/// since each lies at the end of a chain of places that the processor would wait for one by one.
#[derive(Default)]
pub(in crate::db) struct Asked {
    keys: Vec<CacheKey>,
    /// So many of them the scan has come to.
    passed: usize,
}

impl Asked {
    /// Notes that the scan has come to `key`, and asks for more if that is none of those asked for;
    /// `upcoming` shows what it comes to then.
    fn come_to(
        &mut self,
        key: CacheKey,
        cache: &BlockCache,
        upcoming: impl FnOnce(&mut dyn FnMut(CacheKey) -> bool),
    ) {
        if let Some(at) = self.keys[self.passed..].iter().position(|asked| *asked == key) {
            self.passed += at + 1;
            return;
        }
        let goes_on = self.passed > 0 && self.passed == self.keys.len();
        let most = if goes_on { ASKED } else { FIRST_ASKED };
        self.keys.clear();
        self.keys.push(key);
        self.passed = 1;
        upcoming(&mut |key| {
            self.keys.push(key);
            self.keys.len() < most
        });
        if self.keys.len() == 1 {
            return;
        }
        for step in 0..=CachedBlock::LAST_STEP_TO_BLOB {
            for &key in &self.keys {
                cache.approach(key, step, CachedBlock::prefetch_blob);
            }
        }
    }
}

#[cfg(test)]
mod tests;
