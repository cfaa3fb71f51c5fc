//! Which experiment finds which deliberate breakage of the engine (`base/mutant.rs`), and the
//! search for it in a process of its own.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use flagstone::env::Env;

/// What finds a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// An experiment of [`crate::laboratory::EXPERIMENTS`]; searched for by
    /// `crates/testkit/tests/mutants.rs`.
    Experiment(&'static str),
    /// A story told under the scheduler; searched for by `crates/flagstone/tests/schedule`.
    Story(&'static str),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Caught {
    /// The mutant's name.
    pub mutant: &'static str,
    /// What finds it.
    pub by: By,
    /// Words that the finding contains, or one of several between bars: that something is found is
    /// not enough.
    pub words: &'static str,
}

const fn experiment(mutant: &'static str, name: &'static str, words: &'static str) -> Caught {
    Caught { mutant, by: By::Experiment(name), words }
}

const fn story(mutant: &'static str, name: &'static str, words: &'static str) -> Caught {
    Caught { mutant, by: By::Story(name), words }
}

/// Signs of contents that are not what they should be; which comes first depends on the seeds.
const WRONG: &str = ": found|; found|is missing|get: family|is too much|is lost|no point in history|which is damaged|\
     where an iterator stands";

/// A full disk was more than that.
const POISONED: &str = "a full disk poisons|stopped accepting writes after a failure";

/// Histories draw so much that a mutant shows itself in one way or another; instead of by words it
/// is told apart by living the same history without it.
const REPLAYED: &str = REPLAY;

/// What stands before the file with the history of a finding.
const REPLAY: &str = "--replay ";

/// Every mutant once, or with each of several experiments that must find it.
pub const CAUGHT: &[Caught] = &[
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
    experiment("SkipBlobSync", "crashes-checkpoint", "too few for a blob file"),
    experiment("SkipBlobSyncBeforeWal", "crashes-blobs-at-commit", "is lost and was durable"),
    experiment("TrustRecoveredBlobs", "crashes-blobs-at-commit", "opening|checksum mismatch"),
    experiment("ForgetBlobsAtClose", "books", "is left behind"),
    experiment("KeepBlobsOfSwitchedMemtable", "books", "blob file"),
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
    experiment("ReorderManifestWrites", "crashes-creation", "an edit of the unknown column family"),
    experiment("PublishBeforeSync", "failed-syncs", "a reader sees a write whose sync failed"),
    story("PublishBeforeInsert", "commit::batches_are_whole", "batches_are_whole"),
    experiment("ForgetLogFlush", "crashes-log-by-hand", "is lost and was written"),
    experiment("AcknowledgeBeforeSync", "crashes-creation", "is lost and was durable"),
    experiment(
        "IgnoreFailedWrite",
        "faults-writing",
        "lost: batch|lost, though batch|nobody heard of Failure { call: Write",
    ),
    experiment("RetryFailedSync", "failed-syncs", "is synced again after a failed sync"),
    experiment("ForgetFailedSync", "failed-syncs", "is synced again after a failed sync"),
    experiment(
        "ForgetDoubtfulDrop",
        "doubtful-drops",
        "a family with an acknowledged write is gone",
    ),
    experiment("ForgetLostNames", "lost-names", "the MANIFEST lists this file, but it is missing"),
    experiment("LatchFullDisk", "faults-compactions", "writes do not resume|writes neither go on"),
    experiment("KeepRecycledNumber", "crashes-recycled", "is lost and was written"),
    experiment(
        "SkipLastFragmentCheck",
        "crashes-log-plain",
        "cut off at byte|WriteBatch has wrong count",
    ),
    experiment("TolerateHoleInWal", "crashes-log", WRONG),
    experiment("ForgetPredecessor", "crashes-wal-dir", WRONG),
    experiment(
        "ForgetReplayedSequence",
        "crashes-creation",
        "another opening finds something else",
    ),
    experiment("ForgetKeptMemtables", "crashes-reopen-kept", WRONG),
    experiment("SkipSyncOfKeptWals", "crashes-reopen-kept", WRONG),
    experiment("RemoveWalBeforeManifest", "crashes-reopen-kept", WRONG),
    experiment("RemoveOneWalTooMany", "crashes-reopen-kept", WRONG),
    experiment("LogNumberTooHigh", "crashes-reopen-kept", WRONG),
    experiment("SkipSyncOfOlderWals", "crashes-reopen-kept", WRONG),
    experiment(
        "ForgetAtomicFlush",
        "crashes-flush-together",
        "is there, and not batch|is lost and was durable",
    ),
    experiment("ForgetAtomicFlush", "histories", REPLAYED),
    experiment("ForgetAtomicGroup", "crashes-flush-together", "is there, and not batch"),
    experiment("ForgetUnloggedAtClose", "histories", REPLAYED),
    experiment("CreateFamiliesApart", "histories", REPLAYED),
    experiment("ReuseFamilyId", "crashes-families", WRONG),
    experiment("FlushDroppedFamily", "interruptions", "a flush panicked"),
    experiment("ForgetDrop", "crashes-families", "the MANIFEST lists this file, but it is missing"),
    experiment("SkipSyncOfCopies", "crashes-checkpoint", "no log_file_number entry in MANIFEST"),
    experiment("DeleteUnderCheckpoint", "interruptions", "a checkpoint: I/O error: cannot open"),
    experiment("CheckpointWithoutWals", "copies", WRONG),
    experiment("ForgetSnapshots", "versions", WRONG),
    experiment("ZeroUnderSnapshot", "versions", "entries are out of order"),
    experiment("DropTombstoneTooEarly", "histories", REPLAYED),
    experiment("DropRangeTombstoneTooEarly", "histories", REPLAYED),
    experiment("RangeTombstoneBeyondTable", "histories", REPLAYED),
    experiment("ForgetRangeTombstones", "histories", REPLAYED),
    experiment("SingleDeleteUnderSnapshot", "histories", REPLAYED),
    experiment("DropSingleDeleteTooEarly", "histories", REPLAYED),
    experiment("ReorderOperands", "histories", REPLAYED),
    experiment("MergeAcrossSnapshots", "histories", REPLAYED),
    experiment("CutWithinUserKey", "versions", WRONG),
    experiment("OverlapSubcompactions", "versions", "overlap"),
    experiment("MiscountBlobGarbage", "books", "the MANIFEST counts as live"),
    experiment("DropLinkedBlobFile", "books", "blob file"),
    experiment("IgnoreBlockChecksum", "damage-flips", WRONG),
    experiment("IgnoreBlobChecksum", "damage-flips", WRONG),
    experiment("SkipLengthCheck", "fuzz-decoders", "the target decompress failed"),
    experiment("ConfuseCachedBlocks", "histories", REPLAYED),
    experiment("AskPrefixFilterForKeys", "histories", REPLAYED),
    experiment("ForgetHashCollision", "histories", REPLAYED),
    experiment("SearchOldestFirst", "versions", WRONG),
    experiment("MultiGetWithoutSnapshot", "histories", REPLAYED),
    experiment("ReadElsewhereAsOfNow", "histories", REPLAYED),
    experiment("RepeatLastOfBatch", "histories", REPLAYED),
    experiment("IgnoreUpperBound", "histories", REPLAYED),
    experiment("PrevSkipsTable", "histories", REPLAYED),
    experiment("TurnWithoutSeek", "histories", REPLAYED),
    experiment("ReseekTooFar", "histories", REPLAYED),
    experiment("LeapOverNewKey", "queues", WRONG),
    experiment("PurgeUnderReaders", "histories", REPLAYED),
    experiment("PunchLiveRecord", "histories", REPLAYED),
    experiment("PunchUnderReaders", "histories", REPLAYED),
    experiment("ForgetObsoleteFiles", "books", "is left behind"),
    experiment("TellKeysByBytes", "histories", REPLAYED),
    experiment("TellKeysByLength", "histories", REPLAYED),
    experiment("ForgetFilteredDeletion", "histories", REPLAYED),
    experiment("SkipTooFar", "histories", REPLAYED),
    experiment("DropNewestTable", "histories", REPLAYED),
    experiment("DeleteFilesAtEnds", "histories", REPLAYED),
    experiment("SwapStreamPieces", "histories", REPLAYED),
    experiment("MisplacePart", "histories", REPLAYED),
    experiment("RefreshOneBehind", "histories", REPLAYED),
    experiment("MoveLevelOverOthers", "moved-levels", "get: family|a level moves: "),
    experiment("MoveLevelOverOthers", "histories", REPLAYED),
    story(
        "ReadSequenceBeforePin",
        "versions::lookups_find_an_overwritten_key",
        "it is always there",
    ),
    story(
        "RegisterSnapshotLate",
        "versions::a_flush_keeps_what_snapshots_beside_it_see",
        "a snapshot moved",
    ),
    story("InstallFlushOutOfTurn", "crossing::flushes_of_other_families_overlap", "is lost"),
    experiment("TrustUpdatePosition", "crashes-updates", "which is lost, is not told so"),
    experiment("ForgetUpdates", "crashes-updates", "which is there (true)"),
    story("ForgetOthersWork", "commit::writers_write_for_each_other", "no work is forgotten"),
    story(
        "LetOthersPanic",
        "commit::a_panic_in_the_work_of_another_is_not_one_s_own",
        "for writer 0 alone",
    ),
    story("ForgetWakeUp", "stall::progress_lets_writers_go_on", "deadlock"),
    story("AdvanceBeforeElectionEnds", "commit::no_wake_up_is_lost", "deadlock"),
    story(
        "ListWalsTooEarly",
        "updates::a_reader_that_goes_on_misses_no_write",
        "the WALs have every write",
    ),
    story(
        "CountCheckpointTooLate",
        "closing::a_close_waits_for_the_checkpoint_beside_it",
        "came or went after the close",
    ),
    story("ForgetEndOfCompaction", "stall::the_end_of_a_compaction_wakes_waiters", "deadlock"),
    story(
        "HoldInputsBeyondEnd",
        "stall::waiters_find_the_inputs_of_compactions_removed",
        "files in the directory, and those of the newest version",
    ),
    experiment("NeverLiftStall", "versions", "somebody waits for work that nobody has"),
    experiment("RefuseInVain", "histories", REPLAYED),
    experiment("RefuseUnderWalLimit", "histories", REPLAYED),
    experiment("RefuseBesideBlobs", "histories", REPLAYED),
    experiment("PoisonOnFullLog", "faults-writing", POISONED),
    experiment("PoisonOnFullSync", "faults-compactions", POISONED),
    experiment("GiveUpInVain", "histories", REPLAYED),
];

/// A search ends by itself when its lives are lived. One that takes longer hangs: this is many
/// times what the longest takes, since a slow and busy core must not make the difference.
const LIMIT: Duration = Duration::from_secs(1800);

/// How many searches run at once.
const SEARCHES: usize = 2;

/// Searches for the mutants of these rows, or those that `FLAGSTONE_MUTANTS` names
/// (`SkipBlobSync,ForgetDrop`); `command` is what reports a fault by [`FINDING`] and its words,
/// given a row.
///
/// # Panics
/// With those that escaped.
pub fn search_all(
    rows: impl Iterator<Item = &'static Caught>,
    marker: &str,
    command: impl Fn(&Caught) -> Command + Sync,
) {
    let asked = std::env::var("FLAGSTONE_MUTANTS").unwrap_or_default();
    let is_asked = |name: &str| asked.is_empty() || asked.split(',').any(|asked| asked == name);
    let rows: Vec<&Caught> = rows.filter(|row| is_asked(row.mutant)).collect();
    let (next, escaped) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let clock = Env::os().clock;
    let take_rows = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = clock.now_us();
            let outcome = search(row, marker, command(row));
            let seconds = (clock.now_us() - begun) as f64 / 1e6;
            println!("{} by {:?}: {seconds:.1} s", row.mutant, row.by);
            if let Err(why) = outcome {
                escaped.lock().expect("no panic").push(format!("{}: {why}", row.mutant));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..SEARCHES {
            scope.spawn(take_rows);
        }
    });
    let escaped = escaped.into_inner().expect("no panic");
    assert!(escaped.is_empty(), "{} mutants escaped:\n{}", escaped.len(), escaped.join("\n\n"));
}

/// Searches for one mutant; why it is not caught, if it is not.
fn search(row: &Caught, marker: &str, mut command: Command) -> Result<(), String> {
    // Searches write down histories under the same names.
    let directory = tempfile::tempdir().expect("a place for findings");
    let program = command.get_program().to_owned();
    let mut child = command
        .env("FLAGSTONE_MUTANT", row.mutant)
        .env("TMPDIR", directory.path())
        .env_remove("FLAGSTONE_SEEDS")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let mut output = child.stdout.take().expect("it is piped");
    let (sender, said) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut text = Vec::new();
            let read =
                output.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned());
            sender.send(read).expect("somebody listens");
        });
        let Ok(said) = said.recv_timeout(LIMIT) else {
            child.kill().expect("it is running");
            child.wait().expect("it ends");
            return Err(format!("nothing was found within {LIMIT:?}"));
        };
        let status = child.wait().expect("it ends");
        let said = said.expect("what it said");
        // Behind the finding stand the meanings of markers, which may contain any words.
        let said = said.split("\nrare branches reached").next().unwrap_or_default();
        match said.split_once(marker).map(|(_, finding)| finding) {
            Some(finding) if row.words.split('|').any(|words| finding.contains(words)) => finding
                .split_once(REPLAY)
                .map_or(Ok(()), |(_, file)| replay(Command::new(program), file)),
            Some(finding) => Err(format!("what was found is not '{}': {finding}", row.words)),
            None => Err(format!("nothing was found ({status}): {said}")),
        }
    })
}

/// Lives a history without any mutant, which must find nothing: else what was found is not the
/// mutant's doing. `file` is followed by the rest of the finding.
fn replay(mut laboratory: Command, file: &str) -> Result<(), String> {
    let file = file.lines().next().unwrap_or_default();
    let lived =
        laboratory.env_remove("FLAGSTONE_MUTANT").args(["histories", "--replay", file]).output();
    let lived = lived.expect("a child");
    if lived.status.success() {
        Ok(())
    } else {
        Err(format!("found without it, too: {}", String::from_utf8_lossy(&lived.stdout)))
    }
}

/// What precedes the words of a finding.
pub const FINDING: &str = ": FAULT\n";
