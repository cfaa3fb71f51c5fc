//! The options of a round.

use flagstone::env::Env;
use flagstone::options::{ColumnFamilyOptions, Options};
use testkit::choices::Scope;
use testkit::settings;

use super::bank;
use super::plan::{Config, Round};
use super::space::FAMILIES;

/// The laboratory's sizes are for hundreds of small keys; these are for thousands of larger ones.
const SCALE: u64 = 8;

/// With a file for each key, nothing else would come to pass.
const FILE_SIZE_MIN: u64 = 4096;

/// Options of the database, and of each family by name, `default` first.
pub struct Chosen {
    pub options: Options,
    pub families: Vec<(String, ColumnFamilyOptions)>,
}

impl Chosen {
    /// The families as they are opened.
    pub fn listed(&self) -> Vec<(&str, ColumnFamilyOptions)> {
        self.families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect()
    }

    /// What differs from the defaults, as `name=value`, by database and family.
    pub fn differences(&self) -> Vec<String> {
        let plain = Options::default();
        let mut lines = Vec::new();
        for (name, family) in &self.families {
            let mut with = self.options.clone();
            with.cf = family.clone();
            let rows = flagstone::options::assembled::rows().map(|row| row.name);
            let extra = ["merge_operator", "prefix_extractor", "block_cache"];
            let differing = rows.chain(extra).filter(|option| with.get(option) != plain.get(option));
            let listed: Vec<String> = differing
                .map(|option| format!("{option}={}", with.get(option).unwrap_or_default()))
                .collect();
            lines.push(format!("{name}: {}", listed.join(" ")));
        }
        lines
    }
}

/// Draws the options of a round.
pub fn choose(config: &Config, round: &Round, env: &Env) -> Chosen {
    let mut random = fastrand::Rng::with_seed(round.seed);
    let options = draw(config, round, env, &mut random);
    let names = FAMILIES.iter().chain(&bank::FAMILIES);
    let families = names.map(|name| {
        let mut family = draw(config, round, env, &mut random).cf;
        if bank::FAMILIES.contains(name) {
            family.set("merge_operator", "uint64add").expect("it is built in");
        }
        (name.to_string(), family)
    });
    Chosen { families: families.collect(), options }
}

/// One family's options, with the database's.
pub fn draw(config: &Config, round: &Round, env: &Env, random: &mut fastrand::Rng) -> Options {
    let mut options = settings::random(env, random);
    let Options { db, cf, .. } = &mut options;
    let family = &mut cf.settings;
    for size in [
        &mut db.max_total_wal_size,
        &mut db.db_write_buffer_size,
        &mut family.write_buffer_size,
        &mut family.max_bytes_for_level_base,
        &mut family.soft_pending_compaction_bytes_limit,
        &mut family.hard_pending_compaction_bytes_limit,
    ] {
        *size = size.saturating_mul(SCALE);
    }
    for file_size in [&mut family.target_file_size_base, &mut family.blob_file_size] {
        *file_size = (*file_size * SCALE).max(FILE_SIZE_MIN);
    }
    if round.readable_by_rocksdb {
        options.cf.table.format_version = options.cf.table.format_version.min(5);
    }
    if let Some(directory) = &round.wal_directory {
        options.db.wal_dir = directory.display().to_string();
    }
    for (name, value) in &config.settings {
        options.set(name, value).expect("it was checked when the command began");
    }
    options
}

/// Changes of a running family's options. Some do not go together with what else is set, and are refused.
pub fn draw_changes(round: &Round, random: &mut fastrand::Rng) -> Vec<(&'static str, &'static str)> {
    let mut changes = settings::random_changes(random, Scope::Family);
    changes.retain(|(name, value)| match *name {
        "table.format_version" => !round.readable_by_rocksdb,
        "target_file_size_base" | "blob_file_size" => *value != "1",
        _ => true,
    });
    changes
}
