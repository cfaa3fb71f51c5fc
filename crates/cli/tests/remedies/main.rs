//! Every remedy that the doctor, an error or a command gives is tried on a state that it is given for.
//!
//! `state_of` names the state of each: a remedy without one does not compile. A state makes a database, or the facts of one that
//! would be too large for a test; says what is advised; does that; and says what is advised then.

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

fn state_of(kind: RemedyKind) -> fn() -> Tried {
    match kind {
        RemedyKind::Set => findings::set,
        RemedyKind::SetBack => commands::set_back,
        RemedyKind::MoreMemory => facts::more_memory,
        RemedyKind::MindRateLimit => facts::mind_rate_limit,
        RemedyKind::SeeBelow => facts::see_below,
        RemedyKind::ShareSyncs => findings::share_syncs,
        RemedyKind::LookAfterDisk => facts::look_after_disk,
        RemedyKind::Reopen => findings::reopen,
        RemedyKind::MakeSpace => findings::make_space,
        RemedyKind::MakeSpaceAndReserve => facts::make_space_and_reserve,
        RemedyKind::MakeSpaceForWal => findings::make_space_for_wal,
        RemedyKind::Flush => facts::flush,
        RemedyKind::DropIterator => facts::drop_iterator,
        RemedyKind::DropSnapshot => facts::drop_snapshot,
        RemedyKind::DropSnapshotFirst => facts::drop_snapshot_first,
        RemedyKind::DropOldestSnapshots => facts::drop_oldest_snapshots,
        RemedyKind::LetGo => findings::let_go,
        RemedyKind::Compact => commands::compact,
        RemedyKind::CollectGarbage => commands::collect_garbage,
        RemedyKind::LetBurstPass => facts::let_burst_pass,
        RemedyKind::AnotherStyle => findings::another_style,
        RemedyKind::DeleteRanges => facts::delete_ranges,
        RemedyKind::DeleteFewerRanges => facts::delete_fewer_ranges,
        RemedyKind::ExpireByTtl => facts::expire_by_ttl,
        RemedyKind::LeaveStrays => findings::leave_strays,
        RemedyKind::LeaveTornEnd => findings::leave_torn_end,
        RemedyKind::LeaveEmptyWal => facts::leave_empty_wal,
        RemedyKind::SettleWal => findings::settle_wal,
        RemedyKind::RestoreOrSalvage => findings::restore_or_salvage,
        RemedyKind::CompactWithWriter => facts::compact_with_writer,
        RemedyKind::BePermitted => facts::be_permitted,
        RemedyKind::MendKey => findings::mend_key,
        RemedyKind::RestoreManifest => errors::restore_manifest,
        RemedyKind::RestoreOrGoWithout => errors::restore_or_go_without,
        RemedyKind::FindWal => errors::find_wal,
        RemedyKind::FindWalDirectory => errors::find_wal_directory,
        RemedyKind::MountWalDirectory => commands::mount_wal_directory,
        RemedyKind::RestoreWal => commands::restore_wal,
        RemedyKind::RaiseNumLevels => errors::raise_num_levels,
        RemedyKind::NameAllFamilies => errors::name_all_families,
        RemedyKind::CreateMissingFamilies => errors::create_missing_families,
        RemedyKind::OpenWithOwnOptions => errors::open_with_own_options,
        RemedyKind::EndOptionsFile => errors::end_options_file,
        RemedyKind::CorrectLine => errors::correct_line,
        RemedyKind::MoveOptionsAway => commands::move_options_away,
        RemedyKind::DecidePrepared => errors::decide_prepared,
        RemedyKind::ReadUnstamped => errors::read_unstamped,
        RemedyKind::NameEmptyTarget => errors::name_empty_target,
        RemedyKind::RemoveOwner => errors::remove_owner,
        RemedyKind::MakeNewCopy => errors::make_new_copy,
        RemedyKind::KeepWals => errors::keep_wals,
        RemedyKind::SalvageWithoutCurrent => commands::salvage_without_current,
        RemedyKind::CheckPath => commands::check_path,
        RemedyKind::ShowByKind => commands::show_by_kind,
        RemedyKind::LookAgain => commands::look_again,
        RemedyKind::CopyBesideWriter => commands::copy_beside_writer,
        RemedyKind::VerifyAndSalvage => commands::verify_and_salvage,
        RemedyKind::SeeWhatIsThere => commands::see_what_is_there,
        RemedyKind::BeOwner => errors::be_owner,
        RemedyKind::MountWritable => errors::mount_writable,
        RemedyKind::MakeSpaceAndRepeat => commands::make_space_and_repeat,
        RemedyKind::RaiseQuota => errors::raise_quota,
        RemedyKind::PermitLargerFiles => commands::permit_larger_files,
        RemedyKind::PermitMoreMemory => errors::permit_more_memory,
        RemedyKind::PermitMoreFiles => commands::permit_more_files,
        RemedyKind::HoldAllFiles => commands::hold_all_files,
        RemedyKind::CopyFromDevice => errors::copy_from_device,
    }
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
            Some(remedy) if remedy.to_string().is_empty() => wrong.push(format!("{kind:?} has no words")),
            Some(_) => {}
        }
        if let Some(remedy) = after.iter().find(is_of_kind) {
            wrong.push(format!("{kind:?} did not help: it is advised still, '{remedy}'"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
