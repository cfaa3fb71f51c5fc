//! A history that the input spells, told to a database in memory and to the model.

use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::ReadOptions;

use super::input::Input;
use crate::compare::{check_files, check_lookups, check_scans, to_batch};
use crate::model::{Edit, Model, SINGLE};
use crate::{settings, steps};

const FAMILIES: [&str; 2] = ["default", "other"];
const STEPS_MAX: usize = 60;

fn open(fs: &MemoryFileSystem, seed: u64) -> Db {
    let env = steps::world(Arc::new(fs.clone()), seed);
    let options = settings::random(&env, &mut fastrand::Rng::with_seed(seed));
    let listed = FAMILIES.map(|name| (name, options.cf.clone()));
    Db::open_with_families("/db", &options, &listed).expect("a database in memory")
}

/// Seeds of the settings before and after reopening, then steps; every answer must be the model's.
pub fn apply(data: &[u8]) {
    let mut input = Input::new(data);
    let seeds = [u64::from(input.u8()), u64::from(input.u8())];
    let fs = MemoryFileSystem::new();
    let mut db = open(&fs, seeds[0]);
    let mut model = Model::with_families(&FAMILIES);
    let mut snapshot = None;
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let what = input.u8();
        let name = FAMILIES[usize::from(what >> 7)];
        let family = db.column_family(name).expect("it was opened");
        match what & 0x1f {
            0 => db.flush_all().expect("a flush"),
            1 => {
                let bounds = [key(&mut input), key(&mut input)];
                let [begin, end] = bounds.each_ref().map(|key| Some(key.as_slice()));
                db.compact_range(&family, begin, end, &Default::default()).expect("a compaction");
            }
            2 => drop(db.background_step().expect("a step")),
            3 => snapshot = Some((db.snapshot(), model.clone())),
            4 => check_scans(&db, &family, &model.families[name], &total_order(&[])),
            5 => {
                // A closed database is the one whose handles are gone.
                snapshot = None;
                drop(family);
                db.close().expect("a clean close");
                drop(db);
                db = open(&fs, seeds[1]);
            }
            6 => {
                let keys = [key(&mut input), key(&mut input)];
                check_lookups(&db, &family, &model.families[name], &ReadOptions::default(), &keys);
            }
            count => write(&db, &mut model, &mut input, usize::from(count % 8) + 1),
        }
    }
    if let Some((snapshot, then)) = snapshot {
        let options = total_order(&[snapshot]);
        for name in FAMILIES {
            let family = db.column_family(name).expect("it was opened");
            check_scans(&db, &family, &then.families[name], &options);
        }
    }
    db.flush_all().expect("a flush");
    check_all(&db, &model);
    check_files(&db);
    db.close().expect("a clean close");
}

fn check_all(db: &Db, model: &Model) {
    for name in FAMILIES {
        let family = db.column_family(name).expect("it was opened");
        check_scans(db, &family, &model.families[name], &total_order(&[]));
    }
}

fn total_order(snapshot: &[flagstone::base::Snapshot]) -> ReadOptions {
    ReadOptions {
        total_order_seek: true,
        snapshot: snapshot.first().cloned(),
        ..ReadOptions::default()
    }
}

fn write(db: &Db, model: &mut Model, input: &mut Input<'_>, count: usize) {
    let mut batch = Vec::new();
    for _ in 0..count {
        let shape = input.u8();
        let name = FAMILIES[usize::from(shape >> 7)];
        let family = model.families.get_mut(name).expect("it is there");
        let edit = edit(family, shape, input);
        family.apply(&edit);
        batch.push((name.to_string(), edit));
    }
    db.write(to_batch(db, &batch)).expect("a write");
}

fn edit(family: &crate::model::Family, shape: u8, input: &mut Input<'_>) -> Edit {
    let key = key(input);
    if family.may_single_delete(&key) {
        return Edit::SingleDelete { key };
    }
    let single = key.first() == Some(&SINGLE);
    match shape % 8 {
        0 => {
            let other = self::key(input);
            let (begin, end) = if key <= other { (key, other) } else { (other, key) };
            Edit::DeleteRange { begin, end }
        }
        1 | 2 if !single => Edit::Delete { key },
        3 | 4 if !single => {
            Edit::Merge { key, operand: input.bytes(usize::from(shape >> 3 & 7)).to_vec() }
        }
        5 => {
            let byte = input.u8();
            Edit::Put { key, value: vec![byte; usize::from(input.u8()) * 8] }
        }
        _ => Edit::Put { key, value: input.bytes(usize::from(shape >> 3 & 15)).to_vec() },
    }
}

/// A key of a small space; some begin with [`SINGLE`].
fn key(input: &mut Input<'_>) -> Vec<u8> {
    let shape = input.u8();
    let first = if shape & 0xc0 == 0xc0 { SINGLE } else { b'a' + (shape >> 3 & 3) };
    let mut key = vec![first, b'0' + (shape & 7)];
    key.extend((shape & 0x20 != 0).then_some(0xff));
    key
}
