//! How a life closes its database, or crashes, and opens it again; and how it ends.

use std::path::Path;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::options::RecoveryMode;

use super::journal::{Crash, Journal};
use super::life::{DIRECTORY, Held, Life, Tally};
use super::operation::Power;
use super::patience::Patience;
use super::prepared;
use super::setup;
use crate::crash::{CrashFs, Disk, State, Survival};
use crate::model::{Losses, Model};
use crate::settings::Setting;
use crate::{balance, fakes};

impl Life {
    /// Adds settings that go together with those before, and takes back what was changed while the
    /// database ran.
    fn choose(&mut self, settings: &[Setting]) {
        self.setup.add(&self.env, settings);
        for (name, family) in &mut self.model.families {
            family.losses = self.setup.losses(name);
        }
        self.journal.goes_on(self.setup.chosen.options.atomic_flush);
    }

    /// Closes, and opens with other options.
    pub(super) fn reopen(&mut self, settings: &[Setting]) {
        let keeps_unlogged = !self.setup.chosen.options.avoid_flush_during_shutdown;
        self.held.snapshots.clear();
        self.held.scans.clear();
        self.held.gone.clear();
        self.held.transactions.clear();
        self.db.close().expect("a clean close");
        // What is open stays valid.
        for reader in &mut self.held.readers {
            reader.walk_through();
        }
        self.held.readers.clear();
        self.journal.synced(self.fs.changes());
        if keeps_unlogged {
            self.note_flushes();
        }
        self.choose(settings);
        if keeps_unlogged || !self.journal.has_unlogged() {
            self.db = setup::open(DIRECTORY, &self.setup.chosen, self.model.families.keys());
            self.opened = self.fs.changes();
            prepared::check(self);
        } else {
            // What is lost for good cannot be found by a crash that goes back to before.
            let closed = self.fs.changes();
            let found = self.find_again(Crash { at: closed, is_kept: true });
            self.go_on_from(found, closed);
        }
    }

    /// Opens after a crash, and goes on from what is found.
    fn find_again(&mut self, crash: Crash) -> Model {
        let names =
            Db::list_column_families(DIRECTORY, &self.setup.chosen.options).expect("a database");
        self.db = setup::open(DIRECTORY, &self.setup.chosen, &names);
        self.written.found(&self.db);
        let found = self.contents(&self.db).expect("a scan");
        let checked = self.journal.check(crash, &found, &prepared::listed(&self.db));
        checked.unwrap_or_else(|wrong| panic!("after a crash: {wrong}"));
        self.opened = self.fs.changes();
        found
    }

    /// Goes on from what was found on a disk that lost something. No crash goes back to before the
    /// moment `earliest`. Nor to before the opening, if entries may go by themselves: compactions
    /// may have removed some of them while the database was opened.
    fn go_on_from(&mut self, found: Model, earliest: usize) {
        let may_lose = found.families.values().any(|family| family.losses != Losses::default());
        self.created = if may_lose { self.opened } else { earliest };
        let undecided = self.journal.prepared_as(&prepared::listed(&self.db));
        self.journal = Journal::new(found.clone(), self.setup.chosen.options.atomic_flush)
            .with_prepared(undecided);
        self.model = found;
    }

    pub(super) fn crash(&mut self, power: Power, back: usize) {
        self.held = Held::default();
        // The other modes of recovery refuse, or pass over, what a power loss leaves.
        let in_order =
            self.setup.chosen.options.wal_recovery_mode == RecoveryMode::PointInTimeRecovery;
        let survival = match power {
            Power::Lost if in_order => Survival::Lost,
            Power::Random(seed) if in_order => Survival::Random(seed),
            _ => Survival::Kept,
        };
        // Nor need they bear what was written with another mode.
        let earliest = if in_order { self.created } else { self.opened };
        let at = self.fs.changes().saturating_sub(back).max(earliest);
        // If nothing can be lost, what was not synced may still be lost by a later crash.
        let is_whole = !self.journal.has_unlogged() && !self.setup.chosen.options.manual_wal_flush;
        let is_kill = survival == Survival::Kept && at == self.fs.changes() && is_whole;
        let before = std::mem::take(&mut self.fs);
        self.fs = if is_kill {
            before.kill()
        } else {
            CrashFs::on(Disk::holding(&State::of(&before.after_crash(at, survival))))
        };
        // The handle goes, with its lock; whatever it still does, it does to another disk, or to
        // none.
        let _ = self.db.close();
        let patient = Patience::new(self.fs.clone(), self.made.clone());
        self.env = self.env.clone().with_fs(fakes::around(Arc::new(patient)));
        self.choose(&[]);
        // The files may be found a second time as they were found the first time.
        let recovery = self.fs.changes();
        let found = self.find_again(Crash { at, is_kept: survival == Survival::Kept });
        if is_kill {
            self.journal.synced(self.fs.changes());
        } else {
            self.tally.changes += before.changes() as u64;
            self.go_on_from(found, recovery);
        }
    }

    /// Lets go of everything, and closes: the books balance.
    pub(super) fn end(mut self) -> Tally {
        self.made.begin();
        self.held = Held::default();
        // Of several threads one may be about to give back what it had.
        if self.unasked.is_some() {
            balance::check_open(&self.env, &self.db);
        }
        let families = self.setup.chosen.own.values().chain([&self.setup.chosen.options.cf]);
        balance::close(
            self.db,
            &balance::directories(Path::new(DIRECTORY), &self.setup.chosen.options, families),
        );
        assert_eq!(self.fs.open_files(), 0, "files are open that a closed database had");
        self.tally
    }
}
