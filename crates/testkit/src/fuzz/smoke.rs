//! The targets over their seeds and a few mutations of each, as often as a test has time for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Body, TARGETS, mutate, seeds};

/// No input of a few kilobytes is a reason to ask for more: a decoder that believes a claimed
/// length ends the process.
const ADDRESS_SPACE_MAX: u64 = 3 << 30;

/// Targets whose one run opens databases.
const OF_DATABASES: &[&str] = &["apply", "database", "salvage"];

/// Targets whose one run opens databases or tables get fewer mutations.
const MUTATIONS: &[(&str, usize)] = &[
    ("apply", 15),
    ("database", 2),
    ("manifest", 15),
    ("owner", 50),
    ("salvage", 1),
    ("table", 60),
    ("table_part", 40),
    ("trace", 40),
    ("ttl", 30),
    ("update_position", 40),
    ("options_file", 10),
    ("wal", 10),
    ("wal_replay", 10),
    ("blob_file", 10),
    ("filter_build", 100),
    ("option_text", 4),
];
const MUTATIONS_DEFAULT: usize = 300;

/// Every decoder by itself.
///
/// # Panics
/// With the first input that a target does not survive.
pub fn decoders() {
    TARGETS
        .iter()
        .filter(|(name, _)| !OF_DATABASES.contains(name))
        .for_each(|(name, body)| smoke(name, *body));
}

/// Whole databases, damaged and used.
///
/// # Panics
/// With the first input that a target does not survive.
pub fn databases() {
    TARGETS
        .iter()
        .filter(|(name, _)| OF_DATABASES.contains(name))
        .for_each(|(name, body)| smoke(name, *body));
}

fn smoke(name: &str, body: Body) {
    limit_memory();
    let count = MUTATIONS
        .iter()
        .find(|(other, _)| *other == name)
        .map_or(MUTATIONS_DEFAULT, |(_, count)| *count);
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has seeds");
    let mut random = fastrand::Rng::with_seed(7);
    body(&[]);
    for seed in seeds {
        let mut input = seed.clone();
        for _ in 0..=count {
            if let Err(said) = crate::caught::catch(|| body(&input)) {
                panic!("the target {name} failed with the input {input:?}: {said}");
            }
            input.clone_from(&seed);
            mutate(&mut random, &mut input);
        }
    }
}

/// For the rest of the process.
fn limit_memory() {
    let limit = getrlimit(Resource::As);
    if limit.current.is_none_or(|now| now > ADDRESS_SPACE_MAX) {
        let current = Some(ADDRESS_SPACE_MAX);
        setrlimit(Resource::As, Rlimit { current, ..limit }).expect("a limit may be lowered");
    }
}
