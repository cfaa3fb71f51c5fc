//! Whether all that a database holds is right, what it tells of itself, and what whoever opens its
//! files for reading finds.

use std::path::PathBuf;

use flagstone::base::{Code, Error};
use flagstone::cache::TraceOptions;
use flagstone::db::{Db, PROPERTY_NAMES, Severity};
use flagstone::env::FileSystem;
use flagstone::options::SizeApproximationOptions;

use super::journal::Crash;
use super::life::{DIRECTORY, Life};
use super::prepared;
use crate::compare;

impl Life {
    /// Compares everything; every second time with a recording of what the block cache is asked
    /// for.
    pub(super) fn check(&mut self) {
        prepared::check(self);
        let trace = (self.any(2) == 0).then(|| PathBuf::from(format!("/trace-{}", self.turn)));
        if let Some(trace) = &trace {
            let begun = self.db.start_block_cache_trace(trace, &TraceOptions::default());
            begun.expect("no other goes on");
        }
        for moment in (0..self.held.snapshots.len()).map(Some).chain([None]) {
            let (options, model) = self.moment(moment);
            for (name, family) in &model.families {
                let handle = self.family(name).expect("snapshots know those that exist");
                compare::check_scans(&self.db, &handle, family, &options);
            }
        }
        for reader in &mut self.held.readers {
            reader.walk_through();
        }
        compare::check_files(&self.db);
        self.ask();
        self.written.check(&self.db, self.setup.chosen.options.manual_wal_flush);
        if let Some(trace) = &trace {
            let told =
                self.db.end_block_cache_trace().expect("a trace is written").expect("one goes on");
            let size = self.db.options().env.fs.metadata(trace).expect("a trace").size;
            assert_eq!((told.bytes, told.is_full), (size, false), "{} requests", told.requests);
            self.fs.remove(trace).expect("a file in memory");
        }
    }

    /// Asks for whatever there is to be told. Nothing is damaged, nothing was written that may not
    /// be, and those are counted who read.
    pub(super) fn ask(&self) {
        let (damaged, key_faults) = (self.db.damaged_files(), self.db.key_faults());
        assert!(damaged.is_empty(), "nothing is damaged: {damaged:?}");
        assert!(key_faults.is_empty(), "all keys were written as they may be: {key_faults:?}");
        let findings = self.db.doctor().expect("a listing");
        let broken: Vec<_> =
            findings.iter().filter(|finding| finding.severity == Severity::Broken).collect();
        assert!(broken.is_empty(), "nothing is broken: {broken:?}");
        let pins = self.db.pins(usize::MAX);
        let (readers, scans) = (self.held.readers.len(), self.held.scans.len());
        let is_counted = (readers..=readers + scans).contains(&pins.num_iterators);
        assert!(
            is_counted,
            "{readers} iterators and {scans} scans are counted as {}",
            pins.num_iterators
        );
        let snapshots = self.held.snapshots.len();
        assert!(
            pins.num_snapshots >= snapshots,
            "{snapshots} snapshots are counted as {}",
            pins.num_snapshots
        );
        for family in self.db.column_families() {
            let missing: Vec<_> = PROPERTY_NAMES
                .iter()
                .filter(|name| self.db.property(&family, name).is_none())
                .collect();
            assert!(missing.is_empty(), "no answer to {missing:?}");
            self.db.space(&family).expect("its space");
            let options = SizeApproximationOptions {
                include_memtables: true,
                ..SizeApproximationOptions::default()
            };
            let sizes = self.db.approximate_sizes(&family, &[(b"a", b"z"), (b"z", b"a")], &options);
            sizes.expect("sizes of ranges");
        }
    }

    /// Reads the files as they are, as after the process was killed.
    pub(super) fn read_only(&mut self) {
        let listed = self.setup.chosen.listed(self.model.families.keys());
        let opened =
            Db::open_read_only_with_families(DIRECTORY, &self.setup.chosen.options, &listed);
        let has_threads = self.unasked.is_none();
        let db = match opened {
            // It says that it was overtaken by changes, as often as it looked.
            Err(error) if error.code() == Code::TryAgain && has_threads => return,
            opened => opened.expect("the files open"),
        };
        match self.contents(&db) {
            Ok(found) => {
                let killed = Crash { at: self.fs.changes(), is_kept: true };
                let outcome = self.journal.check(killed, &found, &prepared::listed(&db));
                outcome.unwrap_or_else(|wrong| panic!("read-only: {wrong}"));
            }
            // A compaction may have removed a file meanwhile, or given back its space.
            Err(error) if has_threads && is_gone(&error) => {}
            Err(error) => panic!("read-only: {error}"),
        }
    }
}

/// Whether a file is missing, or what was in it.
fn is_gone(error: &Error) -> bool {
    error.is_not_found() || error.is_corruption()
}
