//! FIFO compaction.

use super::*;

#[test]
fn fifo_compaction_drops_the_oldest() {
    let directory = temporary();
    let text = "compaction_style=kCompactionStyleFIFO;compression=kNoCompression;filter_policy=nullptr;\
        compaction_options_fifo={max_table_files_size=105000;}";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    for number in 0..20u8 {
        db.put([number], vec![number; 10_000]).unwrap();
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    let left: Vec<u8> =
        entries(&db, db.default_column_family()).iter().map(|(key, _)| key[0]).collect();
    assert_eq!(left, [11, 12, 13, 14, 15, 16, 17, 18, 19], "nine tables of 11 KB fit");
    db.close().unwrap();
    drop(db);
    if let Some(referee) = referee() {
        referee.ldb(directory.path(), &["checkconsistency"]);
        referee.verify_tables(directory.path());
    }
}

#[test]
fn what_fifo_compaction_drops_is_garbage_in_blob_files() {
    let directory = temporary();
    let text = "compaction_style=kCompactionStyleFIFO;enable_blob_files=true;min_blob_size=100;\
        blob_commit_min_size=100;compaction_options_fifo={max_table_files_size=9000;}";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    for number in 0..20u8 {
        db.put([number], vec![number; 10_000]).unwrap();
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    let files = db.live_files();
    let tables = files.iter().filter(|file| file.level.is_some()).count();
    let blobs = files.iter().filter(|file| file.level.is_none()).count();
    assert!(tables < 12 && tables == blobs, "{tables} tables, {blobs} blob files");
    assert_eq!(entries(&db, db.default_column_family()).len(), tables);
}

/// Went wrong: only the keys and addresses in tables counted, and values in blob files took
/// whatever space they took.
#[test]
fn fifo_compaction_counts_the_bytes_of_blob_files_where_it_is_told_to() {
    let names_it = |directory: &Path| {
        let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let newest =
            files.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
        std::fs::read_to_string(newest).unwrap().contains("max_data_files_size=120000;")
    };
    for mode in ["commit", "flush"] {
        let directory = temporary();
        let text = format!(
            "compaction_style=kCompactionStyleFIFO;enable_blob_files=true;min_blob_size=100;blob_commit_min_size=100;\
             blob_write_mode={mode};compaction_options_fifo={{max_data_files_size=120000;}}"
        );
        let db = Db::open(directory.path(), &options(&text)).unwrap();
        let keys = || -> Vec<u8> {
            entries(&db, db.default_column_family()).iter().map(|(key, _)| key[0]).collect()
        };
        let mut held = Vec::new();
        for number in 0..20u8 {
            db.put([number], vec![number; 10_000]).unwrap();
            db.flush_all().unwrap();
            db.wait_for_compactions().unwrap();
            held.push(db.live_files().iter().map(|file| file.size).sum::<u64>());
        }
        assert!(
            held.iter().all(|bytes| *bytes <= 120_000) && held[19] > 100_000,
            "{mode}: {held:?}"
        );
        assert_eq!(keys(), (10..20).collect::<Vec<u8>>(), "{mode}: ten of 11 KB fit");
        let blobs = db.live_files().iter().filter(|file| file.level.is_none()).count();
        assert_eq!(blobs, 10, "{mode}");
        assert!(names_it(directory.path()));

        let changes = [("compaction_options_fifo", "{max_data_files_size=0;}")];
        db.set_options(db.default_column_family(), &changes).unwrap();
        assert!(!names_it(directory.path()), "RocksDB 7.8 does not know it");
        for number in 20..40u8 {
            db.put([number], vec![number; 10_000]).unwrap();
            db.flush_all().unwrap();
        }
        db.wait_for_compactions().unwrap();
        assert_eq!(keys(), (10..40).collect::<Vec<u8>>(), "{mode}: tables alone are small");
    }
}

#[test]
fn fifo_compaction_merges_small_tables_where_that_is_allowed() {
    let directory = temporary();
    let text =
        "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={allow_compaction=true;}";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    let mut contents = BTreeMap::new();
    churn(&db, 20, &mut contents);
    db.wait_for_compactions().unwrap();
    assert!(levels(&db)[&0] < 8, "{:?}", levels(&db));
    assert_holds(&db, &contents);
}

/// By the size of a memtable they would all be small, and merged with each other again and again.
#[test]
fn fifo_compaction_merges_tables_by_their_part_of_the_data_where_that_is_asked_for() {
    let directory = temporary();
    let text = "compaction_style=kCompactionStyleFIFO;max_compaction_bytes=60000;compaction_options_fifo=\
        {allow_compaction=true;use_kv_ratio_compaction=true;max_data_files_size=1000000000;}";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    let mut contents = BTreeMap::new();
    churn(&db, 40, &mut contents);
    db.wait_for_compactions().unwrap();
    assert!(levels(&db)[&0] < 20, "{:?}", levels(&db));
    let largest = db.live_files().iter().map(|file| file.size).max();
    assert!(largest < Some(125_000), "{largest:?}");
    assert_holds(&db, &contents);
    drop(db);
    let newest = flagstone::options::load_latest(&Options::default().env, directory.path())
        .unwrap()
        .unwrap();
    assert!(newest.options.cf.compaction_options_fifo.use_kv_ratio_compaction);
}
