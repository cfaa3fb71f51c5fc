//! What finds each switch of the engine and each fake.

use super::{By, Caught, POISONED, REPLAYED, WRONG};

const fn experiment(
    mutant: &'static str,
    name: &'static str,
    words: &'static str,
) -> Caught<'static> {
    Caught { mutant, by: By::Experiment(name), words }
}

const fn story(mutant: &'static str, name: &'static str, words: &'static str) -> Caught<'static> {
    Caught { mutant, by: By::Story(name), words }
}

/// Every one once, or with each of several experiments that must find it.
pub const CAUGHT: &[Caught<'static>] = &[
    experiment(
        "SkipDirectorySync",
        "crashes-reopen-kept",
        "the MANIFEST lists this file, but it is missing",
    ),
    experiment(
        "SyncFirstDirectoryOnly",
        "crashes-paths",
        "the MANIFEST lists this file, but it is missing",
    ),
    experiment("SkipTableSync", "crashes-reopen-kept", "Sst file size mismatch"),
    experiment("SkipBlobSync", "crashes-checkpoint", "a blob file cannot have only"),
    experiment("SkipBlobSyncBeforeWal", "crashes-blobs-at-commit", "is lost and was durable"),
    experiment("SkipWalDirectorySync", "crashes-wal-dir", "is lost and was durable"),
    experiment("SkipSyncAfterRename", "crashes-creation", "OPTIONS say|cannot open"),
    experiment(
        "SkipSyncBeforeRename",
        "crashes-creation",
        "CURRENT file does not end with newline",
    ),
    experiment("CurrentBeforeManifest", "crashes-creation", "no log_file_number entry in MANIFEST"),
    experiment("SkipManifestSync", "crashes-reopen-kept", WRONG),
    experiment(
        "ForgetOneEdit",
        "crashes-reopen-kept",
        "the MANIFEST lists this file, but it is missing",
    ),
    experiment("PublishBeforeSync", "failed-syncs", "a reader sees a write whose sync failed"),
    story("AskBeforeInsertions", "commit::no_increment_is_lost", "no_increment_is_lost"),
    story("ForgetNewTables", "commit::no_increment_is_lost", "no_increment_is_lost"),
    story("PublishBeforeInsert", "commit::batches_are_whole", "batches_are_whole"),
    experiment("SkipWalSync", "crashes-creation", "is lost and was durable"),
    experiment(
        "IgnoreFailedWrite",
        "faults-writing",
        "lost: batch|lost, though batch|nobody heard of Failure { call: Write",
    ),
    experiment("RetryFailedSync", "failed-syncs", "is synced again after a failed sync"),
    experiment("ForgetFailedSync", "failed-syncs", "its sync fails"),
    experiment(
        "ForgetDoubtfulDrop",
        "doubtful-drops",
        "a family with an acknowledged write is gone",
    ),
    experiment("ForgetLostNames", "lost-names", "the MANIFEST lists this file, but it is missing"),
    experiment("LatchFullDisk", "faults-compactions", "writes do not resume|writes neither go on"),
    experiment(
        "ForgetReplayedSequence",
        "crashes-creation",
        "another opening finds something else",
    ),
    experiment("ForgetKeptMemtables", "crashes-reopen-kept", WRONG),
    experiment("SkipSyncOfKeptWals", "crashes-reopen-kept", WRONG),
    experiment("RemoveWalBeforeManifest", "crashes-reopen-kept", WRONG),
    experiment("LogNumberTooHigh", "crashes-reopen-kept", WRONG),
    experiment("SkipSyncOfOlderWals", "crashes-reopen-kept", WRONG),
    experiment(
        "ForgetAtomicFlush",
        "crashes-flush-together",
        "is there, and not batch|is lost and was durable",
    ),
    experiment("ForgetAtomicFlush", "histories", REPLAYED),
    experiment("SkipSyncOfCopies", "crashes-checkpoint", "no log_file_number entry in MANIFEST"),
    experiment("DeleteUnderCheckpoint", "interruptions", "a checkpoint: I/O error: cannot open"),
    experiment("ForgetSnapshots", "versions", WRONG),
    experiment("DropTombstoneTooEarly", "histories", REPLAYED),
    experiment("ReorderOperands", "histories", REPLAYED),
    experiment("IgnoreBlockChecksum", "damage-flips", WRONG),
    experiment("IgnoreBlobChecksum", "damage-flips", WRONG),
    experiment("SearchOldestFirst", "versions", WRONG),
    experiment("PurgeUnderReaders", "histories", REPLAYED),
    experiment("PunchLiveRecord", "histories", REPLAYED),
    experiment("ForgetObsoleteFiles", "books", "is left behind"),
    experiment("TellKeysByBytes", "histories", REPLAYED),
    experiment("TellKeysByLength", "histories", REPLAYED),
    experiment("ForgetFilteredDeletion", "histories", REPLAYED),
    experiment("SkipTooFar", "histories", REPLAYED),
    story("InstallFlushOutOfTurn", "crossing::flushes_of_other_families_overlap", "is lost"),
    experiment("AcknowledgeBehindSync", "crashes-two-writers", "is lost and was durable"),
    story("PublishOutOfOrder", "commit::what_a_snapshot_sees_does_not_change", "left == right"),
    story("AcknowledgeOutOfOrder", "commit::writers_write_side_by_side", "left == right"),
    story("ForgetSleepers", "commit::writers_write_side_by_side", "deadlock"),
    story("SwitchUnderWriters", "commit::a_switch_waits_for_who_is_inserting", "a write is lost"),
    story("ForgetWakeUp", "stall::progress_lets_writers_go_on", "deadlock"),
    story("ForgetEndOfCompaction", "stall::the_end_of_a_compaction_wakes_waiters", "deadlock"),
    experiment("NeverLiftStall", "versions", "somebody waits for work that nobody has"),
    experiment("PoisonOnFullLog", "faults-writing", POISONED),
    experiment("PoisonOnFullSync", "faults-compactions", POISONED),
];
