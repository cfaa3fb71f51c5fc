//! The examples do what they say.

use flagstone::options::{Options, ReadOptions};

#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/column_families.rs"]
mod column_families;
#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/message_queue.rs"]
mod message_queue;
#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/own_compaction.rs"]
mod own_compaction;

#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/remote_compaction.rs"]
mod remote_compaction;

#[test]
fn column_families_change_together() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("db").display().to_string();
    // Also where the first run has left something.
    for payments in [4, 8] {
        column_families::run(&path).expect("it runs");
        let mut options = Options::default();
        options.cf.set("merge_operator", "uint64add").expect("a name");
        let db = flagstone::db::Db::open_read_only(&path, &options).expect("it opens");
        let journal = db.column_family("journal").expect("it is there");
        let mut cursor = db.iter_cf(&journal, &ReadOptions::default()).expect("a cursor");
        cursor.seek_to_last();
        assert_eq!(cursor.key(), u64::to_be_bytes(payments));
        assert_eq!(cursor.value().expect("a value"), b"max pays tom 1000 cents");
    }
}

#[test]
fn days_are_compacted_by_a_policy_of_one_s_own() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("db").display().to_string();
    own_compaction::run(&path).expect("it runs");
    let db = flagstone::db::Db::open_read_only(&path, &Options::default()).expect("it opens");
    let finished = db.live_files().iter().filter(|file| file.level == Some(6)).count();
    assert!(finished > 0 && db.get("day001/000000").expect("a read").is_none(), "{finished}");
    assert!(db.get("day005/000000").expect("a read").is_some());
}

#[test]
fn each_message_is_taken_once() {
    let scratch = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    // Also where the first run has left something.
    for left in [2, 4] {
        let report = runtime.block_on(message_queue::run(scratch.path())).expect("it runs");
        assert_eq!(report, (left, 0));
    }
}

/// The children are this test.
#[test]
fn compactions_run_in_children() {
    if let Ok(order) = std::env::var(remote_compaction::ORDER) {
        remote_compaction::work(std::path::Path::new(&order)).expect("a compaction");
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("db");
    let program = std::env::current_exe().expect("this test");
    let arguments = ["--exact", "compactions_run_in_children", "--nocapture"];
    let arguments: Vec<_> = arguments.map(str::to_string).to_vec();
    let written = remote_compaction::run(&path, program, arguments).expect("it runs");
    assert!(written > 0, "children have written something");
    let db = flagstone::db::Db::open_read_only(&path, &Options::default()).expect("it opens");
    assert!(db.get("key 000007").expect("a read").is_some());
    let orders = std::fs::read_dir(path.with_extension("orders")).expect("the orders");
    assert_eq!(orders.count(), 0, "each was removed when it was done");
}
