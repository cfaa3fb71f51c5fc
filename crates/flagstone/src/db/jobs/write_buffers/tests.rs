use crate::base::{Code, Error, SubCode};
use crate::cache::WriteBufferManager;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::Options;

/// Writers that waited for another database were refused for a compaction of their own that had
/// found no room.
#[test]
fn who_waits_for_another_database_is_not_refused_for_a_compaction() {
    let manager = WriteBufferManager::new(1 << 20, true);
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.write_buffer_manager = Some(manager.clone());
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    let other = manager.join();
    other.set_waiting(1 << 20);
    inner.tree.look_at_stall();
    assert!(inner.pipeline.control().is_stopped());
    let full = Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace);
    inner.context.poison.record_starved(Some(&full));
    inner.tree.wait_while_stopped().expect("the other database may flush");
    other.set_waiting(0);
    db.put("key", "value").expect("there is memory again");
}
