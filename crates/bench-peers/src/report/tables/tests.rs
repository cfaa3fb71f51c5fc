use super::*;
use crate::store::Line;
use crate::testing;

fn report() -> Report {
    let mut lines = Vec::new();
    for round in 0..5 {
        for (engine, rate) in [
            (EngineName::Flagstone, 2_500_000.0),
            (EngineName::Rocksdb, 1_000_000.0),
            (EngineName::Fjall, 3_000_000.0),
        ] {
            lines.push(Line::Run(Box::new(testing::run(engine, round, rate))));
            let cell = testing::cell(Workload::FillSync, 800);
            lines.push(Line::Run(Box::new(testing::run_of(cell, engine, round, rate / 3.0 + 3e6))));
        }
    }
    Report::new(&lines).unwrap()
}

#[test]
fn the_tables_read_like_this() {
    let text = all(&report());
    let expected = include_str!("../golden.md");
    assert_eq!(text, expected, "if this is meant, put the new text into golden.md:\n{text}");
}

/// The page said that large values were compared with the fastest of RocksDB's ways. Reads are
/// with BlobDB, also where RocksDB is faster with the values in its tables.
#[test]
fn what_is_not_compared_with_the_fastest_is_named() {
    let mut lines = Vec::new();
    for (engine, rate) in [
        (EngineName::Flagstone, 600.0),
        (EngineName::Rocksdb, 400.0),
        (EngineName::RocksdbBlob, 300.0),
    ] {
        for workload in [Workload::LargeLookup, Workload::LargeLoad] {
            lines.push(Line::Run(Box::new(testing::run_of(
                testing::cell(workload, 4096),
                engine,
                0,
                rate,
            ))));
        }
    }
    let report = Report::new(&lines).unwrap();
    let text = glance(&report);
    assert!(text.contains("| largeload | 4K | **1.50** |"), "{text}");
    assert!(text.contains("| largelookup, beside BlobDB | 4K | **2.00** |"), "{text}");
    let tables = section(&report, Track::Tuned, Family::Large).unwrap();
    assert!(tables.contains("and in reads BlobDB"), "{tables}");
}

#[test]
fn numbers_are_short() {
    assert_eq!(grouped(Some(1_234_567.4)), "1,234,567");
    assert_eq!(grouped(Some(999.0)), "999");
    assert_eq!([0.0, 1.234, 12.34, 1234.5].map(short_number), ["0", "1.23", "12.3", "1,234"]);
}

#[test]
fn dates() {
    assert_eq!(date(0), "1970-01-01");
    assert_eq!(date(951_782_400), "2000-02-29");
    assert_eq!(date(1_700_000_000), "2023-11-14");
}
