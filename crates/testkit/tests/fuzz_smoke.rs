//! Every fuzz target runs over its seeds and a few mutations of each. The long runs are `scripts/fuzz-all.sh`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flagstone::env::Env;
use testkit::fuzz::{Body, TARGETS, mutate, seeds};

/// Targets whose one run opens databases or tables get fewer mutations.
const MUTATIONS: &[(&str, usize)] = &[
    ("apply", 15),
    ("database", 2),
    ("manifest", 15),
    ("table", 60),
    ("table_part", 40),
    ("options_file", 10),
    ("wal", 10),
    ("wal_replay", 10),
    ("blob_file", 10),
    ("filter_build", 100),
    ("option_text", 4),
];
const MUTATIONS_DEFAULT: usize = 300;

fn smoke(name: &str, body: Body) {
    let count =
        MUTATIONS.iter().find(|(other, _)| *other == name).map_or(MUTATIONS_DEFAULT, |(_, count)| *count);
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has seeds");
    let mut random = fastrand::Rng::with_seed(7);
    body(&[]);
    for seed in seeds {
        let mut input = seed.clone();
        for _ in 0..=count {
            let outcome = catch_unwind(AssertUnwindSafe(|| body(&input)));
            assert!(outcome.is_ok(), "the target {name} failed with the input {input:?}");
            input.clone_from(&seed);
            mutate(&mut random, &mut input);
        }
    }
}

#[test]
fn every_target_survives_its_seeds_and_mutations_of_them() {
    let clock = Env::os().clock;
    let mut failed = Vec::new();
    for (name, body) in TARGETS {
        let start = clock.now_us();
        if catch_unwind(|| smoke(name, *body)).is_err() {
            failed.push(*name);
        }
        println!("{name}: {} ms", (clock.now_us() - start) / 1000);
    }
    assert!(failed.is_empty(), "{failed:?}");
}
