//! Rare branches that say when they were taken, so that a campaign of tests can report those it
//! never reached.
//!
//! A marker costs one relaxed addition; it stands on branches that are rare by nature, never in a
//! hot loop.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! markers {
    ($($(#[doc = $meaning:literal])+ $name:ident,)+) => {
        /// A branch that a good campaign reaches sometimes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Sometimes {
            $($(#[doc = $meaning])+ $name,)+
        }

        /// All of them, with their meanings.
        const MARKERS: &[(&str, &str)] = &[$((stringify!($name), concat!($($meaning),+))),+];
    };
}

markers! {
    /// A writer was delayed because compactions are behind.
    WriteDelayed,
    /// A writer was stopped until the tree changed.
    WriteStopped,
    /// A writer slept until writes before it were inserted.
    SleptForInsertions,
    /// A thread that had given way left its work to one that had not, as somebody slept for it.
    WorkHurried,
    /// A compaction paused for a flush, so that no more jobs ran than may.
    CompactionPaused,
    /// Writers waited because all memtables together had reached their limit.
    MemtablesStoppedWriters,
    /// The largest memtables were switched because all together had reached half of their limit.
    LargestMemtablesSwitched,
    /// Holes were punched in a blob file.
    HolePunched,
    /// Holes could not be punched in a blob file.
    HoleNotPunched,
    /// Holes were given up, as the file system is slow with them.
    HolesTooSlow,
    /// Another database was asked to flush, as its memtables are the largest under one limit.
    OtherDatabaseAskedToFlush,
    /// Writers waited because the memtables of several databases had reached their limit.
    WriteBuffersStoppedWriters,
    /// An obsolete file was renamed, to be removed at the delete rate.
    MadeTrash,
    /// The end of a large file that waited to be removed was given back.
    TrashPunched,
    /// Writes were suspended because files took what the manager allows.
    SpaceLimitReached,
    /// A compaction waited for room that the manager allows.
    CompactionExceededSpaceLimit,
    /// A blob file got no holes since a checkpoint or a read-only handle has it, too.
    HeldFileKeptWhole,
    /// An obsolete WAL was removed and not recycled, since a read-only handle has it.
    HeldWalNotRecycled,
    /// Holes waited for readers of an older version.
    HoleWaitedForReaders,
    /// FIFO compaction dropped tables.
    TablesDropped,
    /// Universal compaction merged all runs, since the newer ones were too large.
    AllRunsMerged,
    /// A part of the oldest two runs was chosen in place of all.
    RunsMergedInPart,
    /// On a full disk a compaction waited until another had found out whether there is room again.
    CompactionAloneOnFullDisk,
    /// A piece of all runs was chosen, as one compaction of all would have been too large.
    RunsMergedInPieces,
    /// A secondary met a change of the MANIFEST while it read, and read on.
    FollowerWentOn,
    /// What a secondary read next refers to something that is not there yet.
    FollowerWaited,
    /// The result of a remote compaction was refused, and the compaction done here.
    RemoteResultRefused,
    /// A file of a remote compaction was copied, as it could not be moved.
    RemoteOutputCopied,
    /// What a worker of a compaction service had left was removed at an opening.
    RemoteOutputRemoved,
    /// A table from outside went to level 0.
    IngestedIntoLevel0,
    /// A table that could not be linked was copied.
    IngestedByCopy,
    /// A memtable was flushed since a table from outside overlapped it.
    FlushedForIngestion,
    /// A table that a compaction could not read was set aside.
    TableSetAside,
    /// Range deletions that a merge within level 0 brought together were more than a table can
    /// hold: there were several outputs.
    Level0RangesCut,
    /// The same, and there would have been no fewer outputs than inputs.
    Level0KeptApart,
    /// Range deletions that begin with one key were too many for a table, which was set aside.
    RangeDeletionsSetAside,
    /// A table that was set aside for range deletions was taken back, as the oldest snapshot was
    /// gone.
    TableTakenBack,
    /// Files to be removed had gathered, so that compactions waited.
    RemovalBehind,
    /// A full disk took the reserve.
    ReserveReleased,
    /// There was space for the reserve again.
    ReserveRegained,
    /// A WAL was begun with less space reserved than it wants, or none, because the disk has too
    /// little.
    WalUnreserved,
    /// A WAL had filled what was reserved, and the disk had no room for as much again.
    WalReserveUsedUp,
    /// A WAL file was used again for new records.
    WalRecycled,
    /// A WAL that recovery does not need was moved to the archive.
    WalArchived,
    /// An archived WAL was removed, by age or size.
    ArchivedWalRemoved,
    /// Who read along had been given writes that a power loss took.
    UpdatesDiverged,
    /// A part of a WAL was mapped for new records.
    WalMapped,
    /// The part of a WAL that is mapped next was made while records went into the one before.
    WalFetchedAhead,
    /// Zeros were written to a WAL ahead of its records.
    WalZerosAhead,
    /// Records that waited in memory for a sync were written by one call.
    WalGathered,
    /// A record of a WAL that is flushed by hand waited in memory.
    WalKept,
    /// A merge went into a memtable as the value that it made.
    MergedAtOnce,
    /// A compaction left a value that had expired to what was merged onto it.
    MergedOntoStale,
    /// A WAL outgrew the space that was reserved for it.
    WalReservedMore,
    /// A record could not be written to the WAL, and what it left behind was cut off.
    WalWriteFailed,
    /// A sync of the WAL served more writers than the one who did it.
    SyncShared,
    /// A memtable was switched while writers waited for a sync.
    SwitchSynced,
    /// A flush of one family first synced what the others had written before.
    OlderWalsSynced,
    /// Families were flushed because the WALs took too much.
    WalLimitReached,
    /// Writers waited because all WALs together had as much as they may.
    WalsStoppedWriters,
    /// What was written without the WAL was flushed at close.
    UnloggedFlushedAtClose,
    /// Replay of a WAL stopped at a record that was cut off or damaged.
    ReplayStoppedAtTornRecord,
    /// Replay of a WAL stopped at zeros.
    ReplayStoppedAtZeros,
    /// Replay of a WAL stopped at a record of the file's earlier life.
    ReplayStoppedAtOldRecord,
    /// Replay stopped because the WAL before was not whole.
    ReplayStoppedAtLostTail,
    /// Replay went on in a later WAL, which began where it had stopped.
    ReplayResumed,
    /// Replay left a WAL at a record that does not follow what was recovered.
    ReplayLeftWal,
    /// Replay skipped damage, as the recovery mode says.
    ReplaySkippedDamage,
    /// Recovery refused to open the database for damage in a WAL.
    ReplayRefusedDamage,
    /// Recovery kept what the WALs held in memory.
    RecoveryKeptMemtables,
    /// Recovery wrote a full memtable to a table before the WALs ended.
    RecoveryFlushedOnTheWay,
    /// Recovery wrote the largest memtable because all together had more memory than they may.
    RecoveryWroteLargest,
    /// Recovery removed a table, blob or temporary file that a crash had left behind.
    LeftoverRemoved,
    /// A read-only open began again because the files had changed meanwhile.
    ReadOnlyOpenRepeated,
    /// A new MANIFEST was begun because the old one was full.
    ManifestRolled,
    /// A new MANIFEST was begun because the disk had been full at the last change.
    ManifestReplaced,
    /// Writes were suspended because the disk was full.
    Suspended,
    /// Writes were resumed after the disk had been full.
    Resumed,
    /// The database refused all further writes.
    Poisoned,
    /// A directory's sync was given up, as another's had failed since the name was made.
    NameLostByAnother,
    /// A job of the background, or what the application gave it, panicked.
    JobPanicked,
    /// A family was dropped while a flush of it ran.
    DroppedWhileFlushing,
    /// A family was dropped while a compaction of it ran.
    DroppedWhileCompacting,
    /// A flush took several memtables.
    SeveralMemtablesFlushed,
    /// Several families were flushed together.
    SeveralFamiliesFlushed,
    /// A flush was done before one of older memtables, and waited for it.
    FlushWaitedForOlder,
    /// Of what a flush took nothing was left to write.
    NothingLeftToFlush,
    /// Tables went down a level as they were.
    TrivialMove,
    /// Tables of level 0 were merged within level 0.
    Level0Merged,
    /// A compaction was cut into parts.
    CompactionCut,
    /// Parts of a compaction were given up because another one had failed.
    SubcompactionGivenUp,
    /// Tables at the bottom were rewritten because a snapshot had been released.
    BottommostRewritten,
    /// Tables were rewritten for the garbage in their blob files.
    BlobGarbageForced,
    /// A manual compaction waited for another one.
    ManualCompactionWaited,
    /// Who had asked for a compaction canceled it.
    ManualCompactionCanceled,
    /// An output table ended early for what lies below it.
    CutAtGrandparents,
    /// A partitioner ended a table.
    CutByPartitioner,
    /// A table was taken along because it shares a user key with its neighbour.
    CleanCutWidened,
    /// A key's versions were looked for in two tables of one level.
    KeyStraddledTables,
    /// A compaction kept an old version of a key for a snapshot.
    SnapshotKeptVersion,
    /// A deletion stayed at the bottom because a snapshot sees what it deletes.
    DeletionKeptAtBottom,
    /// A single deletion went together with its value.
    SingleDeleteMetPut,
    /// A single deletion met its value under a snapshot, and both stayed.
    SingleDeleteUnderSnapshot,
    /// A range deletion was dropped because nothing lies under it.
    RangeTombstoneDropped,
    /// A range deletion was cut at the end of an output table.
    RangeTombstoneCut,
    /// A table of range deletions alone was written.
    RangeTombstonesAlone,
    /// A compaction merged operands over a value.
    OperandsMerged,
    /// A compaction left operands as they were, over a snapshot's.
    OperandsUnderSnapshot,
    /// A lookup found operands in memory, and went on in tables.
    MergeAcrossLevels,
    /// A value was moved out of a blob file that is being emptied.
    BlobRelocated,
    /// A column of an entity was moved out of a blob file that is being emptied.
    ColumnRelocated,
    /// A large column of an entity was moved to a blob file.
    ColumnSeparated,
    /// A blob file left the tree.
    BlobFileDropped,
    /// Who sealed a blob file waited for values that were being written to it.
    BlobSealWaited,
    /// Where a value could not be written, a blob file was filled up.
    BlobHoleFilled,
    /// Zeros were written to a blob file ahead of its records.
    BlobZerosAhead,
    /// A value was written to a blob file a second time, as its memtable had been switched
    /// meanwhile.
    BlobWrittenAgain,
    /// Recovery stopped at a write whose value is not in the blob file that it names.
    ReplayStoppedAtLostBlob,
    /// Recovery moved values out of a blob file that its writer had not sealed.
    BlobRecovered,
    /// Recovery kept a blob file that holds the one value.
    WholeBlobRecovered,
    /// A flush found that all values in a blob file had been overwritten.
    BlobFileAllGarbage,
    /// A value that was written piece by piece was given up.
    BlobStreamGivenUp,
    /// A blob file was synced for a write before its WAL.
    BlobSyncedBeforeWal,
    /// A scan read several blobs at once.
    BlobsReadAhead,
    /// An iterator with a snapshot went over to a newer super version.
    IteratorRefreshed,
    /// An iterator turned round.
    IteratorTurned,
    /// An iterator sought past many invisible versions of a key.
    IteratorReseeked,
    /// An iterator moving back gave up on a key's many versions, and sought the newest.
    IteratorSoughtNewest,
    /// An iterator leapt over what a range deletion covers.
    IteratorLeapt,
    /// An iterator leapt over keys that earlier scans had found deleted.
    IteratorLeaptOverDead,
    /// The same, back.
    IteratorLeaptBackOverDead,
    /// Obsolete files had to wait for a checkpoint.
    DeletionsPaused,
    /// A checkpoint copied a file that could not be linked.
    CheckpointCopied,
    /// A file of another process's database was shorter when a checkpoint copied it.
    CopiedFileShrank,
    /// A family was clipped that had something outside of the range.
    Clipped,
    /// An import wrote a table anew, as its entries refer to blob files.
    ImportedTableRewritten,
    /// An import copied a table that could not be linked.
    ImportedByCopy,
    /// Memtables were flushed, as the WALs of a copy named their blob files.
    FlushedForCopy,
    /// A checkpoint took WALs along that were not the active one.
    CheckpointWithOlderWals,
}

static COUNTS: [AtomicU64; MARKERS.len()] = [const { AtomicU64::new(0) }; MARKERS.len()];

impl Sometimes {
    /// Notes that the branch was taken.
    #[inline]
    pub fn reached(self) {
        COUNTS[self as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Every marker's name, its meaning, and how often this process reached it.
pub fn counts() -> Vec<(&'static str, &'static str, u64)> {
    let count = |index: usize| COUNTS[index].load(Ordering::Relaxed);
    MARKERS
        .iter()
        .enumerate()
        .map(|(index, (name, meaning))| (*name, meaning.trim(), count(index)))
        .collect()
}

#[cfg(test)]
mod tests;
