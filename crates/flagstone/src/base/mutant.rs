//! Switches that break the engine on purpose, one at a time, to see that the laboratory finds the
//! fault. Only with the feature `mutants`, which test builds turn on; elsewhere [`Mutant::is_on`]
//! is constant and the compiler removes the broken branch.
//!
//! They are few: a fault that can be told to a component of the application is a fake in `testkit`,
//! and most others are patches in `crates/testkit/mutants`. A switch is for what the ordinary test
//! command must find in every build: the promises of a write, and orders of threads.

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
    /// A WAL is synced without the blob files that it names.
    SkipBlobSyncBeforeWal,
    /// An edit that removes files is applied, but not written to the MANIFEST.
    ForgetOneEdit,
    /// A write is visible to readers before the sync that it asked for.
    PublishBeforeSync,
    /// A batch is visible to readers before all of it is in the memtables.
    PublishBeforeInsert,
    /// A family is written to, though its drop may be in the MANIFEST.
    ForgetDoubtfulDrop,
    /// The sync of a directory is believed, though another's has failed since the name was made.
    ForgetLostNames,
    /// After recovery, sequence numbers go on from what the MANIFEST says.
    ForgetReplayedSequence,
    /// Memtables kept by recovery do not keep their WALs.
    ForgetKeptMemtables,
    /// A WAL is removed before the MANIFEST says that nobody needs it.
    RemoveWalBeforeManifest,
    /// At a switch a family with unflushed writes says that they begin in the new WAL.
    LogNumberTooHigh,
    /// With `atomic_flush`, families are flushed one by one all the same.
    ForgetAtomicFlush,
    /// Obsolete files are removed while a checkpoint copies them.
    DeleteUnderCheckpoint,
    /// A flush or compaction drops what only snapshots see.
    ForgetSnapshots,
    /// A deletion is dropped although deeper levels have the key.
    DropTombstoneTooEarly,
    /// The checksum of a block is not looked at.
    IgnoreBlockChecksum,
    /// The checksum of a blob is not looked at.
    IgnoreBlobChecksum,
    /// Lookups search level 0 from its oldest table on.
    SearchOldestFirst,
    /// A file is removed when it leaves the tree, and not when its last reader is gone.
    PurgeUnderReaders,
    /// A flush of families together is installed although an older one is not.
    InstallFlushOutOfTurn,
    /// A sync is taken to cover what was logged while it ran.
    AcknowledgeBehindSync,
    /// A write is published before one with a lower sequence number is inserted.
    PublishOutOfOrder,
    /// A write is acknowledged before one with a lower sequence number is inserted.
    AcknowledgeOutOfOrder,
    /// A conditional write asks memtables for writes that are not inserted yet.
    AskBeforeInsertions,
    /// A conditional write does not ask tables that a flush made meanwhile.
    ForgetNewTables,
    /// Writers that wait for the insertions of others are not woken.
    ForgetSleepers,
    /// A memtable is switched while a writer inserts into it.
    SwitchUnderWriters,
    /// Nobody is woken when a flush is done.
    ForgetWakeUp,
    /// No waiter is woken when a compaction no longer counts as running.
    ForgetEndOfCompaction,
    /// Writers that were stopped or delayed stay so.
    NeverLiftStall,
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

    /// Does something wrong if this place is to be broken.
    #[inline(always)]
    pub fn breaks(self, how: impl FnOnce()) {
        if self.is_on() {
            how();
        }
    }
}
