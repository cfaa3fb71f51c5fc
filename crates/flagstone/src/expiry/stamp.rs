//! The time stamp of a value.
//!
//! ```text
//! stored value   = value, stamp
//! stored operand = operand, stamp
//! stamp          = fixed32 seconds since 1970, from 1368146402 to 2147483647
//! ```
//!
//! Deletions and wide-column entities have no stamp. In a family with time to live `ttl`, a value
//! is expired if `ttl > 0` and `stamp + ttl < now`: it lives to the end of the second `stamp +
//! ttl`.
//!
//! The stamp is the time of the write. For a value with its own expiry time it is that time minus
//! `ttl`. A reader that knows the family's time to live sees the value expire on time; any other
//! reader, such as RocksDB's tools, sees an ordinary value of a TTL database.
//!
//! The largest stamp, in 2038, marks a value that never expires, whatever the family's time to
//! live. RocksDB keeps such a value until 2038 plus the time to live.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{Error, Remedy, Result, counted};
use crate::env::Clock;

/// Bytes of a stamp.
pub const STAMP_SIZE: usize = 4;
/// The earliest time that RocksDB takes for a stamp, in seconds since 1970.
pub const STAMP_MIN: u64 = 1_368_146_402;
/// The latest: RocksDB's stamps are signed.
pub const STAMP_MAX: u64 = i32::MAX as u64;
/// The stamp of what lives for ever.
pub const STAMP_ETERNAL: u32 = STAMP_MAX as u32;
/// The longest time to live, in seconds.
pub const TTL_MAX: u64 = i32::MAX as u64;

/// How long the values of a family live.
pub struct Lifetime {
    seconds: AtomicU64,
    clock: Arc<dyn Clock>,
    /// Readers do not find what has expired.
    is_strict: bool,
    /// What is written without an expiry of its own lives for ever.
    is_eternal: bool,
    /// How many operands with which stamps are on their way into a memtable.
    under_way: Mutex<BTreeMap<u32, usize>>,
}

/// An operand's stamp, for as long as the operand is on its way into a memtable.
pub struct StampUnderWay {
    lifetime: Arc<Lifetime>,
    /// The stamp.
    pub stamp: u32,
}

impl Drop for StampUnderWay {
    fn drop(&mut self) {
        let mut under_way = self.lifetime.under_way.lock();
        let count = under_way.get_mut(&self.stamp).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            under_way.remove(&self.stamp);
        }
    }
}

impl Lifetime {
    /// So many seconds; 0 for ever.
    ///
    /// # Errors
    /// `InvalidArgument` for more than RocksDB can hold, which is [`TTL_MAX`].
    pub fn new(seconds: u64, clock: Arc<dyn Clock>) -> Result<Self> {
        let lifetime = Self {
            seconds: AtomicU64::new(0),
            clock,
            is_strict: false,
            is_eternal: false,
            under_way: Mutex::default(),
        };
        lifetime.set_seconds(seconds)?;
        Ok(lifetime)
    }

    /// The same, where readers do not find what has expired, if so, and values live for ever unless
    /// they have an expiry of their own, if so.
    #[must_use]
    pub fn with_rules(self, is_strict: bool, is_eternal: bool) -> Self {
        Self { is_strict, is_eternal, ..self }
    }

    /// Whether readers do not find what has expired.
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// The time to live in seconds; 0 for ever.
    pub fn seconds(&self) -> u64 {
        self.seconds.load(Ordering::Relaxed)
    }

    /// Changes the time to live, of what is stored already, too.
    ///
    /// # Errors
    /// As [`Lifetime::new`].
    pub fn set_seconds(&self, seconds: u64) -> Result<()> {
        if seconds > TTL_MAX {
            return Err(Error::invalid_argument(format!(
                "a time to live of {} is longer than {TTL_MAX}; use 0 for values that never expire",
                counted(seconds, "second")
            )));
        }
        self.seconds.store(seconds, Ordering::Relaxed);
        Ok(())
    }

    /// The present time, in seconds since 1970.
    pub fn now(&self) -> u64 {
        self.clock.unix_seconds()
    }

    /// The stamp of what is written now.
    pub fn stamp_of_now(&self) -> u32 {
        self.now().clamp(STAMP_MIN, STAMP_MAX - 1) as u32
    }

    /// The stamp of an operand that is merged now; to be held until that is written.
    pub fn stamp_of_operand(self: &Arc<Self>) -> StampUnderWay {
        let mut under_way = self.under_way.lock();
        let stamp = self.stamp_of_now();
        *under_way.entry(stamp).or_default() += 1;
        StampUnderWay { lifetime: self.clone(), stamp }
    }

    /// The present time, or the earliest stamp of an operand that is on its way into a memtable:
    /// what expired before that nobody merges onto any longer.
    pub fn settled(&self) -> u64 {
        let under_way = self.under_way.lock();
        let first = under_way.first_key_value().map(|(stamp, _)| u64::from(*stamp));
        self.now().min(first.unwrap_or(u64::MAX))
    }

    /// The stamp of a value that is written at this stamp's time and has no expiry of its own.
    pub fn stamp_of_value(&self, written: u32) -> u32 {
        if self.is_eternal { STAMP_ETERNAL } else { written }
    }

    /// The last second in which a value with this stamp lives; `None` if it lives for ever.
    pub fn expiry_of(&self, stamp: u32) -> Option<u64> {
        let seconds = self.seconds();
        (seconds > 0 && stamp != STAMP_ETERNAL).then(|| u64::from(stamp) + seconds)
    }

    /// The stamp of a value whose last second is `expiry`.
    ///
    /// # Errors
    /// `InvalidArgument` if values live for ever, or no stamp says so.
    pub fn stamp_of_expiry(&self, expiry: u64) -> Result<u32> {
        let seconds = self.seconds();
        if seconds == 0 {
            return Err(Error::invalid_argument(
                "a single value can expire only in a family with a time to live; open the family with one",
            ));
        }
        let stamp =
            expiry.checked_sub(seconds).filter(|stamp| (STAMP_MIN..STAMP_MAX).contains(stamp));
        stamp.map(|stamp| stamp as u32).ok_or_else(|| {
            Error::invalid_argument(format!(
                "with a time to live of {}, values can expire from {} to {} (seconds since 1970), not at \
                 {expiry}",
                counted(seconds, "second"),
                STAMP_MIN + seconds,
                STAMP_MAX - 1 + seconds
            ))
        })
    }

    /// Whether a value with this stamp has expired at the time `now`.
    pub fn is_stale(&self, stamp: u32, now: u64) -> bool {
        self.expiry_of(stamp).is_some_and(|expiry| expiry < now)
    }
}

impl fmt::Debug for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lifetime({} s)", self.seconds())
    }
}

/// The value with its stamp.
pub fn stamped(value: &[u8], stamp: u32) -> Vec<u8> {
    let mut stored = Vec::with_capacity(value.len() + STAMP_SIZE);
    stored.extend_from_slice(value);
    stored.extend_from_slice(&stamp.to_le_bytes());
    stored
}

/// The value and its stamp; `None` if it can have none.
pub fn split(stored: &[u8]) -> Option<(&[u8], u32)> {
    let (value, stamp) = stored.split_last_chunk::<STAMP_SIZE>()?;
    let stamp = u32::from_le_bytes(*stamp);
    (STAMP_MIN..=STAMP_MAX).contains(&u64::from(stamp)).then_some((value, stamp))
}

/// As [`split`], of what is stored under `key`.
///
/// # Errors
/// `Corruption` if it has no stamp.
pub fn unstamped<'a>(key: &[u8], stored: &'a [u8]) -> Result<(&'a [u8], u32)> {
    split(stored).ok_or_else(|| no_stamp(key, stored.len() as u64))
}

/// What is said of `stored_size` bytes under `key` that end without a stamp.
pub fn no_stamp(key: &[u8], stored_size: u64) -> Error {
    Error::corruption(format!(
        "the value of key '{}', {stored_size} bytes long, ends with no time from 2013 to 2038: it was not written to a TTL \
         database",
        key.escape_ascii()
    ))
    .advise(Remedy::ReadUnstamped)
}
