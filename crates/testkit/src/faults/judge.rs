//! What must hold of what a life left behind.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::FileSystem;
use flagstone::options::{Options, ReadOptions};

use super::life::{DATABASE, Life};
use super::past::{End, Fate, HistoryEpoch, LASTING, mark, number_in};
use crate::fault::{Call, Failure, Injection, Plan, Sort, sort_of};
use crate::seeds::Telling;
use crate::{Survival, balance, compare, steps};

/// How often a database may fail to resume: background work may have to be done first.
const ATTEMPTS: usize = 20;

/// The fault is over, and the database still open: reads are right, and what was only a full disk
/// is left behind.
pub fn check_open(life: &mut Life, plan: Plan) {
    if life.db.is_none() {
        return;
    }
    let heard = life.heard.len();
    life.read();
    assert_eq!(life.heard[heard..], [""; 0], "reads go on");
    if !matches!(plan, Plan::Full { .. }) {
        if asks_to_go_on(plan) {
            check_going_on(life);
        }
        return;
    }
    let mut attempts = 0..ATTEMPTS;
    while !life.write(true, 50) {
        assert!(
            attempts.next().is_some(),
            "writes do not resume when there is space: {:?}",
            life.heard.last()
        );
        life.step();
    }
    let heard = life.heard.len();
    life.flush();
    life.settle();
    life.compact(LASTING[0], [None, None], &Default::default());
    life.write(false, 50);
    life.read();
    assert_eq!(life.heard[heard..], [""; 0], "everything works when there is space");
}

/// Every second life is left as the fault has left it; by another rule than that by which
/// [`Plan::lasts_to_the_end`] says what is closed already.
fn asks_to_go_on(plan: Plan) -> bool {
    plan.position() / 4 % 2 == 1
}

/// Whether the database may accept nothing any more after this: not for a full disk, but where a
/// sync of what is in no other file finds it so, or where a write that `asks_for_sync` waits for it
/// in memory, and the log cannot be written though its space was reserved.
pub(super) fn may_poison(failure: &Failure, asks_for_sync: bool) -> bool {
    match (failure.call, sort_of(&failure.path)) {
        _ if failure.injection != Injection::NoSpace => true,
        // What was written is written again, to another file.
        (Call::Sync, Sort::Table | Sort::Manifest) => false,
        (Call::Sync | Call::SyncDirectory, _) => true,
        (Call::Write, Sort::Wal) => asks_for_sync && !failure.takes_space,
        _ => false,
    }
}

/// Whoever asks for it has writes go on, unless the database is poisoned, and says so;
/// [`Life::hear`] judges whether it may be.
fn check_going_on(life: &mut Life) {
    let heard = life.heard.len();
    if life.call("look for a family", |db, _| Ok(db.column_family(LASTING[1]).is_some()))
        != Some(true)
    {
        return;
    }
    life.call("resume", |db, _| db.resume());
    let mut attempts = 0..ATTEMPTS;
    while !life.write(true, 50)
        && !life.past.batches.last().is_some_and(|last| last.fate == Fate::Refused)
    {
        let said = life.heard.last();
        assert!(
            attempts.next().is_some(),
            "writes neither go on nor are refused for good: {said:?}"
        );
        life.step();
    }
    // That it is poisoned was to be heard before.
    life.heard.truncate(heard);
}

/// The database is closed or given up: the power may fail then, or may have failed at the fault, or
/// the process has died. `number` says what survives, so that neighbouring faults try different
/// things.
pub fn check_ends(life: &mut Life, number: u64) {
    let end = life.disk.changes();
    let mut moments = vec![end];
    if let Some(failed_at) = life.fs.failed_at() {
        // With what the call itself left behind, and what the engine did next.
        moments.push(failed_at);
        moments.push((failed_at + life.random.usize(1..6)).min(end));
    }
    moments.dedup();
    for (index, at) in moments.into_iter().enumerate() {
        let survival = match (number + index as u64) % 4 {
            0 => Survival::Lost,
            1 => Survival::Kept,
            _ => Survival::Random(number),
        };
        let _telling = Telling(format!("power loss after {at} of {end} changes, {survival:?}"));
        check_reopening(life, Arc::new(life.disk.after_crash(at, survival)), End::Power(at));
    }
    let _telling = Telling("opening after the end of the process".to_string());
    check_reopening(life, Arc::new(life.disk.clone()), End::Process);
}

/// Opens what is there on a sound disk, compares it with what was promised, and goes on with it.
fn check_reopening(life: &Life, fs: Arc<dyn FileSystem>, end: End) {
    let options = life.options_in(steps::world(fs.clone(), 0));
    if fs.metadata(Path::new(DATABASE)).is_err()
        || fs.metadata(&Path::new(DATABASE).join("CURRENT")).is_err()
    {
        life.past.check_marks(&[], end);
        life.past.check_families(&[], end);
    }
    let db = open(&options, "first");
    let found = contents(&db, &life.past, end);
    compare::check_files(&db);
    let report = db.check().expect("a listing");
    assert!(report.strays.is_empty(), "left behind: {:?}", report.strays);
    db.put("zz later", "on").expect("a write");
    db.flush_all().expect("a flush");
    db.put("zz latest", "on").expect("a write");
    db.close().expect("a clean close");
    drop(db);

    let db = open(&options, "second");
    assert_eq!(db.get("zz later").expect("a read").as_deref(), Some(&b"on"[..]));
    assert_eq!(db.get("zz latest").expect("a read").as_deref(), Some(&b"on"[..]));
    let again = marks(&db, LASTING[0]).expect("a scan");
    assert_eq!(found, again, "what was there once is there again");
    balance::check_open(&options.env, &db);
    balance::close(
        db,
        &balance::directories(Path::new(DATABASE), &options, [&options.cf].into_iter()),
    );
}

fn open(options: &Options, which: &str) -> Db {
    Db::open(DATABASE, options)
        .unwrap_or_else(|error| panic!("the {which} opening on a sound disk: {error}"))
}

/// Which batches left their marks in a family.
pub fn marks(db: &Db, name: &str) -> Result<Vec<bool>> {
    let mut found = Vec::new();
    let Some(family) = db.column_family(name) else { return Ok(found) };
    let mut iter = db.iter_cf(&family, &ReadOptions::default())?;
    iter.seek(mark(0));
    while iter.valid() {
        if let Some(number) = number_in(iter.key()) {
            found.resize(number + 1, false);
            found[number] = true;
        }
        iter.next();
    }
    iter.status()?;
    Ok(found)
}

/// Compares everything with what was promised; which batches are there.
fn contents(db: &Db, past: &HistoryEpoch, end: End) -> Vec<bool> {
    let found = marks(db, LASTING[0]).expect("a scan");
    for name in LASTING {
        let others = marks(db, name).expect("a scan");
        assert_eq!(past.in_all(&found), past.in_all(&others), "a batch is there by half");
    }
    past.check_marks(&found, end);
    let families = db.column_families();
    let names: Vec<String> = families.iter().map(|family| family.name().to_string()).collect();
    past.check_families(&names, end);
    for family in families {
        let model =
            past.family(family.name(), |number, _| found.get(number).copied().unwrap_or(false));
        compare::check_scans(db, &family, &model, &ReadOptions::default());
    }
    found
}

#[cfg(test)]
mod tests;
