//! A compaction, from its choice to its installation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::base::{
    Code, Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber, Sometimes, SubCode,
};
use crate::compaction::pick::{CompactionPlan, CompactionReason};
use crate::db::family::Family;
use crate::db::tree::output::JobOutput;
use crate::db::tree::state::State;
use crate::env::{CompactionPermit, IoPriority};
use crate::manifest::{CompactCursor, Version};
use crate::options::{CompactionControl, CompactionPri, JobInfo};

/// A plan on its way.
pub(in crate::db) struct CompactionJob {
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) version: Arc<Version>,
    pub(in crate::db) plan: CompactionPlan,
    /// Whether somebody asked for it.
    pub(in crate::db) is_manual: bool,
    pub(in crate::db) blob_gc: BlobCollection,
    /// Overrides the database's setting.
    pub(in crate::db) max_subcompactions: Option<u32>,
    /// Who follows it, and may end it.
    pub(in crate::db) control: Option<Arc<CompactionControl>>,
    /// It turned out that its outputs would be no fewer than its inputs, which stay.
    pub(in crate::db) is_in_vain: AtomicBool,
    /// It turned out that snapshots need more range deletions of one start than a table can hold.
    pub(in crate::db) is_outnumbered: AtomicBool,
    /// The oldest snapshot when it began to read.
    pub(in crate::db) oldest_snapshot: AtomicU64,
    pub(in crate::db) holds: Holds,
    /// Its caller asks for what `told` says in the end.
    pub(in crate::db) is_reported: bool,
    /// What listeners were told of its beginning.
    pub(in crate::db) told: Mutex<Option<JobInfo>>,
    /// Versions with newer timestamps go.
    pub(in crate::db) trim: Option<Vec<u8>>,
    pub(in crate::db) remote: Remote,
}

/// What a compaction holds while it runs, for which other compactions may wait.
#[derive(Default)]
pub(in crate::db) struct Holds {
    /// Alive in the compaction that finds out whether a full disk has space again.
    pub(super) finds_out: Option<Arc<()>>,
    /// The permit of the family's limiter, until the inputs may be taken again.
    pub(super) permit: Mutex<Option<CompactionPermit>>,
}

/// Overrides of the family's settings for blob collection.
#[derive(Default)]
pub(in crate::db) struct BlobCollection {
    pub(in crate::db) enabled: Option<bool>,
    pub(in crate::db) age_cutoff: Option<f64>,
}

/// What a compaction service has to do with a compaction.
#[derive(Default)]
pub(in crate::db) struct Remote {
    /// In a worker, up to which sequence number tables have all writes of the family, as the
    /// database says that ordered the compaction.
    pub(in crate::db) flushed_until: Option<SequenceNumber>,
    /// What the service calls the job whose result is to be installed.
    pub(in crate::db) scheduled: Mutex<Option<String>>,
    /// The service has given the job up: it is planned anew after a pause.
    pub(in crate::db) is_put_off: AtomicBool,
}

impl CompactionJob {
    pub(in crate::db) fn new(
        family: Arc<Family>,
        version: Arc<Version>,
        plan: CompactionPlan,
    ) -> Self {
        Self {
            family,
            version,
            plan,
            is_manual: false,
            blob_gc: BlobCollection::default(),
            max_subcompactions: None,
            control: None,
            is_in_vain: AtomicBool::new(false),
            is_outnumbered: AtomicBool::new(false),
            oldest_snapshot: AtomicU64::new(MAX_SEQUENCE_NUMBER),
            holds: Holds::default(),
            is_reported: false,
            told: Mutex::default(),
            trim: None,
            remote: Remote::default(),
        }
    }
}

impl CompactionJob {
    /// Its inputs may be taken again, but for those set aside.
    pub(super) fn release(&self, state: &mut State, aside: &[FileNumber]) {
        drop(self.holds.permit.lock().take());
        for (_, file) in self.plan.files().filter(|(_, file)| !aside.contains(&file.number())) {
            file.being_compacted.store(false, Ordering::Release);
        }
        if let Some(known) = state.families.get_mut(&self.family.id) {
            let ended = self.plan.running();
            if let Some(at) = known.compacting.running.iter().position(|running| *running == ended)
            {
                known.compacting.running.swap_remove(at);
            }
        }
        state.note(self.family.id);
    }

    /// Counts it for the limiter of its family, if there is one; whether the limiter allows it.
    pub(super) fn begin_within_limit(&self) -> bool {
        let options = self.family.options.load();
        let Some(limiter) = options.compaction_limiter.as_ref() else { return true };
        if !self.plan.rewrites() {
            return true;
        }
        let mut permit = self.holds.permit.lock();
        *permit = limiter.try_begin();
        permit.is_some()
    }

    /// Counts it for the limiter of its family, unless it is counted.
    pub(super) fn begin_anyway(&self) {
        let options = self.family.options.load();
        let limiter = options.compaction_limiter.as_ref().filter(|_| self.plan.rewrites());
        if let Some(limiter) = limiter {
            self.holds.permit.lock().get_or_insert_with(|| limiter.begin());
        }
    }

    /// How urgent its reads and writes are.
    pub(in crate::db) fn priority(&self) -> IoPriority {
        match self.plan.reason {
            CompactionReason::BlobGarbage => IoPriority::Low,
            _ => IoPriority::Mid,
        }
    }
}

/// # Errors
/// `Incomplete`, if who follows a compaction has canceled it.
pub(in crate::db) fn check_not_canceled(control: Option<&CompactionControl>) -> Result<()> {
    if !control.is_some_and(CompactionControl::is_canceled) {
        return Ok(());
    }
    Sometimes::ManualCompactionCanceled.reached();
    Err(Error::new(Code::Incomplete, "the compaction was canceled")
        .with_subcode(SubCode::ManualCompactionPaused))
}

/// Where the next compaction of the start level begins, if its tables take turns.
pub(super) fn round_robin_cursor(job: &CompactionJob) -> Option<CompactCursor> {
    let level = job.plan.start_level();
    if level == 0 || job.family.options.load().compaction_pri != CompactionPri::RoundRobin {
        return None;
    }
    let last = job.plan.inputs[0].files.last()?;
    Some(CompactCursor { level, key: last.meta.largest.clone() })
}

/// What became of the output of a compaction.
pub(in crate::db) enum Installation {
    /// The inputs may be taken again.
    Ended {
        /// The tables that are part of the tree now.
        outcome: Result<Vec<FileNumber>>,
        /// What was written for a family that was dropped meanwhile.
        lost: Option<Box<JobOutput>>,
    },
    /// A worker has written tables that do not fit. Nothing has changed, and the inputs are still
    /// marked. The tables are removed after the next change of the MANIFEST.
    Refused(Error),
}

/// A job, and where the next piece begins.
pub(in crate::db) type Piece = (CompactionJob, Option<Vec<u8>>);

/// What a look for a compaction comes to.
pub(super) enum Found {
    Job(Box<CompactionJob>),
    Nothing,
    /// Families want compactions for which their limiter has no permit.
    AtLimit,
}

impl Found {
    pub(super) fn of(job: Option<CompactionJob>, is_at_limit: bool) -> Self {
        match job {
            Some(job) => Self::Job(Box::new(job)),
            None if is_at_limit => Self::AtLimit,
            None => Self::Nothing,
        }
    }
}

pub(super) fn bytes_of_blobs(version: &Version, files: &BTreeSet<FileNumber>) -> u64 {
    let known = files.iter().filter_map(|number| version.blob_files.get(number));
    known.map(|blob| blob.file.meta.total_bytes).fold(0, u64::saturating_add)
}

/// Whether a compaction needs no room, so that it may begin where others wait for some.
pub(super) fn passes(plan: &CompactionPlan) -> bool {
    if plan.rewrites() {
        Sometimes::CompactionAloneOnFullDisk.reached();
    }
    !plan.rewrites()
}

/// Bytes that are free in the directories of tables and blob files, as far as their file systems
/// tell.
#[derive(Debug, Default)]
pub(in crate::db) struct FreeSpace(pub(in crate::db) BTreeMap<Arc<Path>, u64>);
