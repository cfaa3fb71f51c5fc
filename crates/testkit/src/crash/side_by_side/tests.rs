use std::path::Path;

use super::*;
use crate::crash::aftermath::Aftermath;
use crate::crash::disk::Disk;
use crate::crash::record::Change;
use crate::crash::scenarios::SCENARIOS;

fn live(name: &str, seed: u64) -> Life {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    Life::live(scenario.expect("a scenario's name"), seed)
}

#[test]
fn a_sync_covers_what_was_there_when_it_began() {
    let write = |offset, data: &[u8]| Change::Write { inode: 0, offset, data: data.into() };
    let mut disk = Disk::default();
    let path = Path::new("/file");
    let changes = [
        Change::Create { path: path.into(), inode: 0 },
        Change::SyncDirectory(Path::new("/").into()),
        write(0, b"before"),
        Change::BeginSync(0),
        write(6, b"beside"),
        Change::Sync(0),
    ];
    changes.iter().for_each(|change| disk.apply(change));
    let found = |disk: &Disk| disk.after(&Aftermath::lost()).file(path).cloned();
    assert_eq!(found(&disk).as_deref().map(Vec::as_slice), Some(&b"before"[..]));
    disk.apply(&Change::Sync(0));
    assert_eq!(found(&disk).as_deref().map(Vec::as_slice), Some(&b"beforebeside"[..]));
}

#[test]
fn the_schedule_is_the_same_again() {
    for seed in 0..10 {
        let tell = || {
            let fs = live("three-writers", seed).fs;
            (0..=fs.changes()).map(|at| fs.describe(at)).collect::<Vec<_>>()
        };
        let (once, again) = (tell(), tell());
        let differs = once.iter().zip(&again).position(|(one, other)| one != other);
        assert!(once == again, "seed {seed}: change {differs:?} is another");
    }
}

/// Whether others have logged something between the begin and the end of a sync.
fn has_logged_beside(changes: &[Change], is_synced: impl Fn(usize) -> bool) -> bool {
    let begins = |change: &Change| matches!(change, Change::BeginSync(file) if is_synced(*file));
    let ends = |change: &&Change| !matches!(change, Change::Sync(file) if is_synced(*file));
    let mut rest = changes;
    while let Some(at) = rest.iter().position(begins) {
        rest = &rest[at + 1..];
        if rest.iter().take_while(ends).any(|change| matches!(change, Change::Write { .. })) {
            return true;
        }
    }
    false
}

#[test]
fn others_write_during_syncs_of_the_log_and_of_tables() {
    for (name, end) in [("two-writers", "log"), ("three-writers-plain", "sst")] {
        let happens = (0..4).any(|seed| {
            let (_, changes) = live(name, seed).fs.recorded();
            let files: Vec<_> = changes
                .iter()
                .filter_map(|change| match change {
                    Change::Create { path, inode } => {
                        path.extension().is_some_and(|kind| kind == end).then_some(*inode)
                    }
                    _ => None,
                })
                .collect();
            has_logged_beside(&changes, |file| files.contains(&file))
        });
        assert!(happens, "{name}: {end}");
    }
}

#[test]
fn three_writes_are_in_flight_at_once() {
    let is_in_flight =
        |three: &[Batch]| three[..2].iter().all(|batch| batch.span.acked >= three[2].span.earliest);
    assert!(
        (0..4).any(|seed| live("three-writers", seed)
            .promises
            .batches
            .windows(3)
            .any(is_in_flight))
    );
}
