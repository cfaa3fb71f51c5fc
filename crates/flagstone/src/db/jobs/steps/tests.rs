use super::*;
use crate::base::SubCode;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::Options;

fn database() -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    Db::open("/db", &options).unwrap()
}

fn full_disk() -> Error {
    Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace)
}

/// All threads looked for work four times as often for ever, though only a reopening helped.
#[test]
fn who_waits_for_space_looks_for_it_more_often() {
    let db = database();
    let inner = db.inner();
    assert_eq!(inner.jobs.work(Role::Compaction), Next::After(IDLE));
    inner.context.poison.record(BackgroundErrorReason::Write, &full_disk());
    assert_eq!(inner.jobs.work(Role::Compaction), Next::After(RETRY));
    inner.tree.fail(BackgroundErrorReason::Write, &full_disk());
    assert_eq!(inner.jobs.work(Role::Compaction), Next::After(IDLE));
}
