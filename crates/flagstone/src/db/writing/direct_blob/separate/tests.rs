use super::*;
use crate::base::Code;
use crate::db::handle::Db;
use crate::db::writing::condition::Condition;
use crate::env::Env;
use crate::options::Options;

/// A batch names a file of the memtable that was active when its value was appended. If that
/// memtable is switched before the commit, its flush takes the value for garbage and removes the
/// file: the value must be written again.
#[test]
fn what_is_written_again_lies_in_a_file_of_the_memtable_that_names_it() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set_all("enable_blob_files=true;min_blob_size=100;blob_commit_min_size=100").unwrap();
    options.set_all("blob_file_size=20000;max_space_amplification=0").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    db.put("key", "value").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"large", [1; 3000]).unwrap();
    let (mut separated, blobs) = inner
        .pipeline
        .separate_values(Source::Batch(&batch), &WriteOptions::default())
        .unwrap()
        .unwrap();
    // Other writers come in between, and fill the next memtable, too.
    db.flush_all().unwrap();
    (0..6).for_each(|_| db.put("another", [3; 3500]).unwrap());
    db.delete("another").unwrap();
    inner
        .pipeline
        .commit(&WriteOptions::default(), &mut separated, blobs, 3000, Condition::Nothing)
        .unwrap();
    // The memtable before is flushed, and files that nothing refers to are removed.
    db.wait_for_compactions().unwrap();
    for _ in 0..2 {
        assert_eq!(db.get("large").unwrap().unwrap(), &[1; 3000][..]);
        db.flush_all().unwrap();
    }
}

/// Whoever tried a batch again that was refused filled the disk: its values went to the file of a
/// memtable that, without an entry, is never flushed.
#[test]
fn the_values_of_a_batch_that_is_refused_are_not_written() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let gone = db.create_column_family("gone", &options.cf).unwrap();
    db.drop_column_family(&gone).unwrap();
    let mut of_two = WriteBatch::new();
    of_two.put(b"large", [1; 10_000]).unwrap();
    let mut merging = of_two.clone();
    of_two.put_cf(&gone, b"key", b"value").unwrap();
    merging.merge(b"key", b"value").unwrap();
    for batch in [of_two, merging] {
        assert_eq!(db.write(batch).unwrap_err().code(), Code::InvalidArgument);
    }
    assert_eq!(db.statistics().get(Ticker::BlobWriteBytes), 0);
}

/// It was refused, since values go to blob files by default.
#[test]
fn a_value_that_its_codec_cannot_take_is_left_in_the_batch() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    let most = CompressionType::Lz4.raw_size_max();
    assert!(family.0.separates(most, false) && !family.0.separates(most + 1, false));
    db.set_options(family, &[("compression", "kNoCompression")]).unwrap();
    assert!(family.0.separates(most + 1, false));
}
