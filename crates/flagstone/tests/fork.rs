//! A child that is forked from a program with an open database leaves it alone.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "a fork that is no exec")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

use flagstone::{Code, Db, ReadOptions, WriteBatch, WriteOptions};
use rustix::process::{WaitOptions, waitpid};

/// Set in the program that forks, to the directory of its database.
const PATH: &str = "FLAGSTONE_TEST_FORK";

/// The fork happens in a program of its own: a child inherits what other tests have locked.
#[test]
fn a_forked_child_leaves_the_database_alone() {
    if let Some(path) = std::env::var_os(PATH) {
        return fork_with(Path::new(&path)).expect("the parent goes on");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let outcome = Command::new(std::env::current_exe().expect("this test's path"))
        .args(["--exact", "a_forked_child_leaves_the_database_alone", "--nocapture"])
        .env(PATH, directory.path().join("db"))
        .output()
        .expect("it runs");
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
}

fn fork_with(path: &Path) -> flagstone::Result<()> {
    let db = Db::open(path)?;
    db.put("before", "fork")?;
    let mut film = db.put_in_pieces("film", &WriteOptions::new())?.with_buffer(0);
    film.append(&[7; 1000])?;
    // SAFETY: the child calls nothing but this test, and ends without running what the parent has
    // registered for its end.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let is_well = catch_unwind(AssertUnwindSafe(|| in_the_child(db, film, path))).is_ok();
        // SAFETY: nothing is to run after it.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    let child = rustix::process::Pid::from_raw(child);
    let (_, status) = waitpid(child, WaitOptions::empty()).expect("a child").expect("it has ended");
    assert_eq!(status.exit_status(), Some(0), "the child found something else");

    db.put("after", "fork")?;
    film.commit()?;
    db.flush()?;
    assert_eq!(
        Db::open(path).expect_err("it is refused").code(),
        Code::Busy,
        "the lock is held still"
    );
    assert!(db.verify(|_| ()).faults.is_empty() && db.check()?.faults.is_empty());
    db.close()?;
    let db = Db::open(path)?;
    assert_eq!(db.get("after")?.expect("it was written"), "fork");
    assert_eq!(db.get("film")?.expect("it was written"), &[7; 1000][..]);
    assert!(db.get("child")?.is_none());
    Ok(())
}

fn in_the_child(db: Db, film: flagstone::ValueWriter, path: &Path) {
    let refused = |outcome: flagstone::Result<()>| {
        let error = outcome.expect_err("it is refused");
        assert_eq!(error.code(), Code::NotSupported, "{error}");
        assert!(error.message().contains("forked"), "{error}");
    };
    refused(db.put("child", "value"));
    refused(db.put("child", vec![1; 100_000]));
    refused(db.put_with("child", "value", &WriteOptions::synced()));
    refused(db.write(WriteBatch::new()));
    refused(db.get("before").map(drop));
    refused(db.get_many(&["before"]).map(drop));
    refused(db.cursor(&ReadOptions::default()).map(drop));
    refused(db.flush());
    refused(db.sync_wal());
    refused(db.flush_wal());
    refused(db.compact());
    refused(db.create_column_family("child", |_| {}).map(drop));
    refused(db.set_options(&[("write_buffer_size", "123456")]));
    refused(db.checkpoint(path.with_extension("copy")));
    refused(db.close());
    refused(film.commit());
    assert!(Db::open(path).is_err(), "the parent has it open");
    drop(db);
    assert!(Db::open(path).is_err(), "that has released nothing");
}
