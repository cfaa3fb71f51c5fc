//! The options of a round.

use flagstone::base::PrefixExtractor;
use flagstone::env::Env;
use flagstone::options::{ColumnFamilyOptions, MemTableFactory, Options, PrepopulateBlockCache};
use testkit::choices::Scope;
use testkit::settings;

use crate::bank;
use crate::plan::{Config, Round};
use crate::space::FAMILIES;

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
            let rows = flagstone::options::names::rows().map(|row| row.name);
            let extra = ["merge_operator", "prefix_extractor", "block_cache", "blob_cache"];
            let differing =
                rows.chain(extra).filter(|option| with.get(option) != plain.get(option));
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
        let table = &mut options.cf.table;
        table.format_version = table.format_version.min(5);
        // RocksDB 7.8 does not know the third value, and then opens nothing.
        if table.prepopulate_block_cache == PrepopulateBlockCache::FlushAndCompaction {
            table.prepopulate_block_cache = PrepopulateBlockCache::FlushOnly;
        }
        // Nor these names, which are written where they are set.
        options.cf.settings.compaction_options_universal.max_read_amp = -1;
        let fifo = &mut options.cf.settings.compaction_options_fifo;
        (fifo.max_data_files_size, fifo.use_kv_ratio_compaction) = (0, false);
        // Its hash memtables have no place for a key that is shorter than the prefix: replaying a
        // WAL with one, it ends.
        let has_short_keys =
            matches!(options.cf.prefix_extractor, Some(PrefixExtractor::FixedPrefix(_)));
        if has_short_keys
            && matches!(options.cf.memtable_factory, MemTableFactory::PrefixHash { .. })
        {
            options.cf.settings.memtable_factory = MemTableFactory::default();
        }
    }
    if let Some(directory) = &round.wal_directory {
        options.db.wal_dir = directory.display().to_string();
    }
    if config.disk_limit.is_some() || config.small_disk.is_some() {
        // A write that was accepted and whose flush is refused would have to be noted as either.
        options.db.manual_wal_flush = false;
    }
    for (name, value) in &config.settings {
        options.set(name, value).expect("it was checked when the command began");
    }
    options
}

/// Changes of a running family's options. Some do not go together with what else is set, and are
/// refused.
pub fn draw_changes(
    round: &Round,
    random: &mut fastrand::Rng,
) -> Vec<(&'static str, &'static str)> {
    let mut changes = settings::random_changes(random, Scope::Family);
    changes.retain(|(name, value)| match *name {
        "table.format_version" => !round.readable_by_rocksdb,
        "table.prepopulate_block_cache" => {
            !round.readable_by_rocksdb || *value != "kFlushAndCompaction"
        }
        "compaction_options_universal" => {
            !round.readable_by_rocksdb || !value.contains("max_read_amp")
        }
        "compaction_options_fifo" => {
            !round.readable_by_rocksdb || !value.contains("max_data_files_size")
        }
        "target_file_size_base" | "blob_file_size" => *value != "1",
        _ => true,
    });
    changes
}

#[cfg(test)]
mod tests;
