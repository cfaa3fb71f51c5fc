use super::*;
use crate::testing;

#[test]
fn targets() {
    let cell =
        |workload, value_size, threads| Cell { threads, ..testing::cell(workload, value_size) };
    assert_eq!(cell(Workload::FillRandom, 100, 4).target("puts"), Some(2.0));
    assert_eq!(cell(Workload::Overwrite, 800, 1).target("puts"), Some(1.7));
    assert_eq!(cell(Workload::FillSync, 100, 16).target("puts"), Some(2.5));
    assert_eq!(cell(Workload::LargeLoad, 64 << 10, 1).target("puts"), Some(2.0));
    assert_eq!(cell(Workload::LargeLoad, 1 << 20, 1).target("puts"), Some(1.5));
    assert_eq!(cell(Workload::ReadRandom, 100, 1).target("lookups"), Some(2.0));
    assert_eq!(cell(Workload::LargeScan, 1 << 10, 1).rivals(), [EngineName::RocksdbBlob]);
    let bulk = cell(Workload::BulkLoad, 100, 1);
    assert_eq!((bulk.target("total"), bulk.target("load")), (Some(2.0), None));
    let defaults = Cell { track: Track::Defaults, ..bulk };
    assert_eq!((defaults.target("total"), defaults.target("load")), (Some(1.3), None));
    let read = Cell { workload: Workload::LargeScan, ..defaults };
    assert_eq!(
        (read.target("scans"), read.rivals()),
        (Some(1.3), [EngineName::Rocksdb].as_slice())
    );
}

#[test]
fn every_workload_is_one_of_its_kind() {
    for workload in Workload::value_variants() {
        assert!(!workload.only_reads() || workload.needs_data(), "{workload:?}");
        assert!(!workload.reads_and_writes() || workload.needs_data() && !workload.only_reads());
        assert!(Family::ALL.contains(&workload.family()));
    }
}
