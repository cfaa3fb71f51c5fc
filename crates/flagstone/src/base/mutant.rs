//! Deliberate breakages, one at a time, to see that the laboratory finds them. Only with the
//! feature `mutants`, which test builds turn on; elsewhere [`Mutant::is_on`] is constant and the
//! compiler removes the broken branch.
//!
//! A new one is a row here, one readable line where it breaks something, and a row in `testkit`'s
//! and the documentation's tables that says what finds it.

#[cfg(feature = "mutants")]
use std::sync::atomic::{AtomicUsize, Ordering};

macro_rules! mutants {
    ($($(#[doc = $meaning:literal])+ $name:ident,)+) => {
        /// A place that can be broken on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[doc = $meaning])+ $name,)+
        }

        /// All of them: the switch, its name, what it breaks.
        pub const ALL: &[(Mutant, &str, &str)] =
            &[$((Mutant::$name, stringify!($name), concat!($($meaning),+))),+];
    };
}

mutants! {
    /// The directory is not synced after a flush or compaction created files in it.
    SkipDirectorySync,
    /// With several directories, only the first is synced after a flush or compaction created files
    /// in others.
    SyncFirstDirectoryOnly,
    /// Tables are named in the MANIFEST without having been synced.
    SkipTableSync,
    /// Blob files are named in the MANIFEST without having been synced.
    SkipBlobSync,
    /// A WAL is synced without the blob files that it names.
    SkipBlobSyncBeforeWal,
    /// Recovery does not look at the blobs that a WAL names.
    TrustRecoveredBlobs,
    /// A clean close leaves blob files without a footer, and unknown to the MANIFEST.
    ForgetBlobsAtClose,
    /// A batch whose memtable was switched keeps its values in the old one's blob file.
    KeepBlobsOfSwitchedMemtable,
    /// The directory is not synced after a WAL was created.
    SkipWalDirectorySync,
    /// The directory is not synced after a file (CURRENT, say) was renamed over another.
    SkipSyncAfterRename,
    /// A file that is to replace another (CURRENT, say) is renamed without having been synced.
    SkipSyncBeforeRename,
    /// CURRENT names a new MANIFEST before that is synced.
    CurrentBeforeManifest,
    /// Edits are visible, and files of the old state removed, without a sync of the MANIFEST.
    SkipManifestSync,
    /// An edit that removes files is applied, but not written to the MANIFEST.
    ForgetOneEdit,
    /// The records that begin a MANIFEST are written in reverse.
    ReorderManifestWrites,
    /// A write is visible to readers before the sync that it asked for.
    PublishBeforeSync,
    /// A batch is visible to readers before all of it is in the memtables.
    PublishBeforeInsert,
    /// A flush of the WAL leaves its records in memory.
    ForgetLogFlush,
    /// A write that asked for a sync is acknowledged without one.
    AcknowledgeBeforeSync,
    /// A write is acknowledged although the WAL could not be written.
    IgnoreFailedWrite,
    /// A WAL whose sync failed is synced again, and the second answer believed.
    RetryFailedSync,
    /// A failed sync fails its own write only; later ones are accepted.
    ForgetFailedSync,
    /// A family is written to, though its drop may be in the MANIFEST.
    ForgetDoubtfulDrop,
    /// The sync of a directory is believed, though another's has failed since the name was made.
    ForgetLostNames,
    /// What suspended writes (a full disk) is not forgotten when there is space again.
    LatchFullDisk,
    /// A WAL's records bear the number of the file that was recycled for it.
    KeepRecycledNumber,
    /// The checksum of the last fragment of a record in a log is not looked at.
    SkipLastFragmentCheck,
    /// Point-in-time recovery goes on behind damage in a WAL.
    TolerateHoleInWal,
    /// A WAL does not say where the one before it ends.
    ForgetPredecessor,
    /// After recovery, sequence numbers go on from what the MANIFEST says.
    ForgetReplayedSequence,
    /// Memtables kept by recovery do not keep their WALs.
    ForgetKeptMemtables,
    /// WALs whose memtables recovery keeps are not synced.
    SkipSyncOfKeptWals,
    /// A WAL is removed before the MANIFEST says that nobody needs it.
    RemoveWalBeforeManifest,
    /// One WAL too many is removed after a flush.
    RemoveOneWalTooMany,
    /// At a switch a family with unflushed writes says that they begin in the new WAL.
    LogNumberTooHigh,
    /// A family is flushed without regard to older unsynced writes to the others.
    SkipSyncOfOlderWals,
    /// With `atomic_flush`, families are flushed one by one all the same.
    ForgetAtomicFlush,
    /// The edits of an atomic group do not say that they are one.
    ForgetAtomicGroup,
    /// Writes without the WAL are not flushed at close.
    ForgetUnloggedAtClose,
    /// Families that are created together come into the MANIFEST one after the other.
    CreateFamiliesApart,
    /// The id of a dropped family is given to the next one.
    ReuseFamilyId,
    /// A flush of a family that was dropped meanwhile is installed.
    FlushDroppedFamily,
    /// A dropped family stays in the MANIFEST.
    ForgetDrop,
    /// The files that a checkpoint copies are not synced.
    SkipSyncOfCopies,
    /// Obsolete files are removed while a checkpoint copies them.
    DeleteUnderCheckpoint,
    /// A checkpoint lacks the older WALs.
    CheckpointWithoutWals,
    /// A flush or compaction drops what only snapshots see.
    ForgetSnapshots,
    /// Sequence numbers become 0 at the bottom although a snapshot tells them apart.
    ZeroUnderSnapshot,
    /// A deletion is dropped although deeper levels have the key.
    DropTombstoneTooEarly,
    /// A range deletion is dropped although deeper levels have keys of the range.
    DropRangeTombstoneTooEarly,
    /// A table's range deletions count beyond the table's bounds.
    RangeTombstoneBeyondTable,
    /// A flush of several memtables writes the range deletions of the oldest only.
    ForgetRangeTombstones,
    /// A single deletion takes a value with it that a snapshot sees.
    SingleDeleteUnderSnapshot,
    /// A single deletion is dropped although deeper levels have the key.
    DropSingleDeleteTooEarly,
    /// Operands are merged in reverse by compactions.
    ReorderOperands,
    /// Operands are merged although a snapshot lies between them.
    MergeAcrossSnapshots,
    /// A compaction takes one of two tables that share a user key.
    CutWithinUserKey,
    /// The first key of a part of a compaction is in the part before, too.
    OverlapSubcompactions,
    /// A compaction counts the garbage of all blob files but one.
    MiscountBlobGarbage,
    /// A blob file to which no table links goes, though newer tables refer to it.
    DropLinkedBlobFile,
    /// The checksum of a block is not looked at.
    IgnoreBlockChecksum,
    /// The checksum of a blob is not looked at.
    IgnoreBlobChecksum,
    /// Memory is taken for as many bytes as compressed ones claim to hold.
    SkipLengthCheck,
    /// All tables of a level share a place in the block cache.
    ConfuseCachedBlocks,
    /// A filter of prefixes only is asked for whole keys.
    AskPrefixFilterForKeys,
    /// In the hash index of a data block the last of two colliding keys wins.
    ForgetHashCollision,
    /// Lookups search level 0 from its oldest table on.
    SearchOldestFirst,
    /// A joint lookup does not look at the snapshot.
    MultiGetWithoutSnapshot,
    /// What a task looks up and memory does not have is read as of now, whatever the snapshot.
    ReadElsewhereAsOfNow,
    /// A task's cursor that is given up goes on with the last key of the batch before.
    RepeatLastOfBatch,
    /// An iterator's upper bound is ignored.
    IgnoreUpperBound,
    /// Moving back over a table boundary leaves a table out.
    PrevSkipsTable,
    /// An iterator that turns round to move forward goes on from where its sources stand.
    TurnWithoutSeek,
    /// An iterator that seeks over invisible versions lands behind the visible one.
    ReseekTooFar,
    /// A key that is set within a range where scans found nothing does not end the range.
    LeapOverNewKey,
    /// A file is removed when it leaves the tree, and not when its last reader is gone.
    PurgeUnderReaders,
    /// A hole is punched where a live record lies.
    PunchLiveRecord,
    /// Holes are punched while readers of older versions are at what was there.
    PunchUnderReaders,
    /// Files that leave the tree are never removed.
    ForgetObsoleteFiles,
    /// A super version is pinned after the sequence number was read.
    ReadSequenceBeforePin,
    /// A snapshot's sequence number is read before it is registered.
    RegisterSnapshotLate,
    /// A flush of families together is installed although an older one is not.
    InstallFlushOutOfTurn,
    /// Keys with other bytes are taken for others, also under an order in which they are the same.
    TellKeysByBytes,
    /// A compaction takes keys of different lengths for others, also under an order in which they
    /// are the same.
    TellKeysByLength,
    /// What a compaction filter removes leaves no deletion behind that hides older versions.
    ForgetFilteredDeletion,
    /// A filter that has a compaction skip keys takes the newest version of the key with it up to
    /// which it does.
    SkipTooFar,
    /// FIFO compaction drops the newest table.
    DropNewestTable,
    /// Tables that only overlap a range are deleted with those that lie within it.
    DeleteFilesAtEnds,
    /// The piece of a value with which a stream gets a file of its own comes before those that were
    /// gathered in memory.
    SwapStreamPieces,
    /// A part of a large value begins where its piece does.
    MisplacePart,
    /// An iterator that is refreshed does not see the last write.
    RefreshOneBehind,
    /// A level is moved over others that are not empty.
    MoveLevelOverOthers,
    /// Whoever reads along goes on by sequence number alone, whatever a power loss has taken.
    TrustUpdatePosition,
    /// Whoever reads along and comes back is told that the WALs no longer tell, though they do.
    ForgetUpdates,
    /// Of several writers whose work is asked for while another writes, one has it done.
    ForgetOthersWork,
    /// A panic in the work that a writer does for another is its own.
    LetOthersPanic,
    /// Nobody is woken when a flush is done.
    ForgetWakeUp,
    /// The round of syncs advances before the election of its leader ends.
    AdvanceBeforeElectionEnds,
    /// A reader of the WALs lists them before it reads the published sequence number.
    ListWalsTooEarly,
    /// A checkpoint checks that the database is open before it takes the lock under which it is
    /// counted.
    CountCheckpointTooLate,
    /// No waiter is woken when a compaction no longer counts as running.
    ForgetEndOfCompaction,
    /// A compaction still holds its input files when it no longer counts as running.
    HoldInputsBeyondEnd,
    /// Writers that were stopped or delayed stay so.
    NeverLiftStall,
    /// A write that must not wait is refused although nothing holds writers up.
    RefuseInVain,
    /// A write that must not wait is refused where the WALs have a limit, however far that is.
    RefuseUnderWalLimit,
    /// A write that must not wait is refused where there are blob files, though nothing limits
    /// their space.
    RefuseBesideBlobs,
    /// A full disk that a write to the WAL finds stops the database for good, whether or not a sync
    /// waits for it.
    PoisonOnFullLog,
    /// A full disk that the sync of a table finds stops the database for good.
    PoisonOnFullSync,
    /// An iterator that may step over few hidden entries gives up at the first, however many it
    /// may.
    GiveUpInVain,
}

/// The one that is on, counted from 1; 0 is none.
#[cfg(feature = "mutants")]
static ON: AtomicUsize = AtomicUsize::new(0);

/// Breaks the engine of this process from now on.
#[cfg(feature = "mutants")]
pub fn turn_on(mutant: Mutant) {
    ON.store(mutant as usize + 1, Ordering::Relaxed);
}

impl Mutant {
    /// Whether this place is to be broken.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        #[cfg(feature = "mutants")]
        return ON.load(Ordering::Relaxed) == self as usize + 1;
        #[cfg(not(feature = "mutants"))]
        false
    }
}
