use super::*;

const CELL: Cell = Cell {
    workload: Workload::FillRandom,
    value_size: 100,
    threads: 4,
    track: Track::Tuned,
    durability: Durability::Process,
    memory: Memory::Quarter,
    compression: Compression::Lz4,
};

#[test]
fn a_cell_has_a_name() {
    assert_eq!(CELL.to_string(), "fillrandom/100/4t/tuned/d1/quarter/lz4");
    assert_eq!([1000, 4096, 1 << 20, 3 << 20].map(size_text), ["1000", "4K", "1M", "3M"]);
}

#[test]
fn data_grows_with_the_scale() {
    let effort = |scale| Effort { scale, seconds: 1.0 };
    assert_eq!(CELL.keys(effort(1.0)), 10_000_000);
    assert_eq!(CELL.keys(effort(0.1)), 1_000_000);
    let large = Cell { value_size: 1 << 20, ..CELL };
    assert_eq!(large.keys(effort(1.0)), 2047);
    assert_eq!(large.keys(effort(0.001)), 100);
    assert_eq!(CELL.memory_limit(effort(1.0)), Some(290_000_000 + (96 << 20)));
    assert_eq!(Cell { memory: Memory::Ample, ..CELL }.memory_limit(effort(1.0)), None);
}

#[test]
fn a_cell_survives_json() {
    let text = serde_json::to_string(&CELL).unwrap();
    assert_eq!(serde_json::from_str::<Cell>(&text).unwrap(), CELL);
    assert!(
        text.contains(r#""workload":"fillrandom""#) && text.contains(r#""durability":"d1""#),
        "{text}"
    );
}

#[test]
fn classes_are_not_mixed() {
    assert!(!EngineName::Redb.offers(Durability::Process));
    assert!(!EngineName::Leveldb.offers(Durability::None));
    assert!(
        !EngineName::Disk.offers(Durability::Synced)
            && EngineName::Disk.offers(Durability::Process)
    );
    assert!(EngineName::Rocksdb.offers(Durability::None));
}
