use super::*;
use crate::testing;

#[test]
fn rounds_alternate() {
    use EngineName as E;
    let engines = [E::Flagstone, E::Rocksdb, E::Fjall];
    assert_eq!(round_order(&engines, 0, 1), [E::Flagstone, E::Rocksdb, E::Fjall]);
    assert_eq!(round_order(&engines, 1, 1), [E::Rocksdb, E::Flagstone]);
    assert_eq!(round_order(&engines, 2, 3), [E::Flagstone, E::Rocksdb, E::Fjall]);
    assert_eq!(round_order(&engines, 3, 4), [E::Fjall, E::Rocksdb, E::Flagstone]);
}

#[test]
fn the_disk_alone_takes_part_in_all_rounds() {
    use EngineName as E;
    assert_eq!(round_order(&[E::Flagstone, E::Redb, E::Disk], 1, 1), [E::Disk, E::Flagstone]);
}

#[test]
fn what_is_expected_has_the_warm_up_in_it() {
    let expected = |workload, memory, seconds| {
        let cell = Cell { memory, ..testing::cell(workload, 800) };
        expected_seconds(&cell, Effort { scale: 1.0, seconds }, 1)
    };
    for (memory, part) in [(Memory::Ample, 0.1), (Memory::Quarter, 0.5), (Memory::Cold, 0.0)] {
        let [short, long] =
            [10.0, 20.0].map(|seconds| expected(Workload::ReadZipf, memory, seconds));
        assert!((long - short - 10.0 * (1.2 + part)).abs() < 1e-9, "{memory:?}: {short}, {long}");
    }
    let read_all = expected(Workload::ReadZipf, Memory::Ample, 0.0) - 1.0;
    assert!(read_all > 1.0, "2 GiB take their time: {read_all}");
    let [with, without] = [Workload::ReadWhileWriting, Workload::LargeLookupWriting]
        .map(|workload| expected(workload, Memory::Ample, 10.0));
    assert!(with - without > read_all + 0.5, "128 MiB are written, too: {with}, {without}");
}

#[test]
fn a_selection_narrows_the_plan() {
    let all = plan(&Selection::default());
    assert!(all.iter().all(|duel| duel.cell.memory != Memory::Quarter));
    let selection = Selection {
        workloads: vec![Workload::FillRandom],
        sizes: vec![800],
        tracks: vec![Track::Tuned],
        durabilities: vec![Durability::Process],
        ..Selection::default()
    };
    let names: Vec<_> = plan(&selection).iter().map(|duel| duel.cell.to_string()).collect();
    let expected =
        [1, 2, 4, 8].map(|threads| format!("fillrandom/800/{threads}t/tuned/d1/ample/lz4"));
    assert_eq!(names, expected);
    assert!(names.len() < all.len());
}

#[test]
fn cold_reads_are_for_engines_that_can_read_alike() {
    let selection = Selection { memories: vec![Memory::Direct], ..Selection::default() };
    let all = plan(&selection);
    let own = |duel: &Duel| {
        let can_read = [EngineName::Flagstone, EngineName::Rocksdb, EngineName::Disk];
        duel.engines.iter().all(|engine| can_read.contains(engine))
    };
    assert!(!all.is_empty() && all.iter().all(own));
    let buffered = Cell { memory: Memory::Cold, ..all[0].cell };
    assert!(load_key(&buffered) == load_key(&all[0].cell), "they read the same database");
}

#[test]
fn cells_that_share_a_database_are_neighbours() {
    let all = plan(&Selection { quarter: true, ..Selection::default() });
    let mut keys: Vec<_> = all.iter().map(|duel| load_key(&duel.cell)).collect();
    let before = keys.len();
    keys.dedup();
    let groups = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), groups);
    assert!(groups < before);
}

/// A transaction that is kept sees no later write.
#[test]
fn lmdb_keeps_its_transaction_only_where_nothing_is_written() {
    let selection = Selection { engines: vec![EngineName::LmdbKept], ..Selection::default() };
    let duels = plan(&selection);
    assert_eq!(duels.is_empty(), !EngineName::LmdbKept.is_built());
    assert!(duels.iter().all(|duel| duel.cell.workload.only_reads()));
}
