//! Opening a damaged database and using it, or salvaging what is left of it: no panic, no hang, no
//! absurd allocation. Errors are what is expected.

use std::path::Path;

use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::env::FileSystem;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{ColumnFamilyOptions, Options, ReadOptions, load_latest};

use super::database_seeds::{self as sound, DIRECTORY, Files};
use super::input::{Input, check_error, ok, put_file};
use super::mend;
use super::wals::MODES;
use crate::settings;

const MUTATIONS_MAX: usize = 16;
/// More than any damage could make of a few dozen entries.
const ENTRIES_MAX: usize = 100_000;

/// Which database, how to open it, then mutations of its files.
pub fn database(data: &[u8]) {
    let (variant, how, fs) = damaged(data);
    let options = options(variant, how, &fs);
    if how & 1 != 0 {
        read_only(&options);
    }
    if how & 2 != 0 {
        // Writing twice: what the first life made of the damage must open as well.
        write_life(&options, how);
        write_life(&options, how);
    }
    ok(load_latest(&options.env, Path::new(DIRECTORY)));
}

/// The same input; what is salvaged must be a sound database.
pub fn salvage(data: &[u8]) {
    let (variant, how, fs) = damaged(data);
    let options = options(variant, how, &fs);
    let loaded = ok(load_latest(&options.env, Path::new(DIRECTORY))).flatten();
    let known = loaded.map(|loaded| loaded.families).unwrap_or_default();
    let known: Vec<(&str, ColumnFamilyOptions)> =
        known.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let target = Path::new("/new");
    let salvaged =
        flagstone::db::salvage(Path::new(DIRECTORY), target, &options, &known, &mut |_| {});
    if ok(salvaged).is_none() {
        return;
    }
    let loaded = load_latest(&options.env, target).expect("it is sound").expect("it was written");
    let opened = Db::open(target, &Options { env: options.env.clone(), ..loaded.options });
    let db = opened.unwrap_or_else(|error| panic!("what was salvaged does not open: {error}"));
    let faults = db.verify(|_| {}).faults;
    assert!(faults.is_empty(), "what was salvaged is damaged: {faults:?}");
    read_everything(&db);
    ok(db.close());
}

/// Which database, how to use it, and its files with the mutations that follow.
fn damaged(data: &[u8]) -> (usize, u16, MemoryFileSystem) {
    let mut input = Input::new(data);
    let variant = usize::from(input.u8()) % sound::count();
    let how = input.u16();
    let mut files = sound::files(variant).clone();
    for _ in 0..MUTATIONS_MAX {
        if input.is_empty() || files.is_empty() {
            break;
        }
        mutate(&mut files, &mut input);
    }
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new(DIRECTORY)).expect("memory");
    for (name, bytes) in &files {
        put_file(&fs, Path::new(DIRECTORY).join(name), bytes);
    }
    (variant, how, fs)
}

fn options(variant: usize, how: u16, fs: &MemoryFileSystem) -> Options {
    let mut options = sound::options(variant, fs);
    options.wal_recovery_mode = MODES[usize::from(how >> 2 & 3)];
    let flag = |bit: u16| if how >> bit & 1 == 0 { "true" } else { "false" };
    let changes = [
        ("paranoid_checks", flag(4)),
        ("avoid_flush_during_recovery", flag(5)),
        ("verify_sst_unique_id_in_manifest", flag(6)),
        ("disable_auto_compactions", flag(7)),
        ("table.no_block_cache", flag(8)),
        ("create_if_missing", flag(9)),
        ("WAL_ttl_seconds", if how >> 11 & 1 == 0 { "3600" } else { "0" }),
    ];
    settings::set(&mut options, &changes);
    options
}

fn read_only(options: &Options) {
    if let Some(db) = ok(Db::open_read_only(DIRECTORY, options)) {
        read_everything(&db);
        ok(db.close());
    }
}

fn write_life(options: &Options, how: u16) {
    let Some(db) = ok(Db::open(DIRECTORY, options)) else { return };
    if how & 1 << 10 == 0 {
        read_everything(&db);
    }
    follow(&db);
    write(&db);
    for family in db.column_families() {
        let pieces = [(None, Some(&b"k10"[..])), (None, None)];
        for (begin, end) in pieces {
            ok(db.compact_range(&family, begin, end, &Default::default()));
        }
    }
    ok(db.checkpoint("/copy"));
    while ok(db.background_step()) == Some(true) {}
    read_everything(&db);
    follow(&db);
    ok(db.close());
}

/// Reads along as far as the WALs go. Whoever was given a write by this database does not hold
/// another's.
fn follow(db: &Db) {
    let Some(Some(oldest)) = ok(db.oldest_update()) else { return };
    let Some(mut updates) = ok(db.get_updates_since(oldest)) else { return };
    for count in 0.. {
        let Some(Some(update)) = ok(updates.next_update()) else { break };
        assert!(count < ENTRIES_MAX, "updates that do not end");
        assert_eq!(update.batch.iter().filter(Result::is_err).count(), 0, "{:?}", update.batch);
        if let Err(error) = db.get_updates_after(update.position) {
            check_error(&error);
            assert_ne!(
                error.code(),
                Code::InvalidArgument,
                "behind {:?}: {error}",
                update.position
            );
        }
    }
}

fn write(db: &Db) {
    for family in db.column_families() {
        ok(db.put_cf(&family, "k05", vec![b'n'; 100]));
        ok(db.merge_cf(&family, "k06", "more"));
        ok(db.delete_cf(&family, "k07"));
        ok(db.delete_range_cf(&family, "k20", "k22"));
        ok(db.set_options(&family, &[("min_blob_size", "40")]));
    }
    if let Some(family) = ok(db.create_column_family("new", &Default::default())) {
        ok(db.put_cf(&family, "in", "it"));
        ok(db.drop_column_family(&family));
    }
    ok(db.sync_wal());
    ok(db.flush_all());
}

fn read_everything(db: &Db) {
    for family in db.column_families() {
        let options = ReadOptions { total_order_seek: true, ..ReadOptions::default() };
        for forward in [true, false] {
            let Some(mut iter) = ok(db.iter_cf(&family, &options)) else { continue };
            if forward {
                iter.seek_to_first()
            } else {
                iter.seek_to_last()
            }
            for count in 0.. {
                if !iter.valid() {
                    break;
                }
                assert!(count < ENTRIES_MAX, "a scan that does not end");
                ok(iter.value().map(<[u8]>::len));
                if forward { iter.next() } else { iter.prev() }
            }
            ok(iter.status());
        }
        let keys = ["k00", "k03", "k05", "k11", "only merged", "once", "zz"];
        for key in keys {
            ok(db.get_cf(&family, key));
        }
        for found in db.multi_get_with(&ReadOptions::default(), &family, &keys) {
            ok(found);
        }
        for name in flagstone::db::PROPERTY_NAMES {
            db.property(&family, name);
        }
    }
    db.verify(|_| {}).faults.iter().for_each(|fault| check_error(&fault.error));
    ok(db.check());
    ok(db.doctor());
    db.live_files();
}

/// One mutation: what, which file, where, and whether its checksums are put right afterwards.
fn mutate(files: &mut Files, input: &mut Input<'_>) {
    let (what, which) = (input.u8(), usize::from(input.u8()));
    let name_at = |at: usize| files.keys().nth(at % files.len()).expect("there are files").clone();
    let name = name_at(which);
    let other = name_at(which / 7 + 1);
    let mut bytes = files[&name].clone();
    let at = usize::from(input.u16()) % (bytes.len() + 1);
    match what & 15 {
        0 => bytes.truncate(at),
        1 => drop(files.remove(&name)),
        2 => {
            let swapped = files.insert(other, bytes.clone()).unwrap_or_default();
            bytes = swapped;
        }
        3 => drop(bytes.splice(at..at, input.piece().iter().copied())),
        4 => {
            let length = usize::from(input.u8()).min(bytes.len() - at);
            let copy = bytes[at..at + length].to_vec();
            drop(bytes.splice(at..at, copy));
        }
        5 => {
            let length = usize::from(input.u8()).min(bytes.len() - at);
            bytes.drain(at..at + length);
        }
        6 => bytes.clone_from(&files[&other]),
        7 => {
            let renamed =
                format!("{:06}{}", input.u16(), name.find('.').map_or("", |dot| &name[dot..]));
            files.insert(renamed, bytes.clone());
        }
        8..12 => overwrite(&mut bytes, at, input.piece()),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= input.u8();
            }
        }
    }
    if what & 0x80 == 0 {
        mend_file(&name, &mut bytes);
    }
    if what & 15 != 1 {
        files.insert(name, bytes);
    }
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    let length = with.len().min(bytes.len() - at);
    bytes[at..at + length].copy_from_slice(&with[..length]);
}

fn mend_file(name: &str, bytes: &mut [u8]) {
    match name.rsplit('.').next() {
        Some("log") => mend::log(bytes),
        Some("sst") => mend::table(bytes),
        Some("blob") => mend::blob_file(bytes),
        _ if name.starts_with("MANIFEST") => mend::log(bytes),
        _ => {}
    }
}
