use super::*;
use crate::base::Code;
use crate::base::sync::{Ordering, yield_now};
use crate::env::Env;
use crate::options::{CompactionControl, Options};

/// Went wrong: a compaction that was canceled while it waited for its turn kept automatic
/// compactions of the family from beginning until the database was opened again.
#[test]
fn a_compaction_canceled_while_it_waits_holds_nothing() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set_all("create_if_missing=true;disable_auto_compactions=true").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let (inner, family) = (db.inner(), db.default_column_family());
    for value in ["old", "new"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    let waiting = || inner.tree.lock().families[&family.id()].compacting.manual;
    // As inputs of another compaction.
    let version = family.0.current.load().version.clone();
    version.files().for_each(|(_, file)| file.being_compacted.store(true, Ordering::Release));
    let control = CompactionControl::new();
    let canceled =
        CompactRangeOptions { control: Some(control.clone()), ..CompactRangeOptions::default() };
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range(family, None, None, &canceled));
        while waiting() == 0 {
            yield_now();
        }
        control.cancel();
        assert_eq!(compaction.join().unwrap().unwrap_err().code(), Code::Incomplete);
    });
    assert_eq!(waiting(), 0);
    version.files().for_each(|(_, file)| file.being_compacted.store(false, Ordering::Release));
    db.set_options(family, &[("disable_auto_compactions", "false")]).unwrap();
    db.compact_range(family, None, None, &CompactRangeOptions::default()).unwrap();
    assert_eq!(db.live_files().len(), 1);
}

#[test]
fn a_wait_for_compactions_ends_in_time() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set_all("create_if_missing=true;level0_file_num_compaction_trigger=2").unwrap();
    let db = Db::open("/db", &options).unwrap();
    // None begins, so that the wait has something to wait for.
    db.inner().tree.lock().paused.compactions = 1;
    for _ in 0..3 {
        db.put("key", "value").unwrap();
        db.flush_all().unwrap();
    }
    let error = db.wait_for_compactions_within(Duration::ZERO).unwrap_err();
    assert_eq!(error.code(), Code::TimedOut);
    db.inner().tree.lock().paused.compactions = 0;
    db.inner().tree.call();
    db.wait_for_compactions_within(Duration::from_secs(3600)).unwrap();
}
