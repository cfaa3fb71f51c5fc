//! Background work that a program asks for, and writes that go on after a full disk.

use crate::base::Result;
use crate::db::handle::Db;
use crate::db::tree::Steps;
use crate::env::Role;

impl Db {
    /// Does one flush or compaction in the calling thread; whether there was one to do. Only where
    /// the environment has no worker threads ([`crate::env::Spawn::choose_step`]); elsewhere the
    /// workers do it and this does nothing.
    ///
    /// # Errors
    /// Those of the flush or compaction, which the database has taken note of as of a worker's.
    pub fn background_step(&self) -> Result<bool> {
        self.inner().jobs.background_step()
    }

    /// Tries at once whether there is space again for what suspended writes; the database does so
    /// twice a second by itself.
    ///
    /// # Errors
    /// Why writes are refused still: a full disk, or what only reopening helps against (subcode
    /// `Poisoned`).
    pub fn resume(&self) -> Result<()> {
        let inner = self.inner();
        inner.context.check_open()?;
        let _asleep = inner.background.sleep_for_them();
        let attempted = loop {
            if inner.context.poison.is_fatal() {
                break Ok(());
            }
            match inner.jobs.attempt_one(Role::Flush) {
                Ok(true) => {}
                outcome => break outcome.map(|_| ()),
            }
        };
        inner.context.events.tell();
        attempted?;
        inner.context.check_writable()
    }
}
