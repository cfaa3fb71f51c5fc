use super::*;
use crate::base::Code;

fn figures() -> Figures {
    Figures {
        pid: 4711,
        process_start: 12,
        opened_at_us: 1_700_000_000_000_000,
        updated_at_us: 1_700_000_002_000_000,
        counters: vec![("rocksdb.write.self".to_string(), 7), ("other".to_string(), u64::MAX)],
        figures: vec![("wal_bytes".to_string(), 100)],
        levels: vec![LevelFigures {
            family: "with a space\n".to_string(),
            level: 6,
            tables: 2,
            bytes: 300,
        }],
    }
}

#[test]
fn what_is_encoded_is_parsed() {
    let encoded = figures().encode();
    assert_eq!(Figures::parse(encoded.as_bytes()).unwrap(), figures());
    assert!(encoded.starts_with("flagstone figures 1\npid 4711\n"), "{encoded}");
    assert!(encoded.contains("level 7769746820612073706163650a 6 2 300\n"), "{encoded}");
    assert_eq!(figures().counter("rocksdb.write.self"), 7);
    assert_eq!((figures().figure("wal_bytes"), figures().figure("none")), (100, 0));
    let none = Figures::default();
    assert_eq!(Figures::parse(none.encode().as_bytes()).unwrap(), none);
}

fn summed(body: &str) -> String {
    format!("{body}checksum {:08x}\n", crc32c(body.as_bytes()))
}

#[test]
fn lines_of_later_versions_are_passed_over_and_bad_files_refused() {
    let later = summed("flagstone figures 1\npid 1\nnew line of a later version\n");
    assert_eq!(Figures::parse(later.as_bytes()).unwrap().pid, 1);
    let encoded = figures().encode();
    for cut in 0..encoded.len() {
        let error = Figures::parse(&encoded.as_bytes()[..cut]).unwrap_err();
        assert_eq!(error.code(), Code::Corruption, "{cut}");
    }
    for at in 0..encoded.len() - 1 {
        let mut flipped = encoded.clone().into_bytes();
        flipped[at] ^= 1;
        assert!(Figures::parse(&flipped).is_err(), "{at}");
    }
    for bad in [
        summed("flagstone figures 2\npid 1\n"),
        summed("flagstone figures 1\npid one\n"),
        summed("flagstone figures 1\nlevel 6 1 1\n"),
        summed("flagstone figures 1\nlevel 616 0 1 1\n"),
        summed("flagstone figures 1\nlevel ff 0 1 1\n"),
        summed("flagstone figures 1\ncounter name\n"),
    ] {
        assert_eq!(Figures::parse(bad.as_bytes()).unwrap_err().code(), Code::Corruption, "{bad}");
    }
}
