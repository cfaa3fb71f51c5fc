use std::time::Duration;

use super::*;
use crate::space::Space;

/// RocksDB's tools refused a database whose OPTIONS file had a value that a later version has; that
/// passed for a fault.
#[test]
fn rounds_for_rocksdb_have_no_value_that_it_does_not_know() {
    let config = Config {
        seed: 1,
        space: Space { threads: 2, per_thread: 8 },
        value_size: 100,
        round_time: Duration::from_secs(1),
        disk_limit: None,
        small_disk: None,
        memory_limit: None,
        settings: Vec::new(),
        root: "/none".into(),
        work: "/none".into(),
    };
    let mut round = config.round(0, true);
    round.readable_by_rocksdb = true;
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..300 {
        let drawn = draw(&config, &round, &Env::memory(), &mut random).cf;
        assert_ne!(drawn.table.prepopulate_block_cache, PrepopulateBlockCache::FlushAndCompaction);
        assert_eq!(drawn.settings.compaction_options_universal.max_read_amp, -1);
        let fifo = &drawn.settings.compaction_options_fifo;
        assert_eq!((fifo.max_data_files_size, fifo.use_kv_ratio_compaction), (0, false));
        let is_by_hash = matches!(drawn.memtable_factory, MemTableFactory::PrefixHash { .. });
        assert!(
            !is_by_hash || !matches!(drawn.prefix_extractor, Some(PrefixExtractor::FixedPrefix(_)))
        );
        let changes = draw_changes(&round, &mut random);
        assert!(!changes.contains(&("table.prepopulate_block_cache", "kFlushAndCompaction")));
        for unknown in ["max_read_amp", "max_data_files_size"] {
            assert!(!changes.iter().any(|(_, value)| value.contains(unknown)));
        }
    }
}
