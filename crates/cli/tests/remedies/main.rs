//! Every remedy that the doctor, an error or a command gives is tried on a state that it is given
//! for.
//!
//! `state_of` names the state of each: a remedy without one does not compile. A state makes a
//! database, or the facts of one that would be too large for a test; says what is advised; does
//! that; and says what is advised then.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each binary of tests uses some of it")]
mod common;

mod commands;
mod errors;
mod facts;
mod findings;

use std::panic::catch_unwind;

use flagstone::base::{Error, Remedy, RemedyKind};
use flagstone::db::Finding;

/// What is advised of a state, and after it was done.
struct Tried {
    before: Vec<Remedy>,
    after: Vec<Remedy>,
}

/// A remedy, and those that it holds.
fn flat(remedies: &[Remedy]) -> Vec<Remedy> {
    let inner = |remedy: &Remedy| match remedy {
        Remedy::SeeBelow { otherwise } => flat(otherwise),
        _ => Vec::new(),
    };
    remedies.iter().flat_map(|remedy| [vec![remedy.clone()], inner(remedy)].concat()).collect()
}

fn advised(findings: &[Finding]) -> Vec<Remedy> {
    findings.iter().flat_map(|finding| flat(&finding.remedies)).collect()
}

/// What an error says that helps; nothing where there is none.
fn said<T>(outcome: Result<T, Error>) -> Vec<Remedy> {
    outcome.err().map(|error| flat(error.remedies())).unwrap_or_default()
}

macro_rules! states {
    ($($kind:ident => $state:path,)+) => {
        fn state_of(kind: RemedyKind) -> fn() -> Tried {
            match kind { $(RemedyKind::$kind => $state,)+ }
        }
    };
}

states! {
    Set => findings::set,
    SetBack => commands::set_back,
    MoreMemory => facts::more_memory,
    MindRateLimit => facts::mind_rate_limit,
    SeeBelow => facts::see_below,
    ShareSyncs => findings::share_syncs,
    LookAfterDisk => facts::look_after_disk,
    Reopen => findings::reopen,
    MakeSpace => findings::make_space,
    MakeSpaceAndReserve => facts::make_space_and_reserve,
    MakeSpaceForWal => findings::make_space_for_wal,
    Flush => facts::flush,
    DropIterator => facts::drop_iterator,
    DropSnapshot => facts::drop_snapshot,
    DropSnapshotFirst => facts::drop_snapshot_first,
    DropOldestSnapshots => facts::drop_oldest_snapshots,
    LetGo => findings::let_go,
    Compact => commands::compact,
    CollectGarbage => commands::collect_garbage,
    LetBurstPass => facts::let_burst_pass,
    AnotherStyle => findings::another_style,
    DeleteRanges => facts::delete_ranges,
    DeleteFewerRanges => facts::delete_fewer_ranges,
    ExpireByTtl => facts::expire_by_ttl,
    LeaveStrays => findings::leave_strays,
    LeaveTornEnd => findings::leave_torn_end,
    LeaveEmptyWal => facts::leave_empty_wal,
    SettleWal => findings::settle_wal,
    RestoreOrSalvage => findings::restore_or_salvage,
    CompactWithWriter => facts::compact_with_writer,
    BePermitted => facts::be_permitted,
    MendKey => findings::mend_key,
    RestoreManifest => errors::restore_manifest,
    RestoreOrGoWithout => errors::restore_or_go_without,
    FindWal => errors::find_wal,
    FindWalDirectory => errors::find_wal_directory,
    MountWalDirectory => commands::mount_wal_directory,
    RestoreWal => commands::restore_wal,
    RaiseNumLevels => errors::raise_num_levels,
    NameAllFamilies => errors::name_all_families,
    CreateMissingFamilies => errors::create_missing_families,
    OpenWithOwnOptions => errors::open_with_own_options,
    EndOptionsFile => errors::end_options_file,
    CorrectLine => errors::correct_line,
    MoveOptionsAway => commands::move_options_away,
    DecidePrepared => errors::decide_prepared,
    DecideTransaction => commands::decide_transaction,
    EndLockHolder => findings::end_lock_holder,
    ReadUnstamped => errors::read_unstamped,
    NameEmptyTarget => errors::name_empty_target,
    RemoveOwner => errors::remove_owner,
    MakeNewCopy => errors::make_new_copy,
    KeepWals => errors::keep_wals,
    SalvageWithoutCurrent => commands::salvage_without_current,
    CheckPath => commands::check_path,
    ShowByKind => commands::show_by_kind,
    LookAgain => commands::look_again,
    CopyBesideWriter => commands::copy_beside_writer,
    VerifyAndSalvage => commands::verify_and_salvage,
    SeeWhatIsThere => commands::see_what_is_there,
    BeOwner => errors::be_owner,
    MountWritable => errors::mount_writable,
    MakeSpaceAndRepeat => commands::make_space_and_repeat,
    RaiseQuota => errors::raise_quota,
    PermitLargerFiles => commands::permit_larger_files,
    PermitMoreMemory => errors::permit_more_memory,
    PermitMoreFiles => commands::permit_more_files,
    HoldAllFiles => commands::hold_all_files,
    CopyFromDevice => errors::copy_from_device,
}

/// What was advised did nothing, and was advised again.
#[test]
fn every_remedy_clears_the_state_that_it_is_given_for() {
    let mut wrong = Vec::new();
    for kind in RemedyKind::ALL {
        let Ok(Tried { before, after }) = catch_unwind(|| state_of(*kind)()) else {
            wrong.push(format!("{kind:?} panicked"));
            continue;
        };
        let is_of_kind = |remedy: &&Remedy| remedy.kind() == *kind;
        match before.iter().find(is_of_kind) {
            None => wrong.push(format!("{kind:?} is not advised, but {before:?}")),
            Some(remedy) if remedy.to_string().is_empty() => {
                wrong.push(format!("{kind:?} has no words"))
            }
            Some(_) => {}
        }
        if let Some(remedy) = after.iter().find(is_of_kind) {
            wrong.push(format!("{kind:?} did not help: it is advised still, '{remedy}'"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
