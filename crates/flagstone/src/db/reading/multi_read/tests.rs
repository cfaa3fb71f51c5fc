use crate::base::file_name;
use crate::db::handle::Db;
use crate::db::reading::multi_read::BATCH;
use crate::db::statistics::Ticker;
use crate::env::Env;
use crate::options::{CompactRangeOptions, Options, ReadOptions};

fn key(number: usize) -> String {
    format!("key{number:04}")
}

/// A tree with keys of each kind on several levels: set, set anew, deleted, merged, and with values
/// in blob files.
fn grown(directory: &std::path::Path, settings: &[(&str, &str)]) -> Db {
    let mut options = Options::default();
    options.create_if_missing = true;
    for (name, value) in settings {
        options.set(name, value).unwrap();
    }
    let db = Db::open(directory, &options).unwrap();
    let whole = CompactRangeOptions::default();
    for round in 0..5 {
        for number in (round..400).step_by(1 + round) {
            let size = if number % 3 == 0 { 2000 } else { 300 };
            match (number + round) % 5 {
                0 => db.merge(key(number), format!("+{round}")).unwrap(),
                1 if round > 0 => db.delete(key(number)).unwrap(),
                _ => db.put(key(number), vec![b'0' + round as u8; size]).unwrap(),
            }
        }
        db.flush_all().unwrap();
        if round == 1 {
            db.compact_range(db.default_column_family(), None, None, &whole).unwrap();
        }
    }
    db
}

#[test]
fn blocks_and_values_of_all_levels_are_read_together() {
    let common = [("disable_auto_compactions", "true"), ("merge_operator", "StringAppendOperator")];
    let blobs =
        [("enable_blob_files", "true"), ("min_blob_size", "1000"), ("blob_commit_min_size", "0")];
    let filtered = [("block_based_table_factory", "{filter_policy=bloomfilter:10:false;}")];
    let plain = [("block_based_table_factory", "{filter_policy=nullptr;}")];
    let direct = [("use_direct_reads", "true")];
    for own in
        [&blobs[..], &filtered, &plain, &[blobs, [filtered[0], direct[0], common[0]]].concat()]
    {
        let directory = tempfile::tempdir().unwrap();
        let db = grown(directory.path(), &[&common, own].concat());
        let family = db.default_column_family();
        let keys: Vec<String> = (0..420).map(|number| key(number * 37 % 420)).collect();
        let read = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut found = 0;
        for (key, joint) in keys.iter().zip(db.multi_get_with(&read, family, &keys)) {
            let joint = joint.unwrap().map(|value| value.to_vec());
            assert_eq!(joint, db.get(key).unwrap().map(|value| value.to_vec()), "{key} {own:?}");
            found += usize::from(joint.is_some());
        }
        assert!(found > 200, "{found}");
        let [together, in_kernel] = [Ticker::ReadsTogether, Ticker::ReadsInKernel]
            .map(|ticker| db.statistics().get(ticker));
        assert!(together > 100 && in_kernel <= together, "{in_kernel} of {together} {own:?}");
    }
}

#[test]
fn a_damaged_block_fails_its_own_keys_only() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    let count = 2 * BATCH;
    let db = Db::open(directory.path(), &options).unwrap();
    for number in 0..count {
        db.put(key(number), vec![b'0' + (number % 10) as u8; 400]).unwrap();
    }
    db.flush_all().unwrap();
    let family = db.default_column_family();
    db.compact_range(family, None, None, &CompactRangeOptions::default()).unwrap();
    let path = file_name::table(directory.path(), db.live_files()[0].number);
    db.close().unwrap();
    drop(db);

    let file = Env::os().fs.reopen_writable(&path).unwrap();
    file.write_at(10, b"damage").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    let keys: Vec<String> = (0..count).rev().map(key).collect();
    let mut damaged = 0;
    for (key, joint) in keys.iter().zip(db.multi_get(&keys)) {
        match (joint, db.get(key)) {
            (Ok(joint), Ok(single)) => assert_eq!(joint.unwrap(), single.unwrap()),
            (Err(joint), Err(single)) => {
                assert!(joint.is_corruption());
                assert_eq!(joint.to_string(), single.to_string());
                damaged += 1;
            }
            (joint, single) => panic!("{key}: {joint:?} and {single:?}"),
        }
    }
    assert!(damaged > 0 && damaged < count / 2, "{damaged}");
}
