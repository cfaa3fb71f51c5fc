use crate::db::handle::Db;
use crate::db::tree::family_state::Immutable;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::base::sync::{MutexGuard, yield_now};
use crate::base::{ColumnFamilyId, ValueType};
use crate::env::Env;
use crate::options::{FlushReason, Options};

/// A flush that failed gave its memtables back, in front of those of another; whoever took them up
/// took the request for those behind along, and left these. Who had asked for that flush, and
/// waited for it, waited on.
#[test]
fn a_flush_that_was_asked_for_stays_so_until_all_are_taken() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set_all("min_write_buffer_number_to_merge=2;max_write_buffer_number=6").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let (inner, id) = (db.inner(), ColumnFamilyId::DEFAULT);
    // Held to the end, so that no worker takes part.
    let mut state = inner.tree.lock();
    let known = state.families.get_mut(&id).unwrap();
    known.immutable.extend([false, true, false].map(|flushing| {
        let mem = inner.pipeline.new_memtable(&known.family);
        mem.add(1, ValueType::Value, b"key", b"value");
        Immutable { mem, wal: known.mem_wal, seal: 0, flushing, reason: FlushReason::Manual }
    }));
    known.flush_requested = true;
    state.note(id);
    let first = inner.tree.take_flush_in(&mut state).unwrap();
    assert_eq!(first.parts[0].memtables.len(), 1, "not past what another flush has");
    let second = inner.tree.take_flush_in(&mut state).unwrap();
    assert_eq!(second.parts[0].memtables.len(), 1);
    assert!(inner.tree.take_flush_in(&mut state).is_none());
    let known = state.families.get_mut(&id).unwrap();
    assert!(!known.flush_requested);
    known.immutable.clear();
    state.note(id);
    state.running.flushes = 0;
}

/// A flush waited for that of what is older also after this had failed and nobody was at it any
/// more: where another thread had resumed writes meanwhile, and this one was the only one that
/// would have tried again, both waited on.
#[test]
fn what_waits_for_an_older_flush_that_failed_goes_with_it() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set_all("min_write_buffer_number_to_merge=2;max_write_buffer_number=6").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let (inner, id) = (db.inner().clone(), ColumnFamilyId::DEFAULT);
    let older = {
        let mut state = inner.tree.lock();
        let known = state.families.get_mut(&id).unwrap();
        known.immutable.extend([1, 2].map(|sequence| {
            let mem = inner.pipeline.new_memtable(&known.family);
            mem.add(sequence, ValueType::Value, b"key", b"value");
            Immutable {
                mem,
                wal: known.mem_wal,
                seal: sequence,
                flushing: sequence == 1,
                reason: FlushReason::Manual,
            }
        }));
        known.flush_requested = true;
        let older = known.immutable[0].mem.clone();
        state.running.flushes += 1;
        state.note(id);
        older
    };
    let (ended, heard) = channel();
    let flushing = inner.clone();
    let work = move || {
        let _ = ended.send(flushing.jobs.flush_one().and_then(|_| flushing.wait_until_idle()));
    };
    inner.context.env.spawner.spawn("flush", Box::new(work)).unwrap();
    let mut state = inner.tree.lock();
    while state.running.flushes < 2 {
        MutexGuard::unlocked(&mut state, yield_now);
    }
    // As a flush does that failed; but nobody looks after it.
    let known = state.families.get_mut(&id).unwrap();
    known.give_back(&[older]);
    known.flush_requested = false;
    state.running.flushes -= 1;
    state.note(id);
    drop(state);
    inner.tree.wake_all();
    heard.recv_timeout(Duration::from_secs(60)).expect("it does not wait for ever").unwrap();
    assert_eq!((inner.tree.lock().families[&id].immutable.len(), db.live_files().len()), (0, 1));
}
