use super::*;
use crate::cell::Durability;

fn tuning(engine: EngineName, workload: Workload, track: Track) -> Tuning {
    let cell = Cell {
        workload,
        value_size: 4096,
        threads: 1,
        track,
        durability: Durability::Process,
        memory: Memory::Ample,
        compression: Compression::None,
    };
    Tuning::new(engine, &cell, Effort { scale: 1.0, seconds: 1.0 }, 2, &[])
}

fn value(tuning: &Tuning, name: &str) -> Option<String> {
    tuning.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

#[test]
fn defaults_are_left_alone() {
    assert_eq!(
        tuning(EngineName::Rocksdb, Workload::FillRandom, Track::Defaults),
        Tuning::default()
    );
}

#[test]
fn tuned_engines_have_the_same_memory_and_threads() {
    let ours = tuning(EngineName::Flagstone, Workload::FillRandom, Track::Tuned);
    let theirs = tuning(EngineName::Rocksdb, Workload::FillRandom, Track::Tuned);
    assert_eq!((ours.cache_bytes, ours.jobs), (theirs.cache_bytes, theirs.jobs));
    assert!(ours.memtables <= theirs.memtables);
    let level0 = |tuning: &Tuning| {
        let trigger = value(tuning, "level0_file_num_compaction_trigger")
            .map_or(4, |text| text.parse().unwrap());
        trigger * value(tuning, "write_buffer_size").unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(level0(&ours), level0(&theirs), "as many bytes before they are compacted");
    for name in
        ["max_background_jobs", "max_subcompactions", "compression", "block_based_table_factory"]
    {
        assert_eq!(value(&ours, name), value(&theirs, name), "{name}");
    }
}

/// RocksDB seldom has more than two, Flagstone's writer beside readers fills all: it had twice as
/// much memory in them.
#[test]
fn memtables_take_as_much_as_the_two_that_rocksdb_uses() {
    for workload in
        [Workload::Overwrite, Workload::ReadWhileWriting, Workload::YcsbA, Workload::YcsbD]
    {
        let ours = tuning(EngineName::Flagstone, workload, Track::Tuned);
        let theirs = tuning(EngineName::Rocksdb, workload, Track::Tuned);
        let (bytes, number) = ours.memtables.unwrap();
        assert!(bytes * number <= 2 * theirs.memtables.unwrap().0, "{workload:?}");
    }
    let beside_readers = tuning(EngineName::Flagstone, Workload::ReadWhileWriting, Track::Tuned);
    assert_eq!(
        value(&beside_readers, "level0_file_num_compaction_trigger"),
        None,
        "as few tables as others"
    );
}

#[test]
fn direct_io_is_for_who_gains_by_it() {
    let name = "use_direct_io_for_flush_and_compaction";
    for engine in [EngineName::Flagstone, EngineName::Rocksdb] {
        let text = |workload| value(&tuning(engine, workload, Track::Tuned), name);
        assert_eq!(text(Workload::BulkLoad).as_deref(), Some("true"));
        assert_eq!(text(Workload::ReadRandom), None);
    }
    assert_eq!(
        value(&tuning(EngineName::RocksdbBlob, Workload::LargeLoad, Track::Tuned), name).as_deref(),
        Some("true")
    );
}

#[test]
fn direct_write_has_no_concurrent_writers() {
    let direct = tuning(EngineName::RocksdbDirect, Workload::LargeLoad, Track::Tuned);
    assert_eq!(value(&direct, "enable_blob_direct_write").as_deref(), Some("true"));
    assert_eq!(value(&direct, "allow_concurrent_memtable_write").as_deref(), Some("false"));
    let leveled = tuning(EngineName::Rocksdb, Workload::LargeLoad, Track::Tuned);
    assert_eq!(value(&leveled, "enable_blob_files"), None);
}
