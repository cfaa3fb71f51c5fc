//! The tree: versions, families, and the jobs that run on them. The state lock is taken here.

pub(super) mod compactions;
pub(super) mod edits;
pub(super) mod flushes;
pub(super) mod pressure;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::Weak;
use std::time::Duration;

use crate::base::ColumnFamilyId;
use crate::base::Error;
use crate::base::MAX_SEQUENCE_NUMBER;
use crate::base::Result;
use crate::base::SequenceNumber;
use crate::base::SnapshotList;
use crate::base::SubCode;
use crate::base::sync::Condvar;
use crate::base::sync::Mutex;
use crate::base::sync::MutexGuard;
use crate::base::sync::Ordering;
use crate::base::sync::RwLock;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::family::Family;
use crate::db::family::FamilyState;
use crate::db::files::Tables;
use crate::db::jobs::background::Background;
use crate::db::jobs::background::Role;
use crate::db::state::State;
use crate::db::writing::pipeline::Pipeline;
use crate::db::writing::wal_space::WalSpace;
use crate::db::writing::write_control::WriteControl;
use crate::manifest::FileNumbers;
use crate::manifest::VersionSet;

/// Does background work where there are no threads for it.
pub(super) trait Steps: Send + Sync {
    /// Does one piece of work, if there is any; whether there was.
    ///
    /// # Errors
    /// Those of the work.
    fn background_step(&self) -> Result<bool>;
}

/// What changes as tables come and go.
pub(super) struct Tree {
    context: Arc<Context>,
    disk: Arc<Disk>,
    tables: Arc<Tables>,
    snapshots: Arc<SnapshotList>,
    background: Arc<Background>,
    wal_space: Arc<WalSpace>,
    control: Arc<WriteControl>,
    pub(super) state: Mutex<State>,
    /// By id; what handles and readers go through.
    pub(super) families: RwLock<BTreeMap<ColumnFamilyId, Arc<Family>>>,
    pub(super) file_numbers: Arc<FileNumbers>,
    /// Signalled when a worker changed the tree or failed.
    pub(super) progress: Condvar,
    steps: OnceLock<Weak<dyn Steps>>,
}

/// The parts that a tree stands on.
pub(super) struct Below<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) disk: &'a Arc<Disk>,
    pub(super) tables: &'a Arc<Tables>,
    pub(super) snapshots: &'a Arc<SnapshotList>,
    pub(super) background: &'a Arc<Background>,
    pub(super) pipeline: &'a Pipeline,
}

impl Tree {
    pub(super) fn new(
        below: &Below<'_>,
        versions: VersionSet,
        families: BTreeMap<ColumnFamilyId, FamilyState>,
    ) -> Self {
        let handles = families.iter().map(|(id, known)| (*id, known.family.clone())).collect();
        Self {
            context: below.context.clone(),
            disk: below.disk.clone(),
            tables: below.tables.clone(),
            snapshots: below.snapshots.clone(),
            background: below.background.clone(),
            wal_space: below.pipeline.wal_space.clone(),
            control: below.pipeline.control.clone(),
            file_numbers: versions.file_numbers().clone(),
            state: Mutex::new(State::new(versions, families)),
            families: RwLock::new(handles),
            progress: Condvar::new(),
            steps: OnceLock::new(),
        }
    }

    /// Who does the work where no threads do.
    pub(super) fn set_steps(&self, steps: Weak<dyn Steps>) {
        self.steps.get_or_init(|| steps);
    }

    fn background_step(&self) -> Result<bool> {
        let steps = self.steps.get().and_then(Weak::upgrade);
        steps.map_or(Ok(false), |steps| steps.background_step())
    }
}

impl Tree {
    /// Announces that there may be something to flush or compact; the state lock is held.
    pub(in crate::db) fn announce_work(&self, _state: &mut State) {
        self.background.announced.fetch_add(1, Ordering::AcqRel);
        Role::ALL.iter().for_each(|role| self.announce(*role));
    }

    /// The same, of one kind: the thread that took some found that there may be more.
    pub(in crate::db) fn announce(&self, role: Role) {
        self.background.workers.announce(role);
    }

    /// Whether threads do the work, and not steps.
    pub(in crate::db) fn has_workers(&self) -> bool {
        self.context.env.spawner.choose_step(1).is_none()
    }

    /// Waits until a worker changed the tree or failed, at most for `timeout`; without workers, does their work.
    ///
    /// # Panics
    /// In a world without threads, if there is nothing that would ever end the waiting.
    pub(in crate::db) fn wait_for_progress(
        &self,
        state: &mut MutexGuard<'_, State>,
        timeout: Option<Duration>,
    ) {
        if self.has_workers() {
            match timeout {
                Some(timeout) => {
                    self.progress.wait_for(state, timeout);
                }
                None => self.progress.wait(state),
            }
            return;
        }
        let worked = MutexGuard::unlocked(state, || self.background_step());
        assert!(!matches!(worked, Ok(false)), "somebody waits for work that nobody has");
    }

    /// Poisons the database and wakes those who wait for its progress; they look at the poison under the same lock.
    pub(in crate::db) fn fail(&self, _state: &mut State, error: &Error) {
        self.context.poison.record_fatal(error);
        self.progress.notify_all();
    }

    /// A write of the WAL that a full disk refused can be tried again.
    pub(in crate::db) fn fail_unless_full(&self, state: &mut State, error: &Error) {
        if error.subcode() != SubCode::NoSpace {
            self.fail(state, error);
        }
    }

    /// Looks again at what is to be done in a family, after an option of it changed, or when a call has ended that held its
    /// compactions back.
    pub(in crate::db) fn family_changed(&self, id: ColumnFamilyId) {
        let mut state = self.state.lock();
        if let Some(known) = state.families.get_mut(&id) {
            known.compacting.forced_gc_below = self.file_numbers.next();
        }
        state.note(id);
        self.update_stall(&mut state);
        self.announce_work(&mut state);
    }

    /// The same in all families, after an option of the database changed.
    pub(in crate::db) fn tree_changed(&self) {
        let mut state = self.state.lock();
        state
            .families
            .values_mut()
            .for_each(|known| known.compacting.forced_gc_below = self.file_numbers.next());
        state.note_all();
        self.update_stall(&mut state);
        self.announce_work(&mut state);
    }

    /// What the oldest snapshot sees; all there is, if there is none.
    pub(in crate::db) fn oldest_snapshot(&self) -> SequenceNumber {
        self.snapshots.oldest().map_or(MAX_SEQUENCE_NUMBER, |oldest| oldest.sequence)
    }
}
