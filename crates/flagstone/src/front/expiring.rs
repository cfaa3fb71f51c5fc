//! Times to live and expiries, as programs give and see them.
//!
//! What is stored counts whole seconds (`crate::expiry`). A time to live is rounded up to them, so
//! no value is gone before its time.

use std::time::{Duration, SystemTime};

use crate::base::{Error, Result};
use crate::db::Value;
use crate::ttl;

/// A value, and when it expires.
#[derive(Debug, Clone)]
pub struct ExpiringValue {
    /// The value.
    pub value: Value,
    /// When the value is gone: it is found before that moment, which is a whole second. `None` if
    /// it never expires.
    pub expiry: Option<SystemTime>,
}

impl From<ttl::ExpiringValue> for ExpiringValue {
    fn from(found: ttl::ExpiringValue) -> Self {
        let gone = |last: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(last + 1);
        Self { value: found.value, expiry: found.expiry.map(gone) }
    }
}

/// The seconds of a time to live, rounded up; `None` for ever.
///
/// # Errors
/// `InvalidArgument` for zero, which could mean at once or for ever.
pub(super) fn whole_seconds(ttl: Duration) -> Result<Option<u64>> {
    if ttl == Duration::MAX {
        return Ok(None);
    }
    if ttl.is_zero() {
        return Err(Error::invalid_argument(
            "the time to live is zero; give more than that, or Duration::MAX for a value that never expires",
        ));
    }
    Ok(Some(ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0))))
}

/// The time to live that an OPTIONS file tells of, where 0 is for ever.
pub(super) fn recorded(seconds: u64) -> Duration {
    if seconds == 0 { Duration::MAX } else { Duration::from_secs(seconds) }
}

#[cfg(test)]
mod tests;
