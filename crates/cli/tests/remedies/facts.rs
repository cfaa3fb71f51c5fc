//! States that would take gigabytes, hours, or the files of other programs: their facts.

use flagstone::base::Remedy;
use flagstone::db::{DatabaseFacts, Facts, FamilyFacts, LogFacts, LogFate, diagnose};
use flagstone::options::CompactionStyle;

use super::{Tried, advised};

/// What is advised of a database with these facts.
fn of(facts: Facts) -> Vec<Remedy> {
    advised(&diagnose(&facts))
}

fn of_database(database: DatabaseFacts) -> Vec<Remedy> {
    of(Facts { database, families: vec![FamilyFacts::default()], ..Facts::default() })
}

fn of_family(family: FamilyFacts) -> Vec<Remedy> {
    of(Facts { families: vec![family], ..Facts::default() })
}

fn healthy() -> Vec<Remedy> {
    of_database(DatabaseFacts::default())
}

fn held_up() -> Vec<Remedy> {
    of_database(DatabaseFacts {
        stall_us: 800_000_000,
        open_seconds: 1000,
        ..DatabaseFacts::default()
    })
}

/// A load that has room for its bursts holds nothing up.
pub fn more_memory() -> Tried {
    Tried { before: held_up(), after: healthy() }
}

pub fn see_below() -> Tried {
    Tried { before: held_up(), after: healthy() }
}

pub fn mind_rate_limit() -> Tried {
    let limited = |rate_limit| {
        let database = DatabaseFacts { rate_limit, is_running: false, ..DatabaseFacts::default() };
        let families = vec![FamilyFacts { level0_files: 40, ..FamilyFacts::default() }];
        of(Facts { database, families, ..Facts::default() })
    };
    Tried { before: limited(1_000_000), after: limited(0) }
}

pub fn look_after_disk() -> Tried {
    let stopped = DatabaseFacts {
        writers: "stopped".to_string(),
        stopped_seconds: 30,
        open_seconds: 100_000,
        ..DatabaseFacts::default()
    };
    Tried { before: of_database(stopped), after: healthy() }
}

pub fn make_space_and_reserve() -> Tried {
    let free = |free_bytes, reserved_disk_space| {
        of_database(DatabaseFacts { free_bytes, reserved_disk_space, ..DatabaseFacts::default() })
    };
    let before = free(1000, 0);
    let [Remedy::MakeSpaceAndReserve { bytes }] = before[..] else { panic!("{before:?}") };
    Tried { after: free(bytes + 1, bytes), before }
}

pub fn flush() -> Tried {
    let full = of_database(DatabaseFacts { wal_bytes: 5_000_000_000, ..DatabaseFacts::default() });
    Tried { before: full, after: healthy() }
}

pub fn drop_iterator() -> Tried {
    let old = DatabaseFacts {
        iterator_kept_bytes: 100_000_000,
        iterator_seconds: 700,
        iterator_made_at: "src/scan.rs:12:20".to_string(),
        ..DatabaseFacts::default()
    };
    Tried { before: of_database(old), after: healthy() }
}

fn old_snapshot() -> DatabaseFacts {
    DatabaseFacts {
        snapshot_seconds: 4000,
        snapshot_writes: 2_000_000,
        snapshot_taken_at: "src/backup.rs:7:9".to_string(),
        ..DatabaseFacts::default()
    }
}

pub fn drop_snapshot() -> Tried {
    Tried { before: of_database(old_snapshot()), after: healthy() }
}

fn deleted() -> FamilyFacts {
    FamilyFacts {
        tables: 30,
        deletion_tables: 25,
        entries: 100_000,
        deletions: 60_000,
        ..FamilyFacts::default()
    }
}

pub fn drop_snapshot_first() -> Tried {
    let kept = |database| of(Facts { database, families: vec![deleted()], ..Facts::default() });
    Tried { before: kept(old_snapshot()), after: kept(DatabaseFacts::default()) }
}

pub fn delete_ranges() -> Tried {
    Tried {
        before: of_family(deleted()),
        after: of_family(FamilyFacts { deletions: 0, ..deleted() }),
    }
}

pub fn delete_fewer_ranges() -> Tried {
    let ranges = |range_deletions| {
        of_family(FamilyFacts { entries: 90_000, range_deletions, ..FamilyFacts::default() })
    };
    Tried { before: ranges(20_000), after: ranges(200) }
}

/// With another style compactions take deletions along.
pub fn expire_by_ttl() -> Tried {
    let of_style = |compaction_style| of_family(FamilyFacts { compaction_style, ..deleted() });
    Tried { before: of_style(CompactionStyle::Fifo), after: of_style(CompactionStyle::Level) }
}

pub fn drop_oldest_snapshots() -> Tried {
    let what = "the range deletions that begin with the key 'a' are more than a table can hold"
        .to_string();
    let aside = vec![(what, vec![Remedy::DropOldestSnapshots])];
    Tried { before: of(Facts { aside, ..Facts::default() }), after: healthy() }
}

/// Compactions take it down.
pub fn let_burst_pass() -> Tried {
    let garbage = |blob_bytes, blob_garbage_bytes| {
        of_family(FamilyFacts { blob_bytes, blob_garbage_bytes, ..FamilyFacts::default() })
    };
    Tried {
        before: garbage(3_000_000_000, 1_000_000_000),
        after: garbage(2_100_000_000, 100_000_000),
    }
}

/// The program that wrote the file writes it again, in a version that is known.
pub fn compact_with_writer() -> Tried {
    let unsupported = vec!["family 'default': not supported: an entity of version 2".to_string()];
    Tried { before: of(Facts { unsupported, ..Facts::default() }), after: healthy() }
}

/// Tests may run as root, which is refused nothing.
pub fn be_permitted() -> Tried {
    let refused = vec!["I/O error: cannot open: Permission denied (/db/000012.sst)".to_string()];
    Tried { before: of(Facts { refused, ..Facts::default() }), after: healthy() }
}

/// The next opening for writing begins another WAL.
pub fn leave_empty_wal() -> Tried {
    let missing = LogFacts {
        what: "the newest WAL is missing, unless it was empty (/db/000013.log)".to_string(),
        fate: LogFate::Missing,
        mode: "kPointInTimeRecovery".to_string(),
        records_behind: 0,
        bytes_behind: 0,
    };
    Tried { before: of(Facts { logs: vec![missing], ..Facts::default() }), after: healthy() }
}
