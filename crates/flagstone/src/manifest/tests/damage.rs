//! Manifests that are damaged or malformed.

use super::*;
use crate::env::IoMode;

#[test]
fn damage_to_a_manifest_is_an_error_or_cuts_its_end_off() {
    let (env, mut versions) = new_database();
    flush_twice_and_compact(&mut versions);
    let path = file_name::manifest(Path::new(DB), FileNumber(1));
    let bytes = read_file(&*env.fs, &path, 1 << 20).unwrap();
    let prefixes = ["", "L0: 10", "L0: 11 10", "L6: 12 13"];
    let file = env.fs.reopen_writable(&path).unwrap();
    let check = |what: &str, at: usize| {
        match VersionSet::recover(env.clone(), Path::new(DB), options(&["default"])) {
            Ok(versions) => {
                assert!(prefixes.contains(&default_layout(&versions).as_str()), "{what} at {at}");
            }
            Err(error) => assert!(error.is_corruption(), "{what} at {at}: {error}"),
        }
        for (_, edit) in dump(&*env.fs, &path).unwrap() {
            let _ = edit.map(|edit| edit.to_string());
        }
    };
    for (at, &byte) in bytes.iter().enumerate() {
        for mask in [1, 0x80, 0xff] {
            file.write_at(at as u64, &[byte ^ mask]).unwrap();
            check("flip", at);
        }
        file.write_at(at as u64, &[byte]).unwrap();
    }
    for size in (0..bytes.len()).rev() {
        file.truncate(size as u64).unwrap();
        check("cut", size);
    }
}

#[test]
fn nonsense_under_a_right_checksum_never_panics() {
    let (env, mut versions) = new_database();
    flush_twice_and_compact(&mut versions);
    versions.create_column_family(spec("users"), FileNumber(4)).unwrap();
    let mut flush = edit(&[(0, with_blob(table(20, ("a", "m"), (10, 15)), 9))], &[]);
    (flush.blob_file_additions, flush.blob_file_garbages) = (vec![blob(9, 4)], vec![garbage(9, 1)]);
    versions.log_and_apply_atomically(vec![flush, VersionEdit::new(ColumnFamilyId(1))]).unwrap();
    let path = file_name::manifest(Path::new(DB), FileNumber(1));
    let mut reader = record::Reader::open(&*env.fs, &path).unwrap();
    let mut records = Vec::new();
    while let Some((_, bytes)) = reader.next().unwrap() {
        records.push(bytes.to_vec());
    }
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..1000 {
        let mut damaged = records.clone();
        for _ in 0..random.usize(1..4) {
            let record = &mut damaged[random.usize(..records.len())];
            let at = random.usize(..record.len());
            record[at] = random.u8(..);
        }
        let mut writer =
            record::Writer::new(env.fs.create_writable(&path, IoMode::Buffered).unwrap()).unwrap();
        damaged.iter().for_each(|record| writer.add(record).unwrap());
        writer.sync().unwrap();
        if let Ok(mut versions) =
            VersionSet::recover(env.clone(), Path::new(DB), options(&["default", "users"]))
        {
            let _ =
                versions.log_and_apply(vec![edit(&[(0, table(50, ("a", "z"), (80, 90)))], &[])]);
            let current = Path::new(DB).join("CURRENT");
            env.fs
                .create_writable(&current, IoMode::Buffered)
                .unwrap()
                .write_at(0, b"MANIFEST-000001\n")
                .unwrap();
        }
    }
}

#[test]
fn a_malformed_current_is_corruption() {
    let (env, _) = new_database();
    let path = Path::new(DB).join("CURRENT");
    for (contents, why) in [
        ("MANIFEST-000001", "does not end with newline"),
        ("MANIFEST-\n", "does not name"),
        ("\n", "does not name"),
        ("../MANIFEST-000001\n", "does not name"),
    ] {
        env.fs
            .create_writable(&path, IoMode::Buffered)
            .unwrap()
            .write_at(0, contents.as_bytes())
            .unwrap();
        let error = read_current(&*env.fs, Path::new(DB)).unwrap_err();
        assert!(error.is_corruption() && error.message().contains(why), "{contents:?}: {error}");
    }
    env.fs.remove(&path).unwrap();
    assert!(read_current(&*env.fs, Path::new(DB)).unwrap_err().is_not_found());
}
