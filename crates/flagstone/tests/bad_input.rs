//! What a caller may get wrong: each is an error that says what to do, and leaves the database as
//! it was.

#![expect(clippy::disallowed_methods, reason = "the tests stand outside the engine")]

mod common;

use common::{create, temporary};
use flagstone::base::{Code, Snapshot};
use flagstone::batch::{MAX_ENTRY_SIZE, WriteBatch};
use flagstone::db::Db;
use flagstone::options::{Options, ReadOptions, WriteOptions};

#[test]
fn options_that_do_not_exist_or_are_out_of_range() {
    let mut options = Options::default();
    let error = options.set("write_bufer_size", "1").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("write_buffer_size"), "names the nearest: {error}");
    for (name, value) in [
        ("write_buffer_size", "many"),
        ("write_buffer_size", "-1"),
        ("write_buffer_size", "99999999999999999999999"),
        ("compression", "kBestCompression"),
        ("create_if_missing", "perhaps"),
        ("merge_operator", "magic"),
        ("prefix_extractor", "fixed:-3"),
        ("comparator", "mine"),
        ("block_cache", ""),
    ] {
        let error = options.set(name, value).expect_err(value);
        assert!(error.to_string().contains(name), "{name}={value}: {error}");
    }
    let directory = temporary();
    for (name, value) in [("num_levels", "0"), ("blob_file_size", "0"), ("table.block_size", "0")] {
        let mut options = create();
        let refused = options
            .set(name, value)
            .and_then(|()| Db::open(directory.path().join(name), &options).map(drop));
        assert_eq!(refused.expect_err(name).code(), Code::InvalidArgument, "{name}={value}");
    }
}

#[test]
fn a_directory_that_cannot_be_written() {
    let directory = temporary();
    let file = directory.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    let error = Db::open(&file, &create()).unwrap_err();
    assert_eq!(error.code(), Code::IoError, "{error}");
    assert!(error.to_string().contains("file"), "names the path: {error}");
    assert_eq!(Db::open(file.join("below"), &create()).unwrap_err().code(), Code::IoError);
    assert_eq!(std::fs::read(&file).unwrap(), b"not a directory");

    let path = directory.path().join("db");
    Db::open(&path, &create()).unwrap().put("k", "v").unwrap();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions.clone()).unwrap();
    let may_write_anyway = std::fs::write(path.join("probe"), "").is_ok();
    if may_write_anyway {
        // The superuser is not stopped by permissions.
        eprintln!("SKIPPED in part: this user may write to a read-only directory");
        std::fs::remove_file(path.join("probe")).unwrap();
    } else {
        let error = Db::open(&path, &create()).unwrap_err();
        assert_eq!(error.code(), Code::IoError, "{error}");
    }
    let db = Db::open_read_only(&path, &Options::default()).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), "v");
    for refused in
        [db.put("k", "w"), db.delete("k"), db.flush_all(), db.sync_wal(), db.delete_range("a", "z")]
    {
        assert_eq!(refused.unwrap_err().code(), Code::NotSupported);
    }
    assert_eq!(
        db.create_column_family("new", &Default::default()).unwrap_err().code(),
        Code::NotSupported
    );
    drop(db);
    #[expect(clippy::permissions_set_readonly_false, reason = "the directory is to be removed")]
    permissions.set_readonly(false);
    std::fs::set_permissions(&path, permissions).unwrap();
}

/// A batch that puts so many zeros as the value of an empty key.
fn batch_of_zeros(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes[8] = 1;
    bytes.extend([1, 0]);
    bytes.extend((0..5).map(|at| (size >> (7 * at)) as u8 | if at < 4 { 0x80 } else { 0 }));
    let mut batch = vec![0; bytes.len() + size];
    batch[..bytes.len()].copy_from_slice(&bytes);
    batch
}

#[test]
fn keys_and_values_of_absurd_length() {
    // Zeros that are never touched take no memory.
    let huge = vec![0u8; 1 << 32];
    let mut batch = WriteBatch::new();
    batch.put(b"before", b"1").unwrap();
    let before = batch.data().to_vec();
    for refused in [
        batch.put(b"key", &huge),
        batch.put(&huge, b"value"),
        batch.put(&huge[..huge.len() - 8], b"value"),
        batch.delete(&huge),
        batch.single_delete(&huge),
        batch.merge(b"key", &huge),
        batch.delete_range(b"a", &huge),
        batch.delete_range(&huge, b"z"),
        batch.put_log_data(&huge),
        // No block of a table has room for both.
        batch.put(&huge[..1 << 31], &huge[..1 << 31]),
        batch.put(b"key", &huge[..MAX_ENTRY_SIZE - 2]),
        batch.delete_range(&huge[..1 << 31], &huge[..1 << 31]),
        WriteBatch::from_bytes(batch_of_zeros(MAX_ENTRY_SIZE + 1)).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    // What can be put can also be sent: the bytes around the largest entry counted against it.
    assert_eq!(WriteBatch::from_bytes(batch_of_zeros(MAX_ENTRY_SIZE)).unwrap().count(), 1);
    assert_eq!(batch.data(), before, "a refused operation leaves the batch as it was");
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    assert_eq!(db.put("key", &huge).unwrap_err().code(), Code::InvalidArgument);
    assert!(db.get(&huge[..70_000]).unwrap().is_none());
    db.write(batch).unwrap();
    assert_eq!(db.get("before").unwrap().unwrap(), "1");
}

/// It was acknowledged, and whoever read the WAL took it for damaged.
#[test]
fn a_batch_too_long_for_a_compressed_wal() {
    // The count and two values of 2.25 GiB, of zeros that are never touched.
    let one = batch_of_zeros(9 << 28);
    let mut bytes = vec![0; 2 * one.len()];
    bytes[..32].copy_from_slice(&one[..32]);
    bytes[8] = 2;
    bytes[one.len()..][..20].copy_from_slice(&one[12..32]);
    bytes.truncate(2 * one.len() - 12);
    let batch = WriteBatch::from_bytes(bytes).unwrap();
    let directory = temporary();
    let mut options = create();
    options.set("wal_compression", "kZSTD").unwrap();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    let error = db.write(batch).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    db.put("key", "value").unwrap();
    drop(db);
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

#[test]
fn batches_from_elsewhere_that_are_none() {
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").unwrap();
    let bytes = batch.into_bytes();
    for length in 0..bytes.len() {
        assert!(WriteBatch::from_bytes(bytes[..length].to_vec()).is_err(), "cut off at {length}");
    }
    // The key's length, then the value's, say more than there is.
    for (at, length) in [(13, 0x7f), (13, 0xff), (17, 0x7f), (17, 0xff)] {
        let mut wrong = bytes.clone();
        wrong[at] = length;
        assert!(WriteBatch::from_bytes(wrong).unwrap_err().is_corruption());
    }
}

#[test]
fn families_with_impossible_names_and_ids() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    for name in ["", "default"] {
        let error = db.create_column_family(name, &Default::default()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "'{name}'");
    }
    assert_eq!(
        db.drop_column_family(db.default_column_family()).unwrap_err().code(),
        Code::InvalidArgument
    );
    for id in [1, 77, u32::MAX] {
        let mut batch = WriteBatch::new();
        batch.put_cf(flagstone::base::ColumnFamilyId(id), b"key", b"value").unwrap();
        assert_eq!(db.write(batch).unwrap_err().code(), Code::InvalidArgument, "family {id}");
    }
    // Names are bytes of text to the file formats, whatever they look like.
    let odd = "a name\nwith [brackets] \"quotes\" = and \u{e4}";
    drop(db.create_column_family(odd, &Default::default()).unwrap());
    drop(db);
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    db.put_cf(&db.column_family(odd).unwrap(), "k", "v").unwrap();
}

#[test]
fn calls_that_contradict_themselves() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    let both = WriteOptions { sync: true, disable_wal: true, ..WriteOptions::default() };
    let mut batch = WriteBatch::new();
    batch.put(b"k", b"v").unwrap();
    assert_eq!(db.write_with(&both, batch).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(db.delete_range("z", "a").unwrap_err().code(), Code::InvalidArgument);
    db.delete_range("a", "a").unwrap();
    assert_eq!(
        db.merge("k", "1").unwrap_err().code(),
        Code::InvalidArgument,
        "there is no merge operator"
    );
    let crossed = ReadOptions {
        iterate_lower_bound: Some(b"z".to_vec()),
        iterate_upper_bound: Some(b"a".to_vec()),
        ..ReadOptions::default()
    };
    db.put("m", "v").unwrap();
    if let Ok(mut iter) = db.iter(&crossed) {
        iter.seek_to_first();
        assert!(!iter.valid());
        iter.seek("m");
        assert!(!iter.valid());
        iter.seek_to_last();
        assert!(!iter.valid());
    }
    let elsewhere = Db::open(directory.path().join("elsewhere"), &create()).unwrap();
    let foreign: Snapshot = elsewhere.snapshot();
    let options = ReadOptions { snapshot: Some(foreign), ..ReadOptions::default() };
    assert!(
        db.iter(&options).is_err()
            && db.get_with(&options, db.default_column_family(), "m").is_err()
    );
    assert_eq!(db.get("m").unwrap().unwrap(), "v");
}
