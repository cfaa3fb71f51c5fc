//! Stories of many small range deletions of keys that are numbers.

mod common;

use common::{create, temporary};
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{CompactRangeOptions, Options, ReadOptions};
use testkit::steps;

/// Numbers, text or hashes, with something behind them or nothing.
fn key_of_kind(kind: u64, number: u64) -> Vec<u8> {
    match kind {
        0 => [&number.to_be_bytes()[..], b"tail"].concat(),
        1 => format!("user{number:06}").into_bytes(),
        _ => [&number.wrapping_mul(0xff51_afd7_ed55_8ccd).to_be_bytes()[..], b"00"].concat(),
    }
}

fn small_tables(seed: u64) -> Options {
    let mut options = create();
    options.env = steps::world(Env::os().fs, 1);
    for setting in [
        "target_file_size_base=2000",
        "disable_auto_compactions=true",
        "block_size=256",
        "merge_operator=stringappend",
        if seed % 4 == 3 { "no_block_cache=true" } else { "no_block_cache=false" },
    ] {
        let (name, value) = setting.split_once('=').expect("a name and a value");
        options.set(name, value).expect("an option");
    }
    options
}

/// That each of `keys`, read alone and together, has the value that the model says.
fn assert_reads(
    db: &Db,
    options: &ReadOptions,
    keys: &[Vec<u8>],
    model: &[Option<String>],
    step: u32,
) {
    let family = db.default_column_family();
    let together = db.multi_get_with(options, family, keys);
    for (at, found) in together.into_iter().enumerate() {
        let alone = db.get_with(options, family, &keys[at]).expect("a lookup");
        let [alone, found] =
            [alone, found.expect("a lookup")].map(|one| one.map(|value| value.to_vec()));
        let expected = model[at].as_ref().map(|value| value.as_bytes().to_vec());
        assert_eq!((&alone, &found), (&expected, &expected), "{at}, {step}");
    }
}

/// Of keys that are numbers close together, or text, it is known that they are deleted before a
/// block is looked for, and of most keys of any kind that they are not. That must not hide what was
/// set or merged later, nor what a snapshot sees.
#[test]
fn range_deletions_of_numbers_are_what_a_model_says() {
    testkit::for_each_seed(8, |seed| {
        const NUMBERS: u64 = 300;
        let random = &mut fastrand::Rng::with_seed(seed);
        let directory = temporary();
        let db = Db::open(directory.path(), &small_tables(seed)).unwrap();
        let key = |number| key_of_kind(seed % 3, number);
        let is_hash = seed % 3 == 2;
        let mut model = vec![None::<String>; NUMBERS as usize];
        let mut snapshots = Vec::new();
        for step in 0..500 {
            let number = random.u64(..NUMBERS);
            let now = &mut model[number as usize];
            match random.u32(..100) {
                0..30 => {
                    db.put(key(number), step.to_string()).unwrap();
                    *now = Some(step.to_string());
                }
                30..40 => {
                    db.merge(key(number), step.to_string()).unwrap();
                    *now = Some(
                        now.take().map_or(step.to_string(), |before| format!("{before},{step}")),
                    );
                }
                40..90 => {
                    let end = (number + random.u64(1..4)).min(NUMBERS);
                    // One key by what follows it, or several by the first that is not deleted.
                    if is_hash || random.bool() {
                        db.delete_range(key(number), [&key(number)[..], b"\0"].concat()).unwrap();
                        *now = None;
                    } else {
                        db.delete_range(key(number), key(end)).unwrap();
                        model[number as usize..end as usize].fill(None);
                    }
                }
                90 => {
                    // A table with nothing but so many that lookups pass it without a look at its
                    // bounds.
                    db.flush_all().unwrap();
                    for number in (random.u64(..3)..NUMBERS).step_by(3) {
                        db.delete_range(key(number), [&key(number)[..], b"\0"].concat()).unwrap();
                        model[number as usize] = None;
                    }
                    db.flush_all().unwrap();
                }
                91..95 => db.flush_all().unwrap(),
                95 => db
                    .compact_range(
                        db.default_column_family(),
                        None,
                        None,
                        &CompactRangeOptions::default(),
                    )
                    .unwrap(),
                _ => snapshots.push((db.snapshot(), model.clone())),
            }
            snapshots.drain(..snapshots.len().saturating_sub(3));
            if step % 10 > 0 {
                continue;
            }
            let keys: Vec<_> = (0..NUMBERS).map(key).collect();
            for (snapshot, seen) in &snapshots {
                let snapshot = Some(snapshot.clone());
                let options = ReadOptions { snapshot, ..ReadOptions::default() };
                assert_reads(&db, &options, &keys, seen, step);
            }
            assert_reads(&db, &ReadOptions::default(), &keys, &model, step);
        }
    });
}
