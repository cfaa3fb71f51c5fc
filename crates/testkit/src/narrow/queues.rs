//! Queues: appended to at one end, deleted from at the other or at the same, and looked at all the
//! while from both sides, so that scans leap over what they know to be deleted. Now and then a key
//! comes back among the deleted.

use std::sync::Arc;

use flagstone::base::Snapshot;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{ReadOptions, WriteOptions};

use crate::{Edit, Model, compare, for_each_seed, settings, steps};

/// More of them than ranges that are remembered as deleted.
const QUEUES: u64 = 20;
const ROUNDS: u64 = 200;

/// Compares scans in both directions, whole and from one key to another, as of the present and of
/// snapshots, with what should be there.
///
/// # Panics
/// When one sees something else.
pub fn queues() {
    for_each_seed(4, |seed| {
        let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), seed));
        settings::set(
            &mut options,
            &[("max_sequential_skip_in_iterations", ["0", "2"][seed as usize % 2])],
        );
        let db = Db::open("/db", &options).expect("a new database");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = Model::with_families(&["default"]);
        let mut kept: Option<(Snapshot, Model)> = None;
        // Of each queue, what was deleted ends there, and what was put into it too.
        let mut ends = [(0, 0); QUEUES as usize];
        for _ in 0..ROUNDS {
            let number = if random.bool() { 0 } else { random.u64(..QUEUES) };
            let (head, tail) = &mut ends[number as usize];
            let mut batch = Vec::new();
            let mut edit = |edit| batch.push(("default".to_string(), edit));
            match random.u8(..8) {
                0..3 => {
                    (0..10).for_each(|n| edit(put(number, *tail + n)));
                    *tail += 10;
                }
                3..6 if number % 2 == 0 => {
                    let until = (*head + random.u64(..15)).min(*tail);
                    (*head..until).for_each(|n| edit(Edit::Delete { key: key(number, n) }));
                    *head = until;
                }
                // A stack: what is deleted lies above what is left, and is written again.
                3..6 => {
                    let from = tail.saturating_sub(random.u64(..15)).max(*head);
                    (from..*tail).for_each(|n| edit(Edit::Delete { key: key(number, n) }));
                    *tail = from;
                }
                6 => edit(put(number, random.u64(..=*head))),
                _ => {
                    db.background_step().expect("a step");
                }
            }
            db.write_with(&WriteOptions::default(), compare::to_batch(&db, &batch))
                .expect("a write");
            model.apply(&batch);
            if random.u8(..20) == 0 {
                kept = Some((db.snapshot(), model.clone()));
            }
            let mut place =
                || (random.u8(..4) > 0).then(|| key(random.u64(..QUEUES), random.u64(..60)));
            let bounds = (place(), place());
            check(&db, ReadOptions::default(), &model, &bounds);
            if let Some((snapshot, then)) = &kept {
                let options =
                    ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
                check(&db, options, then, &bounds);
            }
        }
        compare::check_database(&db, &model);
    });
}

fn key(queue: u64, number: u64) -> Vec<u8> {
    format!("queue {queue:02} entry {number:05}").into_bytes()
}

fn put(queue: u64, number: u64) -> Edit {
    Edit::Put { key: key(queue, number), value: number.to_string().into_bytes() }
}

fn check(
    db: &Db,
    options: ReadOptions,
    model: &Model,
    bounds: &(Option<Vec<u8>>, Option<Vec<u8>>),
) {
    let (family, model) = (db.default_column_family(), &model.families["default"]);
    let (lower, upper) = bounds.clone();
    let within = model.within(lower.as_deref(), upper.as_deref());
    let bounded =
        ReadOptions { iterate_lower_bound: lower, iterate_upper_bound: upper, ..options.clone() };
    compare::check_scans(db, family, &within, &bounded);
    compare::check_scans(db, family, model, &options);
}
