//! The life of a MANIFEST: written, read back, damaged, failed, and compared with RocksDB's.

mod damage;
mod faults;
mod rocksdb;

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::base::{
    Code, ColumnFamilyId, Comparator, DataPaths, FileNumber, InternalKeyBuf, SubCode, ValueType,
    file_name,
};
use crate::env::{Env, read_file};

const DB: &str = "/db";
const DEFAULT: ColumnFamilyId = ColumnFamilyId::DEFAULT;

fn spec(name: &str) -> FamilySpec {
    FamilySpec {
        name: name.to_string(),
        comparator: Comparator::Bytewise,
        persists_timestamps: true,
        paths: DataPaths::single(Path::new("/db")),
        num_levels: 7,
    }
}

fn options(names: &[&str]) -> RecoverOptions {
    let families = names.iter().map(|name| spec(name)).collect();
    RecoverOptions { families, read_only: false, settings: ManifestSettings::default() }
}

fn new_database() -> (Env, VersionSet) {
    let env = Env::memory();
    env.fs.create_directory(Path::new(DB)).unwrap();
    let versions = VersionSet::create(
        env.clone(),
        Path::new(DB),
        spec("default"),
        ManifestSettings::default(),
    )
    .unwrap();
    (env, versions)
}

fn reopen(env: &Env) -> VersionSet {
    VersionSet::recover(env.clone(), Path::new(DB), options(&["default"])).unwrap()
}

/// A table with the user keys `smallest..=largest`, written at `seqnos`.
fn table(number: u64, keys: (&str, &str), seqnos: (u64, u64)) -> FileMetadata {
    FileMetadata {
        number: FileNumber(number),
        size: 100 + number,
        smallest: InternalKeyBuf::new(keys.0.as_bytes(), seqnos.1, ValueType::Value),
        largest: InternalKeyBuf::new(keys.1.as_bytes(), seqnos.0, ValueType::Value),
        smallest_seqno: seqnos.0,
        largest_seqno: seqnos.1,
        ..FileMetadata::default()
    }
}

fn with_blob(table: FileMetadata, oldest: u64) -> FileMetadata {
    FileMetadata { oldest_blob_file: Some(FileNumber(oldest)), ..table }
}

fn blob(number: u64, total_count: u64) -> BlobFileAddition {
    let number = FileNumber(number);
    BlobFileAddition {
        number,
        total_count,
        total_bytes: total_count * 100,
        ..BlobFileAddition::default()
    }
}

fn garbage(number: u64, count: u64) -> BlobFileGarbage {
    BlobFileGarbage { number: FileNumber(number), count, bytes: count * 100 }
}

fn edit(new: &[(usize, FileMetadata)], deleted: &[(usize, u64)]) -> VersionEdit {
    VersionEdit {
        new_files: new.to_vec(),
        deleted_files: deleted.iter().map(|&(level, number)| (level, FileNumber(number))).collect(),
        ..VersionEdit::default()
    }
}

/// The tables of each level that has any, as `L0: 12 11  L2: 7`.
fn layout(version: &Version) -> String {
    let level = |(level, files): (usize, &Vec<Arc<TableFile>>)| {
        let numbers: Vec<_> = files.iter().map(|file| file.number().0.to_string()).collect();
        (!files.is_empty()).then(|| format!("L{level}: {}", numbers.join(" ")))
    };
    version.levels.iter().enumerate().filter_map(level).collect::<Vec<_>>().join("  ")
}

fn default_layout(versions: &VersionSet) -> String {
    layout(&versions.family(DEFAULT).unwrap().current)
}

/// Two flushes, and a compaction of both into level 6.
fn flush_twice_and_compact(versions: &mut VersionSet) {
    versions.log_and_apply(vec![edit(&[(0, table(10, ("a", "m"), (1, 5)))], &[])]).unwrap();
    versions.log_and_apply(vec![edit(&[(0, table(11, ("c", "z"), (6, 9)))], &[])]).unwrap();
    let outputs = [(6, table(12, ("a", "k"), (0, 9))), (6, table(13, ("l", "z"), (0, 8)))];
    versions.log_and_apply(vec![edit(&outputs, &[(0, 10), (0, 11)])]).unwrap();
}

#[test]
fn a_new_database_is_empty_and_has_an_identity() {
    let (env, versions) = new_database();
    let id = read_file(&*env.fs, &Path::new(DB).join("IDENTITY"), 100).unwrap();
    assert_eq!((id.len(), &id[14..15], versions.db_id().as_bytes()), (36, &b"4"[..], &id[..]));
    let current = read_file(&*env.fs, &Path::new(DB).join("CURRENT"), 100).unwrap();
    assert_eq!(current, b"MANIFEST-000001\n");
    let again = VersionSet::create(
        env.clone(),
        Path::new(DB),
        spec("default"),
        ManifestSettings::default(),
    );
    assert_eq!(again.err().unwrap().code(), Code::InvalidArgument);
    let reopened = reopen(&env);
    assert_eq!((default_layout(&reopened), reopened.db_id()), (String::new(), versions.db_id()));
    assert!(reopened.file_numbers().next() > FileNumber(2));
}

/// RocksDB 11.8 cut a range deletion at `k0043`: a database with such a table did not open.
#[test]
fn a_bound_at_which_rocksdb_cut_a_range_deletion_is_kept_as_it_is() {
    let (env, mut versions) = new_database();
    let bound = b"k0043\x1a\xfc\0\0\0\0\0\0";
    let mut cut = table(10, ("k0043", "m"), (1, 252));
    cut.smallest = InternalKeyBuf::parse_bound(bound).unwrap();
    versions.log_and_apply(vec![edit(&[(0, cut)], &[])]).unwrap();
    let reopened = reopen(&env);
    let tables = &reopened.family(DEFAULT).unwrap().current.levels[0];
    assert_eq!(tables[0].meta.smallest.as_key().as_bytes(), bound);
    assert!(InternalKeyBuf::parse(bound).is_none(), "no entry has such a key");
}

#[test]
fn changes_survive_reopening() {
    let (env, mut versions) = new_database();
    flush_twice_and_compact(&mut versions);
    versions.set_last_sequence(30);
    let flush = VersionEdit {
        log_number: Some(FileNumber(20)),
        ..edit(&[(0, table(21, ("b", "b"), (25, 30)))], &[])
    };
    versions.log_and_apply(vec![flush]).unwrap();
    assert_eq!(default_layout(&versions), "L0: 21  L6: 12 13");
    let mut reopened = reopen(&env);
    assert_eq!(default_layout(&reopened), "L0: 21  L6: 12 13");
    assert_eq!((reopened.last_sequence(), reopened.oldest_log_number()), (30, FileNumber(20)));
    let family = reopened.family(DEFAULT).unwrap();
    let epochs: Vec<_> = family.current.files().map(|(_, file)| file.meta.epoch_number).collect();
    assert_eq!(
        (epochs, family.next_epoch_number),
        (vec![3, 1, 1], 4),
        "outputs take the oldest input's epoch"
    );
    assert!(reopened.file_numbers().next() > FileNumber(21));

    let old_manifest = reopened.manifest_number();
    reopened.log_and_apply(vec![edit(&[], &[(0, 21)])]).unwrap();
    assert!(reopened.manifest_number() > old_manifest, "the first change begins a new MANIFEST");
    assert_eq!(default_layout(&reopen(&env)), "L6: 12 13");
}

#[test]
fn removed_files_are_queued_when_the_last_version_goes() {
    let (_, mut versions) = new_database();
    versions
        .log_and_apply(vec![edit(&[(0, with_blob(table(10, ("a", "m"), (1, 5)), 9))], &[])])
        .unwrap_err();
    let mut flush = edit(&[(0, with_blob(table(10, ("a", "m"), (1, 5)), 9))], &[]);
    flush.blob_file_additions.push(blob(9, 4));
    versions.log_and_apply(vec![flush]).unwrap();
    let snapshot = versions.family(DEFAULT).unwrap().current.clone();

    versions
        .log_and_apply(vec![edit(&[(3, snapshot.levels[0][0].meta.clone())], &[(0, 10)])])
        .unwrap();
    assert!(Arc::ptr_eq(
        &snapshot.levels[0][0],
        &versions.family(DEFAULT).unwrap().current.levels[3][0]
    ));
    let mut compaction = edit(&[], &[(3, 10)]);
    compaction.blob_file_garbages.push(garbage(9, 4));
    versions.log_and_apply(vec![compaction]).unwrap();
    assert_eq!((default_layout(&versions), versions.live_files().len()), (String::new(), 0));
    assert!(versions.obsolete_files().is_empty(), "the snapshot still reads them");
    drop(snapshot);
    let mut gone: Vec<_> =
        versions.obsolete_files().take(usize::MAX).iter().map(ObsoleteFile::path).collect();
    gone.sort();
    assert_eq!(gone, [Path::new("/db/000009.blob"), Path::new("/db/000010.sst")]);
}

#[test]
fn edits_that_do_not_fit_change_nothing() {
    let (env, mut versions) = new_database();
    flush_twice_and_compact(&mut versions);
    let blob_twice =
        VersionEdit { blob_file_additions: vec![blob(9, 1), blob(9, 1)], ..VersionEdit::default() };
    let unknown_garbage =
        VersionEdit { blob_file_garbages: vec![garbage(8, 1)], ..VersionEdit::default() };
    for (wrong, why) in [
        (edit(&[], &[(5, 12)]), "it is on level 6"),
        (edit(&[], &[(6, 99)]), "not in the LSM tree"),
        (edit(&[(0, table(12, ("a", "b"), (10, 11)))], &[]), "already in"),
        (edit(&[(6, table(14, ("k", "l"), (10, 11)))], &[]), "overlap"),
        (edit(&[(7, table(14, ("k", "l"), (10, 11)))], &[]), "more levels"),
        (edit(&[(5, table(14, ("l", "k"), (10, 11)))], &[]), "is above its largest"),
        (edit(&[(5, with_blob(table(14, ("k", "l"), (10, 11)), 3))], &[]), "which is unknown"),
        (blob_twice, "added twice"),
        (unknown_garbage, "which is unknown"),
        (VersionEdit::new(ColumnFamilyId(4)), "not open or was dropped"),
    ] {
        let error = versions.log_and_apply(vec![wrong]).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    }
    assert_eq!(default_layout(&versions), "L6: 12 13");
    assert_eq!(default_layout(&reopen(&env)), "L6: 12 13");
}

#[test]
fn level_zero_must_be_in_order_for_both_versions_of_rocksdb() {
    let at = |number, keys, seqnos, epoch_number| FileMetadata {
        epoch_number,
        ..table(number, keys, seqnos)
    };
    // With an entry for each of its sequence numbers.
    let dense = |table: FileMetadata| {
        let entries = table.largest_seqno - table.smallest_seqno + 1;
        FileMetadata { entry_stats: Some(EntryStats { entries, ..EntryStats::default() }), ..table }
    };
    for (first, second, why) in [
        (at(10, ("a", "c"), (1, 5), 1), at(11, ("b", "d"), (6, 9), 1), Some("same epoch")),
        // Two tables that were taken in, or one and what is older, have been merged.
        (at(10, ("a", "c"), (6, 9), 1), at(11, ("b", "d"), (1, 5), 2), None),
        (at(10, ("a", "c"), (6, 9), 1), at(11, ("b", "d"), (1, 10), 2), None),
        (at(10, ("a", "c"), (1, 9), 1), at(11, ("b", "d"), (2, 5), 2), None),
        // A write was flushed twice.
        (at(10, ("a", "c"), (1, 9), 1), at(11, ("b", "d"), (1, 5), 2), Some("lower seqnos")),
        (at(10, ("a", "c"), (2, 9), 1), at(11, ("b", "d"), (1, 9), 2), Some("lower seqnos")),
        (at(10, ("a", "c"), (3, 9), 1), dense(at(11, ("b", "d"), (1, 5), 2)), Some("lower seqnos")),
        (at(10, ("a", "c"), (6, 9), 1), dense(at(11, ("b", "d"), (1, 5), 2)), None),
        // It comes with an epoch below others although nothing was merged.
        (at(10, ("a", "c"), (6, 9), 2), at(11, ("b", "d"), (10, 12), 1), Some("lower seqnos")),
        (at(10, ("a", "c"), (6, 6), 1), at(11, ("b", "d"), (1, 5), 2), None),
        (at(10, ("a", "c"), (1, 5), 1), at(11, ("b", "d"), (1, 9), 2), Some("interleaved")),
        (at(10, ("a", "c"), (1, 5), 1), at(11, ("d", "e"), (6, 9), 1), None),
        (at(10, ("a", "c"), (7, 7), 1), at(11, ("b", "d"), (5, 9), 2), None),
        (at(10, ("a", "c"), (1, 5), 1), at(11, ("b", "d"), (6, 9), 2), None),
    ] {
        let (_, mut versions) = new_database();
        versions.log_and_apply(vec![edit(&[(0, first)], &[])]).unwrap();
        let result = versions.log_and_apply(vec![edit(&[(0, second)], &[])]);
        match why {
            Some(why) => assert!(result.unwrap_err().message().contains(why), "{why}"),
            None => assert_eq!(result.map(|()| default_layout(&versions)).unwrap(), "L0: 11 10"),
        }
    }
}

/// What is merged of level 0 may have sequence numbers around those of what was not, but nothing
/// may change places.
#[test]
fn what_is_merged_takes_the_place_of_tables_that_were_next_to_each_other() {
    let at = |number, epoch_number| FileMetadata {
        epoch_number,
        ..table(number, ("a", "c"), (number, number))
    };
    let merged =
        |seqnos, epoch_number| FileMetadata { epoch_number, ..table(20, ("a", "c"), seqnos) };
    for (inputs, output, layout) in [
        ([12, 11], merged((11, 12), 2), Some("L0: 13 20 10")),
        ([11, 10], merged((10, 13), 1), Some("L0: 13 12 20")),
        ([13, 11], merged((11, 13), 2), None),
        ([12, 10], merged((10, 12), 1), None),
    ] {
        let (_, mut versions) = new_database();
        for number in 10..14 {
            versions.log_and_apply(vec![edit(&[(0, at(number, number - 9))], &[])]).unwrap();
        }
        let result =
            versions.log_and_apply(vec![edit(&[(0, output)], &inputs.map(|number| (0, number)))]);
        match layout {
            Some(layout) => assert_eq!(result.map(|()| default_layout(&versions)).unwrap(), layout),
            None => assert!(result.unwrap_err().message().contains("seqnos"), "{inputs:?}"),
        }
    }
}

#[test]
fn missing_epochs_are_inferred_from_seqnos() {
    let (_, versions) = new_database();
    let empty = &versions.family(DEFAULT).unwrap().current;
    let mut builder = VersionBuilder::for_recovery(empty, versions.obsolete_files().clone());
    let files = [
        (0, table(20, ("a", "z"), (5, 9))),
        (0, table(19, ("a", "z"), (10, 12))),
        (2, table(12, ("d", "e"), (1, 2))),
        (2, table(11, ("a", "b"), (1, 2))),
        (6, table(9, ("a", "z"), (0, 0))),
    ];
    builder.apply(&edit(&files, &[])).unwrap();
    let version = builder.build().unwrap();
    assert_eq!(layout(&version), "L0: 19 20  L2: 11 12  L6: 9");
    let epochs: Vec<_> = version.files().map(|(_, file)| file.meta.epoch_number).collect();
    assert_eq!(epochs, [4, 3, 2, 2, 1]);
}

#[test]
fn blob_files_go_when_nothing_links_to_them() {
    let (env, mut versions) = new_database();
    let mut flush = edit(
        &[
            (0, with_blob(table(10, ("a", "b"), (1, 5)), 5)),
            (0, with_blob(table(11, ("c", "d"), (6, 9)), 7)),
        ],
        &[],
    );
    flush.blob_file_additions = vec![blob(5, 2), blob(6, 2), blob(7, 2), blob(8, 2)];
    versions.log_and_apply(vec![flush]).unwrap();
    let blobs = |versions: &VersionSet| {
        let version = &versions.family(DEFAULT).unwrap().current;
        version
            .blob_files
            .iter()
            .map(|(number, b)| (number.0, b.garbage_count, b.linked_tables.len()))
            .collect::<Vec<(u64, u64, usize)>>()
    };
    let mut partly = VersionEdit::default();
    partly.blob_file_garbages = vec![garbage(5, 1), garbage(8, 2)];
    versions.log_and_apply(vec![partly]).unwrap();
    let expected = [(5, 1, 1), (6, 0, 0), (7, 0, 1)];
    assert_eq!(blobs(&versions), expected, "8 has no links and is all garbage");
    assert_eq!(blobs(&reopen(&env)), expected);

    // Somebody counted too much before: what is in use keeps a record.
    let too_much = VersionEdit {
        blob_file_garbages: vec![garbage(5, 2), garbage(5, 1), garbage(7, 1), garbage(7, 1)],
        ..VersionEdit::default()
    };
    versions.log_and_apply(vec![too_much]).unwrap();
    assert_eq!(blobs(&versions), [(5, 1, 1), (6, 0, 0), (7, 1, 1)]);

    versions.log_and_apply(vec![edit(&[], &[(0, 10)])]).unwrap();
    assert_eq!(blobs(&versions), [(7, 1, 1)], "all below the oldest linked one go");
    assert_eq!(blobs(&reopen(&env)), [(7, 1, 1)]);

    // In a MANIFEST that is read back it is damage.
    let version = &versions.family(DEFAULT).unwrap().current;
    for (count, why) in [(1, "consists entirely of garbage"), (2, "exceeds")] {
        let edit =
            VersionEdit { blob_file_garbages: vec![garbage(7, count)], ..VersionEdit::default() };
        let mut builder = VersionBuilder::new(version, versions.obsolete_files().clone());
        let error = builder.apply(&edit).and_then(|()| builder.build()).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn families_come_and_go() {
    let (env, mut versions) = new_database();
    let users = versions.create_column_family(spec("users"), FileNumber(4)).unwrap();
    let reversed = FamilySpec { comparator: Comparator::ReverseBytewise, ..spec("reversed") };
    let reversed_id = versions.create_column_family(reversed.clone(), FileNumber(4)).unwrap();
    assert_eq!((users, reversed_id), (ColumnFamilyId(1), ColumnFamilyId(2)));
    assert!(versions.create_column_family(spec("users"), FileNumber(4)).is_err());
    let mut flush = edit(&[(0, table(10, ("z", "a"), (1, 5)))], &[]);
    flush.family = reversed_id;
    versions.log_and_apply(vec![flush]).unwrap();

    let listed = list_column_families(&env, Path::new(DB)).unwrap();
    let listed: Vec<_> =
        listed.iter().map(|l| (l.id.0, l.name.as_str(), l.comparator.as_deref())).collect();
    let (bytewise, reverse) =
        (Some("leveldb.BytewiseComparator"), Some("rocksdb.ReverseBytewiseComparator"));
    assert_eq!(
        listed,
        [(0, "default", bytewise), (1, "users", bytewise), (2, "reversed", reverse)]
    );

    let open = |options| VersionSet::recover(env.clone(), Path::new(DB), options);
    let why = |options| open(options).err().unwrap().message().to_string();
    let unnamed = "Column families not opened: users, reversed; name all of them, or use `Db::open`, which opens all";
    assert_eq!(why(options(&["default"])), unnamed);
    assert!(why(options(&["users"])).contains("'default' must be opened"));
    assert!(why(options(&["default", "users", "reversed"])).contains(
        "leveldb.BytewiseComparator: does not match existing comparator rocksdb.ReverseBytewiseComparator"
    ));
    assert!(why(options(&["default", "users", "photos"])).contains("not opened: reversed"));
    let mut all = options(&["default", "users"]);
    all.families.push(reversed);
    let mut versions = open(all).unwrap();
    assert_eq!(layout(&versions.family_by_name("reversed").unwrap().current), "L0: 10");

    let current = versions.family(reversed_id).unwrap().current.clone();
    versions.drop_column_family(reversed_id).unwrap();
    versions.drop_column_family(users).unwrap();
    assert_eq!(versions.drop_column_family(users).unwrap_err().code(), Code::ColumnFamilyDropped);
    assert!(versions.drop_column_family(DEFAULT).is_err());
    drop(current);
    assert_eq!(versions.obsolete_files().take(usize::MAX).len(), 1);
    let mut versions = reopen(&env);
    versions.log_and_apply(vec![VersionEdit::default()]).unwrap();
    let mut versions = reopen(&env);
    let id = versions.create_column_family(spec("users"), FileNumber(4)).unwrap();
    assert_eq!(id, ColumnFamilyId(3), "ids are never reused, not even after two new MANIFESTs");
}

#[test]
fn closed_families_are_fine_for_reading_only() {
    let (env, mut versions) = new_database();
    versions.create_column_family(spec("users"), FileNumber(4)).unwrap();
    let read_only = RecoverOptions { read_only: true, ..options(&["default"]) };
    let mut versions = VersionSet::recover(env, Path::new(DB), read_only).unwrap();
    assert!(versions.family_by_name("users").is_none());
    assert_eq!(versions.log_and_apply(vec![]).unwrap_err().code(), Code::NotSupported);
}

#[test]
fn an_atomic_group_is_read_whole_or_not_at_all() {
    let (env, mut versions) = new_database();
    let users = versions.create_column_family(spec("users"), FileNumber(4)).unwrap();
    let manifest = file_name::manifest(Path::new(DB), versions.manifest_number());
    let before = env.fs.metadata(&manifest).unwrap().size;
    let one = edit(&[(0, table(10, ("a", "b"), (1, 5)))], &[]);
    let two = VersionEdit { family: users, ..edit(&[(0, table(11, ("a", "b"), (1, 5)))], &[]) };
    versions.log_and_apply_atomically(vec![one, two]).unwrap();
    let file = env.fs.reopen_writable(&file_name::manifest(Path::new(DB), FileNumber(1))).unwrap();
    let bytes = read_file(&*env.fs, file.path(), 1 << 20).unwrap();
    for size in (before..=bytes.len() as u64).rev() {
        file.truncate(size).unwrap();
        let versions =
            VersionSet::recover(env.clone(), Path::new(DB), options(&["default", "users"]))
                .unwrap();
        let layouts: Vec<_> = versions.families().map(|family| layout(&family.current)).collect();
        if size == bytes.len() as u64 {
            assert_eq!(layouts, ["L0: 10", "L0: 11"])
        } else {
            assert_eq!(layouts, ["", ""], "{size}")
        }
    }
}

/// With atomic_flush and more than four families each flush began a new MANIFEST with the full
/// state; then those did that had no room in the rest of a block.
#[test]
fn large_groups_are_appended_wherever_blocks_end() {
    let (env, mut versions) = new_database();
    let names: Vec<_> = (1..6).map(|family| family.to_string()).collect();
    for name in &names {
        versions.create_column_family(spec(name), FileNumber(4)).unwrap();
    }
    let first = versions.manifest_number();
    for round in 0..300 {
        let edits = (0..6).map(|family| {
            let table = table(1000 + round * 10 + family, ("a", "b"), (round * 10, round * 10 + 9));
            VersionEdit { family: ColumnFamilyId(family as u32), ..edit(&[(0, table)], &[]) }
        });
        versions.log_and_apply_atomically(edits.collect()).unwrap();
    }
    assert_eq!(versions.manifest_number(), first);
    let size = env.fs.metadata(&file_name::manifest(Path::new(DB), first)).unwrap().size;
    assert!(size > 3 * crate::wal::BLOCK_SIZE as u64, "{size}");
    let all: Vec<_> = ["default"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let versions = VersionSet::recover(env, Path::new(DB), options(&all)).unwrap();
    assert!(versions.families().all(|family| family.current.num_files() == 300));
}

#[test]
fn a_large_manifest_is_rewritten_but_not_over_and_over() {
    let env = Env::memory();
    env.fs.create_directory(Path::new(DB)).unwrap();
    let settings = ManifestSettings { max_manifest_file_size: 1, ..ManifestSettings::default() };
    let mut versions =
        VersionSet::create(env.clone(), Path::new(DB), spec("default"), settings).unwrap();
    let mut manifests = 0;
    for number in 10..60 {
        let before = versions.manifest_number();
        let seqno = number * 10;
        versions
            .log_and_apply(vec![edit(&[(0, table(number, ("a", "b"), (seqno, seqno + 9)))], &[])])
            .unwrap();
        manifests += u32::from(versions.manifest_number() != before);
    }
    assert!((2..10).contains(&manifests), "{manifests} MANIFESTs for 50 changes");
    assert_eq!(reopen(&env).family(DEFAULT).unwrap().current.num_files(), 50);
}

/// A checksum without the name of its function was decoded, but lost when a new MANIFEST was
/// written.
#[test]
fn a_file_checksum_without_a_function_survives() {
    let mut edit = VersionEdit::default();
    edit.add_file(
        0,
        FileMetadata { file_checksum: b"checksum".to_vec(), ..table(7, ("a", "b"), (1, 2)) },
    );
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    assert_eq!(VersionEdit::decode(&bytes).unwrap(), edit);
}
