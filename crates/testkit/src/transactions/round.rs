//! One round: open, note what is there, let threads work, and close or be killed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flagstone::{Db, Result, WriteBatch};
use parking_lot::Mutex;

use super::journal::Journal;
use super::lists::{IN_USE, LENGTH_MAX, Lists, to_bytes, to_key, to_list};
use super::plan::{Ending, Life, Opened};
use super::worker::{Shared, Worker};
use crate::caught::catch;
use crate::isolation::{Key, Outcome, Read, Step, Transaction, Value};

/// What a process says when it has noted what it found.
pub const NOTED: &str = "noted";

/// What a process says when it has done enough, and may be killed.
pub const ENOUGH: &str = "enough";

/// Later rounds use other keys and values from here on.
const PER_ROUND: u64 = 1_000_000_000;

/// The lists that are used at the beginning of a round, given what it finds.
pub(super) fn in_use(round: u64, found: &BTreeMap<Key, Vec<Value>>) -> [Key; IN_USE] {
    let open = found.iter().rev().filter(|(_, list)| list.len() < LENGTH_MAX).map(|(key, _)| *key);
    let mut keys = open.chain(round * PER_ROUND..);
    std::array::from_fn(|_| keys.next().expect("there is no end of keys"))
}

/// Opens the database, notes what is there, and removes what is used no more.
fn begin(
    life: &Life,
    round: u64,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(Opened, Lists, [Key; IN_USE])> {
    let db = life.open(round)?;
    let found = note_found(life, round, &db)?;
    say(NOTED);
    let lists = Lists::of(&db)?;
    let keys = in_use(round, &found);
    remove_others(&db, &lists, &keys, &found)?;
    Ok((db, lists, keys))
}

/// Notes what all lists hold, without changing anything; what follows a last round.
///
/// # Errors
/// An error of the database.
pub fn look(life: &Life, round: u64) -> Result<()> {
    let db = life.open(round)?;
    note_found(life, round, &db)?;
    db.close()
}

/// Plays a round, in which `say` is told [`NOTED`] and [`ENOUGH`]. One that is to be killed goes on
/// until it is.
///
/// # Errors
/// An error of the database that has nothing to do with other transactions, or what makes no sense.
pub fn play(
    life: &Life,
    round: u64,
    ending: Ending,
    say: &(dyn Fn(&str) + Sync),
) -> std::result::Result<(), String> {
    let begun = begin(life, round, say).map_err(|error| format!("opening: {error}"))?;
    let (db, lists, keys) = begun;
    let shared = Shared {
        db: &db,
        lists: &lists,
        keys: keys.map(AtomicU64::new),
        next_key: AtomicU64::new(round * PER_ROUND + IN_USE as u64),
        next_value: AtomicU64::new(round * PER_ROUND),
        time: AtomicU64::new(1),
        begun: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let (error, enough) = (Mutex::new(None), life.transactions(round));
    let work_until_stopped = |thread: usize| -> Result<()> {
        let mut worker = Worker {
            shared: &shared,
            random: life.random(round, 100 + thread as u64),
            journal: Journal::create(&life.journal(round, thread))?,
            process: thread as u64,
        };
        worker.work(&|begun| {
            if begun != enough {
                return;
            }
            say(ENOUGH);
            shared.stop.store(ending == Ending::Closed, Ordering::Relaxed);
        })
    };
    std::thread::scope(|scope| {
        for thread in 0..life.threads {
            let (work, error, shared) = (&work_until_stopped, &error, &shared);
            scope.spawn(move || {
                let said = match catch(|| work(thread)) {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => error.to_string(),
                    Err(panic) => panic,
                };
                shared.stop.store(true, Ordering::Relaxed);
                error.lock().get_or_insert(said);
            });
        }
    });
    error.into_inner().map_or(Ok(()), Err)?;
    db.close().map_err(|error| error.to_string())
}

fn note_found(life: &Life, round: u64, db: &Db) -> Result<BTreeMap<Key, Vec<Value>>> {
    let mut found = BTreeMap::new();
    for family in Lists::of(db)?.families() {
        for entry in family.iter() {
            let (key, value) = entry?;
            found.insert(to_key(&key), to_list(Some(&value)));
        }
    }
    let read = |(key, list): (&Key, &Vec<Value>)| Step::Read {
        how: Read::Plain,
        key: *key,
        list: list.clone(),
    };
    let steps = found.iter().map(read).collect();
    let (process, begun, ended, outcome) = (0, 0, Some(0), Outcome::Committed);
    let transaction = Transaction { process, begun, ended, outcome, steps };
    Journal::create(&life.found(round))?.note(&transaction)?;
    Ok(found)
}

/// Removes the lists of earlier rounds that are used no more.
fn remove_others(
    db: &Db,
    lists: &Lists,
    in_use: &[Key],
    found: &BTreeMap<Key, Vec<Value>>,
) -> Result<()> {
    let mut batch = WriteBatch::new();
    for key in found.keys().filter(|key| !in_use.contains(key)) {
        batch.delete_cf(lists.family(*key), to_bytes(*key))?;
    }
    db.write(batch)
}
