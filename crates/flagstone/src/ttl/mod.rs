//! A database whose values carry the time of their write: RocksDB's `DBWithTTL`, with additions.
//!
//! It is a handle over a [`Db`] that adds stamps to what is written and removes them from what is
//! read (`crate::expiry` has the grammar, the filter and the merge operator). In a family that
//! reads strictly, an expired value is not found. Otherwise it is found until a compaction removes
//! it, as in RocksDB.
//!
//! - `open`: opening, families and their times to live
//! - `access`: writing and reading; `async_read`: reading for tasks; `iter`: cursors
//! - `pieces`: values written and read piece by piece

mod access;
mod async_read;
mod iter;
mod open;
mod pieces;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::base::sync::{ArcSwap, Mutex};
use crate::base::{ColumnFamilyId, Error, Result};
use crate::db::{ColumnFamily, Db};

pub use crate::expiry::{
    Lifetime, STAMP_ETERNAL, STAMP_MAX, STAMP_MIN, STAMP_SIZE, StampUnderWay, TTL_MAX,
    TtlCompactionFilterFactory, TtlMergeOperator, no_stamp, split, stamped, unstamped,
};
pub use access::ExpiringValue;
pub use async_read::TtlAsyncIter;
pub use iter::TtlIter;
pub use open::TtlFamily;
pub use pieces::TtlBlobWriter;

/// How long the values of a family live, and what reads make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TtlOptions {
    /// The time to live, in seconds, up to 2^31 - 1; 0 for ever.
    pub ttl_seconds: u64,
    /// Reads and cursors pass over what has expired. Without it they find it until a compaction has
    /// dropped it, as in RocksDB. A cursor then looks at every value, so it reads the blob files of
    /// large ones.
    pub strict_reads: bool,
    /// What is written without an expiry of its own lives for ever; the time to live only says
    /// which expiries keys can have ([`TtlDb::put_until`]). RocksDB, opened with the same time to
    /// live, drops it that long after 2038.
    pub eternal_values: bool,
}

/// Ten years, in seconds: keys may expire from 2023 to 2048.
const TEN_YEARS: u64 = 10 * 365 * 24 * 60 * 60;

impl TtlOptions {
    /// Keys expire that are given an expiry of their own, from 2023 to 2048, and are not found any
    /// longer; all others live for ever. A database must always be opened so, since the time to
    /// live (ten years) belongs to what stands in the stamps.
    pub fn per_key() -> Self {
        Self { ttl_seconds: TEN_YEARS, strict_reads: true, eternal_values: true }
    }

    /// Values live so long, and are not found any longer.
    pub fn strict(ttl_seconds: u64) -> Self {
        Self { ttl_seconds, strict_reads: true, eternal_values: false }
    }
}

/// What is known of a family.
#[derive(Debug, Clone)]
struct Rule {
    lifetime: Arc<Lifetime>,
    is_strict: bool,
}

/// The families with a time to live. To look costs no line of memory that others change.
struct Rules {
    known: ArcSwap<BTreeMap<ColumnFamilyId, Rule>>,
    adding: Mutex<()>,
}

impl Rules {
    fn of(known: BTreeMap<ColumnFamilyId, Rule>) -> Arc<Self> {
        Arc::new(Self { known: ArcSwap::from_pointee(known), adding: Mutex::default() })
    }

    fn add(&self, family: ColumnFamilyId, rule: Rule) {
        let _adding = self.adding.lock();
        let mut known = BTreeMap::clone(&self.known.load());
        known.insert(family, rule);
        self.known.store(Arc::new(known));
    }
}

/// A database whose values carry the time of their writing, and expire.
///
/// Byte for byte RocksDB's `DBWithTTL`: each reads what the other wrote. Cheap to clone and usable
/// from any thread.
///
/// The time to live belongs to the opening, not to the data: opened with a shorter one, a database
/// loses at its next compactions what is older. Opened without a TTL handle its values end with
/// four bytes more. Merging is writing: the result carries the time of the merge, as in RocksDB. A
/// key may have an expiry of its own ([`TtlDb::put_until`]).
#[derive(Clone)]
pub struct TtlDb {
    base: Db,
    rules: Arc<Rules>,
}

impl TtlDb {
    /// The database underneath, whose values carry stamps. What concerns no values (flushes,
    /// compactions, snapshots, properties, closing) is done with it.
    pub fn base(&self) -> &Db {
        &self.base
    }

    /// How long values of the family live, in seconds; 0 for ever.
    ///
    /// # Errors
    /// `InvalidArgument` for a family that was made without a time to live, or of another database.
    pub fn ttl(&self, family: &ColumnFamily) -> Result<u64> {
        self.base.check_family(family)?;
        Ok(self.rule(family.id())?.lifetime.seconds())
    }

    /// Changes how long values of the family live, from now on and those stored, too: also the
    /// expiries that keys have of their own move by as much.
    ///
    /// # Errors
    /// As [`TtlDb::ttl`]; `InvalidArgument` for more than 2^31 - 1 seconds.
    pub fn set_ttl(&self, family: &ColumnFamily, seconds: u64) -> Result<()> {
        self.base.check_family(family)?;
        self.rule(family.id())?.lifetime.set_seconds(seconds)
    }

    /// Whether values of the family carry stamps.
    pub(crate) fn expires(&self, family: ColumnFamilyId) -> bool {
        self.rules.known.load().contains_key(&family)
    }

    fn rule(&self, family: ColumnFamilyId) -> Result<Rule> {
        self.rules.known.load().get(&family).cloned().ok_or_else(|| {
            Error::invalid_argument(format!(
                "column family {} has no time to live; create one with create_expiring_family (or TtlDb::create_column_family)",
                family.0
            ))
        })
    }
}

impl fmt::Debug for TtlDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TtlDb({})", self.base.path().display())
    }
}
