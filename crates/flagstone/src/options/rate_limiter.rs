//! A rate limiter by name, as RocksDB makes one from `rate_limiter_bytes_per_sec`.

use std::sync::Arc;

use super::assembled::Options;
use super::value::SettingValue;
use crate::base::Result;
use crate::env::{RateLimiter, RateLimiterOptions};

pub(super) const RATE_LIMITER: &str = "rate_limiter_bytes_per_sec";

impl Options {
    /// So many bytes a second, or 0 for no limiter. One that others may share goes on without this database.
    pub(super) fn set_rate_limiter(&mut self, value: &str) -> Result<()> {
        let mut bytes_per_second = 0u64;
        bytes_per_second.assign(value)?;
        let limiter = |clock| RateLimiter::with_clock(RateLimiterOptions::new(bytes_per_second), clock);
        self.rate_limiter = match bytes_per_second {
            0 => None,
            _ => Some(Arc::new(limiter(self.env.clock.clone())?)),
        };
        Ok(())
    }
}
