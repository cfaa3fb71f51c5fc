//! The end of a life.

use std::path::Path;

use super::life::{DIRECTORY, Life, Tally};
use crate::balance;

impl Life {
    /// Lets go of everything, and closes: the books balance.
    pub(super) fn end(mut self) -> Tally {
        self.made.begin();
        self.snapshots.clear();
        self.readers.clear();
        self.scans.clear();
        self.gone.clear();
        // Of several threads one may be about to give back what it had.
        if self.unasked.is_some() {
            balance::check_open(&self.env, &self.db);
        }
        let families = self.chosen.own.values().chain([&self.chosen.options.cf]);
        balance::close(
            self.db,
            &balance::directories(Path::new(DIRECTORY), &self.chosen.options, families),
        );
        assert_eq!(self.fs.open_files(), 0, "files are open that a closed database had");
        self.tally
    }
}
