//! Families that come and go while others stay.

use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::{FlushOptions, ReadOptions};

use crate::fault::{Fault, read, written};
use crate::settings;
use crate::space::FAMILIES;
use crate::value::{self, Place, parse};
use crate::worker::{Outcome, Worker};

const KEYS: usize = 40;

fn place(index: usize) -> Place {
    Place { family: FAMILIES.len(), index }
}

fn key(index: usize) -> String {
    format!("passing {index:03}")
}

/// What the names of a thread's families begin with; a version follows, which all that is written
/// to one exceeds.
fn prefix(thread: usize) -> String {
    format!("passing-{thread}-")
}

fn everything() -> ReadOptions {
    ReadOptions { total_order_seek: true, ..ReadOptions::default() }
}

/// Such a family holds every key, as one batch wrote them, or nothing; and nothing of a family
/// before it. How many keys.
pub fn check(db: &Db, family: &ColumnFamily) -> Result<usize, Fault> {
    let name = family.name();
    let born = name.rsplit('-').next().and_then(|version| version.parse().ok());
    let wrong = |expected: String, found: String| {
        Err(Fault::new(format!("family {name}"), expected, found))
    };
    let Some(born) = born else {
        return wrong("no family of that name".to_string(), "one".to_string());
    };
    let mut iter = read(name, db.iter_cf(family, &everything()))?;
    iter.seek_to_first();
    let (mut count, mut version) = (0, None);
    while iter.valid() {
        if iter.key() != key(count).as_bytes() {
            return wrong(key(count), iter.key().escape_ascii().to_string());
        }
        let state = match parse(place(count), read(name, iter.value())?) {
            Ok(state) => state,
            Err(error) => return wrong(format!("a value of {}", key(count)), error),
        };
        let one_version = *version.get_or_insert(state.version());
        if state.version() != one_version || one_version <= born {
            let expected = format!("{}: version {one_version}, which is above {born}", key(count));
            return wrong(expected, state.to_string());
        }
        count += 1;
        iter.next();
    }
    read(name, iter.status())?;
    if count == 0 || count == KEYS {
        Ok(count)
    } else {
        wrong(format!("{KEYS} keys or none"), format!("{count} keys"))
    }
}

/// A family is made, filled, looked at, and dropped; an iterator outlives it.
pub fn come_and_go(worker: &mut Worker<'_>) -> Outcome {
    let (db, prefix) = (worker.life.db, prefix(worker.thread));
    if let Some(left) =
        db.column_families().iter().find(|family| family.name().starts_with(&prefix))
    {
        // A full disk came between.
        return written("the drop of a family", db.drop_column_family(left));
    }
    let env = &worker.life.chosen.options.env;
    let options = settings::draw(worker.life.config, worker.life.round, env, &mut worker.random).cf;
    let name = format!("{prefix}{}", worker.next_version());
    let family = written("the creation of a family", db.create_column_family(&name, &options))?;
    for _ in 0..worker.random.usize(1..4) {
        fill(worker, &family)?;
    }
    let count = check(db, &family)?;
    let mut iter = read("an iterator", db.iter_cf(&family, &everything()))?;
    written("the drop of a family", db.drop_column_family(&family))?;
    iter.seek_to_first();
    let mut still = 0;
    while iter.valid() {
        read("a value of a dropped family", iter.value())?;
        still += 1;
        iter.next();
    }
    read("an iterator over a dropped family", iter.status())?;
    if (count, still) == (KEYS, KEYS) {
        return Ok(());
    }
    let expected = format!("{KEYS} keys, before and after it is dropped");
    Err(Fault::new(format!("family {name}"), expected, format!("{count} and {still}")).into())
}

/// Writes every key, by one batch, and something that is gone when it is flushed.
fn fill(worker: &mut Worker<'_>, family: &ColumnFamily) -> Outcome {
    let (db, mut batch, version) = (worker.life.db, WriteBatch::new(), worker.next_version());
    for index in 0..KEYS {
        let value = value::base(place(index), version, worker.value_length());
        read("a batch", batch.put_cf(family, key(index).as_bytes(), &value))?;
    }
    written("a write to a new family", db.write(batch))?;
    // Without a wait, the flush meets what comes next: another one, or the drop of the family.
    let options = FlushOptions { wait: worker.random.bool(), allow_write_stall: true };
    if worker.random.bool() {
        written("a flush of a new family", db.flush(family, &options))?;
    }
    let mut nothing = WriteBatch::new();
    read("a batch", nothing.put_cf(family, b"once", b"and never more"))?;
    read("a batch", nothing.single_delete_cf(family, b"once"))?;
    written("a write to a new family", db.write(nothing))?;
    if worker.random.bool() {
        written("a flush of a new family", db.flush(family, &options))?;
    }
    Ok(())
}
