//! The background work of a follower: it catches up by itself every so often.

use std::sync::Arc;
use std::time::Duration;

use crate::base::Result;
use crate::base::sync::{AtomicU64, Ordering};
use crate::db::opening::following::Following;
use crate::env::{BackgroundThreads, JobLimits, Member, MemberId, Next, Role, Seats};
use crate::options::Options;

/// A follower's place among threads: its own, or those that it shares with databases. It ends with
/// this.
pub(super) struct Refresh {
    threads: Arc<BackgroundThreads>,
    member: MemberId,
}

impl Refresh {
    /// Catches up as `follower_refresh_catchup_period_ms` and the like say; `None` if never.
    ///
    /// # Errors
    /// `IoError` if the system has no thread left.
    pub(super) fn begin(following: &Arc<Following>, options: &Options) -> Result<Option<Self>> {
        let [period, wait] =
            [options.follower_refresh_catchup_period_ms, options.follower_catchup_retry_wait_ms]
                .map(Duration::from_millis);
        let attempts_most = options.follower_catchup_retry_count;
        if period.is_zero() || attempts_most == 0 {
            return Ok(None);
        }
        let own = || Arc::new(BackgroundThreads::of([0, 1], options.low_priority(), &options.env));
        let threads = options.background_threads.clone().unwrap_or_else(own);
        let member = threads.join(Arc::new(Refresher {
            following: following.clone(),
            period,
            wait,
            attempts_most,
            attempts: AtomicU64::new(0),
            seats: Seats::default(),
        }))?;
        Ok(Some(Self { threads, member }))
    }
}

impl Drop for Refresh {
    fn drop(&mut self) {
        self.threads.leave(self.member);
    }
}

struct Refresher {
    following: Arc<Following>,
    period: Duration,
    /// Between two attempts, of which there are up to `attempts_most` a period.
    wait: Duration,
    attempts_most: u64,
    /// Those of this period, which have failed.
    attempts: AtomicU64,
    seats: Seats,
}

impl Member for Refresher {
    fn work(&self, role: Role) -> Next {
        // Nothing is ever flushed.
        if role == Role::Flush {
            return Next::After(self.period);
        }
        let Err(error) = self.following.catch_up() else {
            self.attempts.store(0, Ordering::Relaxed);
            return Next::After(self.period);
        };
        let attempts = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        if attempts < self.attempts_most {
            return Next::After(self.wait);
        }
        tracing::warn!(%error, attempts, "the follower could not catch up");
        self.attempts.store(0, Ordering::Relaxed);
        Next::After(self.period)
    }

    fn jobs_at_most(&self) -> JobLimits {
        JobLimits::apart(1, 1)
    }

    fn seats(&self) -> &Seats {
        &self.seats
    }
}
