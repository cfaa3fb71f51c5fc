//! A rate limiter by name, as `db_bench` makes one from `rate_limiter_bytes_per_sec` and
//! `rate_limiter_auto_tuned`.

use std::sync::Arc;

use super::assembled::Options;
use super::value::SettingValue;
use crate::base::Result;
use crate::env::{RateLimiter, RateLimiterOptions};

/// Bytes a second; 0 for no limiter.
pub(super) const RATE_LIMITER: &str = "rate_limiter_bytes_per_sec";
/// Whether it tunes itself. May come first.
pub(super) const AUTO_TUNED: &str = "rate_limiter_auto_tuned";

impl Options {
    /// Sets one of the two. A limiter that others may share goes on without this database.
    pub(super) fn set_rate_limiter(&mut self, name: &str, value: &str) -> Result<()> {
        let wanted = match name {
            AUTO_TUNED => {
                self.rate_limiter_auto_tuned.assign(value)?;
                let Some(limiter) = &self.rate_limiter else { return Ok(()) };
                RateLimiterOptions { auto_tuned: self.rate_limiter_auto_tuned, ..limiter.options() }
            }
            _ => {
                let mut bytes_per_second = 0u64;
                bytes_per_second.assign(value)?;
                let auto_tuned = self.rate_limiter_auto_tuned;
                RateLimiterOptions { auto_tuned, ..RateLimiterOptions::new(bytes_per_second) }
            }
        };
        self.rate_limiter = match wanted.bytes_per_second {
            0 => None,
            _ => Some(Arc::new(RateLimiter::with_clock(wanted, self.env.clock.clone())?)),
        };
        Ok(())
    }

    /// The text of one of the two.
    pub(super) fn rate_limiter_text(&self, name: &str) -> String {
        let limiter = self.rate_limiter.as_ref().map(|limiter| limiter.options());
        match name {
            AUTO_TUNED => {
                limiter.map_or(self.rate_limiter_auto_tuned, |limiter| limiter.auto_tuned).text()
            }
            _ => limiter.map_or(0, |limiter| limiter.bytes_per_second).text(),
        }
    }
}
