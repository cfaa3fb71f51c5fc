use super::format::*;
use super::test_support::*;
use super::*;
use crate::base::ColumnFamilyId;
use crate::env::failing_pages::test_support::BadSector;

const OWN: u32 = NUMBER.0 as u32;

fn kinds(damages: &[Damage]) -> Vec<DamageKind> {
    damages.iter().map(|damage| damage.kind.clone()).collect()
}

fn texts(records: &[Vec<u8>]) -> Vec<&str> {
    records.iter().map(|record| std::str::from_utf8(record).unwrap()).collect()
}

/// Reads a log put together from pieces: its records, and what stood in the place of records.
#[track_caller]
fn check(pieces: &[&[u8]], records: &[&str], damages: &[DamageKind]) {
    let (read, found) = read_all(&pieces.concat());
    assert_eq!((texts(&read), kinds(&found)), (records.to_vec(), damages.to_vec()));
}

fn padding(before: &[&[u8]]) -> Vec<u8> {
    vec![0; BLOCK_SIZE - before.concat().len() % BLOCK_SIZE]
}

#[test]
fn an_empty_file_is_an_empty_log() {
    check(&[], &[], &[]);
    check(&[&[0; 3 * BLOCK_SIZE]], &[], &[]);
}

#[test]
fn special_records_are_noted() {
    let mut sizes = Vec::new();
    for (cf, size) in [(3u32, 8u16), (70_000, 4)] {
        sizes.extend_from_slice(&cf.to_le_bytes());
        sizes.extend_from_slice(&size.to_le_bytes());
    }
    // The golden predecessor record: WAL 4 of 209 bytes, whose last record starts at sequence
    // number 10.
    let mut golden = b"\x88\x32\x6f\xc8\x18\x00\x82".to_vec();
    golden.extend([4u64, 209, 10].iter().flat_map(|number| number.to_le_bytes()));
    assert_eq!(physical(PREDECESSOR, 0, &golden[7..]), golden);
    for (first, second, data) in [
        (golden.clone(), TIMESTAMP_SIZES, FULL),
        (
            physical(RECYCLABLE_PREDECESSOR, OWN, &golden[7..]),
            RECYCLABLE_TIMESTAMP_SIZES,
            FULL + RECYCLABLE,
        ),
    ] {
        let log = [first, physical(second, OWN, &sizes), physical(data, OWN, b"x")].concat();
        let mut reader = Reader::new(file_of(&log), NUMBER);
        assert_eq!(reader.next_event().unwrap(), Event::Record(b"x"));
        assert_eq!(reader.next_event().unwrap(), Event::End);
        assert_eq!(reader.timestamp_sizes(), [(ColumnFamilyId(3), 8), (ColumnFamilyId(70_000), 4)]);
        assert_eq!(
            reader.predecessor(),
            Some(PredecessorWal { number: 4, size: 209, last_sequence: 10 })
        );
        assert_eq!(reader.good_until(), log.len() as u64);
    }
}

#[test]
fn bad_special_records_are_damage() {
    let x = physical(FULL, 0, b"x");
    let repeated = b"\x01\0\0\0\x08\0\x01\0\0\0\x08\0";
    for (log, read) in [
        (vec![physical(TIMESTAMP_SIZES, 0, repeated), x.clone()], vec!["x"]),
        (vec![physical(TIMESTAMP_SIZES, 0, b"\x01\0\0"), x.clone()], vec!["x"]),
        (vec![physical(PREDECESSOR, 0, &[0; 25]), x.clone()], vec!["x"]),
        (
            vec![x.clone(), physical(SET_COMPRESSION_TYPE, 0, b"\x07\0\0\0"), x.clone()],
            vec!["x", "x"],
        ),
        // What is compressed in an unknown way cannot be read.
        (vec![physical(SET_COMPRESSION_TYPE, 0, b"\x01\0\0\0"), x.clone()], vec![]),
        (vec![physical(SET_COMPRESSION_TYPE, 0, b"\x07\0\0"), x.clone()], vec![]),
    ] {
        let (records, damages) = read_all(&log.concat());
        assert_eq!(texts(&records), read);
        assert!(matches!(&kinds(&damages)[..], [DamageKind::BadSpecialRecord(_)]), "{damages:?}");
    }
}

#[test]
fn another_record_ends_an_unfinished_one() {
    let (a, x) = (physical(FULL, 0, b"a"), physical(FULL, 0, b"x"));
    let (first, last) = (physical(FIRST, 0, b"12"), physical(LAST, 0, b"34"));
    let empty = physical(FIRST, 0, b"");
    let skipped = physical(200, 0, b"?");
    check(&[&first, &last], &["1234"], &[]);
    check(&[&a, &first, &x], &["a", "x"], &[DamageKind::PartialRecord]);
    check(&[&first, &first, &last], &["1234"], &[DamageKind::PartialRecord]);
    check(&[&first, &physical(TIMESTAMP_SIZES, 0, b""), &x], &["x"], &[DamageKind::PartialRecord]);
    check(&[&empty, &x], &["x"], &[]);
    check(&[&empty, &last], &["34"], &[]);
    check(&[&first, &skipped, &last], &[], &[DamageKind::MissingStart]);
    check(&[&first, &physical(50, 0, b"?"), &x], &["x"], &[DamageKind::UnknownType(50)]);
    check(&[&physical(MIDDLE, 0, b"?"), &x], &["x"], &[DamageKind::MissingStart]);
    check(&[&a, &first], &["a"], &[DamageKind::TruncatedRecord]);
}

#[test]
fn damage_says_where_and_how_much() {
    let mut log = [physical(FULL, 0, b"a"), physical(FIRST, 0, b"12")].concat();
    let offset = log.len() as u64;
    log.extend(physical(LAST, 0, b"3456"));
    *log.last_mut().unwrap() ^= 1;
    let dropped = log.len() as u64 - offset + 2;
    let (_, damages) = read_all(&log);
    assert_eq!(damages, [Damage { kind: DamageKind::Checksum, offset, dropped }]);
    assert_eq!(
        damages[0].to_error(&*file_of(&log)).to_string(),
        "corruption: checksum mismatch of a log record (13 bytes dropped) (/db/000017.log, offset 17)"
    );
}

#[test]
fn a_bad_length_drops_the_rest_of_its_block() {
    let mut bad = physical(FULL, 0, b"b");
    bad[4..6].copy_from_slice(&40_000u16.to_le_bytes());
    let (a, x) = (physical(FULL, 0, b"a"), physical(FULL, 0, b"x"));
    let fill = padding(&[&a, &bad, &x]);
    check(&[&a, &bad, &x, &fill, &x], &["a", "x"], &[DamageKind::Length]);
    // A damaged length in the last block passed for a record cut off by a crash: a MANIFEST with
    // one flipped bit lost its last edits without an error. The checksum says that the record is
    // whole.
    check(&[&a, &bad, &x], &["a"], &[DamageKind::Length]);
    let mut torn = physical(FULL, 0, b"bbbb");
    torn.truncate(torn.len() - 1);
    check(&[&a, &torn], &["a"], &[DamageKind::TruncatedBody]);
}

#[test]
fn older_records_end_a_recycled_log() {
    let own = |kind: u8, text: &str| physical(kind + RECYCLABLE, OWN, text.as_bytes());
    let old = |kind: u8, text: &str| physical(kind + RECYCLABLE, 3, text.as_bytes());
    let outside = DamageKind::OldRecord { in_fragment: false };
    check(&[&own(FULL, "a"), &old(FULL, "x")], &["a"], std::slice::from_ref(&outside));
    check(&[&old(FULL, "x")], &[], std::slice::from_ref(&outside));
    let inside = DamageKind::OldRecord { in_fragment: true };
    check(&[&own(FULL, "a"), &own(FIRST, "b"), &old(LAST, "x")], &["a"], &[inside]);
    // Records without a number are not this writer's either.
    check(&[&own(FULL, "a"), &physical(FULL, 0, b"x")], &["a"], &[outside]);
    // The other way round is no log at all.
    let mixed = [&physical(FULL, 0, b"a")[..], &own(FULL, "x"), &physical(FULL, 0, b"y")];
    check(&mixed, &["a"], &[DamageKind::MixedHeaders]);
}

#[test]
fn a_damaged_type_does_not_pass_for_an_older_record() {
    let mut log = physical(FULL, 0, &put("a", 1));
    log[TYPE_OFFSET] = FULL + RECYCLABLE;
    check(&[&log], &[], &[DamageKind::Checksum]);
}

#[test]
fn zeros_end_a_log_with_numbers() {
    let zeros = DamageKind::Zeros { in_fragment: false };
    let own = physical(FULL + RECYCLABLE, OWN, b"a");
    let fill = padding(&[&own]);
    let hole = vec![0; BLOCK_SIZE];
    check(&[&own, &fill], &["a"], std::slice::from_ref(&zeros));
    check(&[&own, &fill, &hole, &own], &["a", "a"], std::slice::from_ref(&zeros));
    // The first pages are lost: what follows is told by its header.
    check(&[&hole, &own], &["a"], &[zeros]);
    let (_, damages) = read_all(&[&own[..], &fill, &hole, &own].concat());
    assert_eq!((damages[0].offset, damages[0].dropped), (12, 2 * BLOCK_SIZE as u64 - 12));
    let first = physical(FIRST + RECYCLABLE, OWN, b"b");
    let fill = padding(&[&own, &first]);
    check(&[&own, &first, &fill], &["a"], &[DamageKind::Zeros { in_fragment: true }]);
}

#[test]
fn zeros_elsewhere_are_nothing_at_the_end_and_reported_in_between() {
    // They were passed over everywhere, as by RocksDB: where a page was lost in a crash, history
    // had a hole.
    let a = physical(FULL, 0, b"a");
    let fill = padding(&[&a]);
    check(&[&a, &fill], &["a"], &[]);
    check(&[&a, &fill, &a], &["a", "a"], &[DamageKind::Zeros { in_fragment: false }]);
    let first = physical(FIRST, 0, b"b");
    let fill = padding(&[&first]);
    check(&[&first, &fill, &a], &["a"], &[DamageKind::MiddleOfRecord]);
    // Before timestamp sizes, padding may be long even in a log with numbers.
    let own = physical(FULL + RECYCLABLE, OWN, b"a");
    let sizes = physical(RECYCLABLE_TIMESTAMP_SIZES, OWN, b"\x01\0\0\0\x08\0");
    let fill = padding(&[&own]);
    check(&[&own, &fill, &sizes, &own], &["a", "a"], &[]);
}

#[test]
fn padding_between_fragments_of_a_compressed_recycled_log_is_passed_over() {
    for left in LEGACY_HEADER_SIZE..RECYCLABLE_HEADER_SIZE {
        let first = physical(
            FIRST + RECYCLABLE,
            OWN,
            &vec![b'a'; BLOCK_SIZE - RECYCLABLE_HEADER_SIZE - left],
        );
        let last = physical(LAST + RECYCLABLE, OWN, b"b");
        let (records, damages) = read_all(&[&first[..], &vec![0; left], &last].concat());
        assert_eq!((records.len(), damages), (1, Vec::new()), "{left}");
    }
}

#[test]
fn a_frame_that_does_not_decompress_is_damage() {
    let start = physical(SET_COMPRESSION_TYPE, 0, b"\x07\0\0\0");
    let good = zstd::encode_all(&b"a"[..], 3).unwrap();
    let good = physical(FULL, 0, &good);
    check(&[&start, &physical(FULL, 0, b"no frame"), &good], &["a"], &[DamageKind::Decompression]);
    let bomb = zstd::encode_all(&vec![0; 1 << 20][..], 3).unwrap();
    let log = [start, physical(FULL, 0, &bomb)].concat();
    let options = ReaderOptions { decompressed_size_max: 1 << 19, ..ReaderOptions::default() };
    let mut reader = Reader::with_options(file_of(&log), NUMBER, options);
    assert!(matches!(
        reader.next_event().unwrap(),
        Event::Damage(Damage { kind: DamageKind::Decompression, .. })
    ));
}

/// One page of a log that the device could not read, and all behind it was given up.
#[test]
fn a_page_that_cannot_be_read_costs_the_records_that_lie_there() {
    let mut log = Vec::new();
    for record in 0..100u8 {
        let block = vec![physical(FULL, 0, &vec![record; 10_000]); 3].concat();
        log.extend(block);
        log.resize(log.len().next_multiple_of(BLOCK_SIZE), 0);
    }
    let bad = 50 * BLOCK_SIZE as u64 + 13_000;
    let file = std::sync::Arc::new(BadSector(file_of(&log).into(), bad..bad + 512));
    let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
    let mut reader = Reader::with_options(file, NUMBER, options);
    let (mut records, mut damages) = (0, Vec::new());
    loop {
        match reader.next_event().unwrap() {
            Event::Record(_) => records += 1,
            Event::Damage(damage) => damages.push(damage.kind),
            Event::End => break,
        }
    }
    assert_eq!(records, 299);
    assert!(damages.contains(&DamageKind::Checksum), "{damages:?}");
}

#[test]
fn a_log_that_grows_has_the_next_record_at_hand_only_where_it_was_read() {
    let record_of = |size: usize| physical(FULL + RECYCLABLE, OWN, &vec![b'x'; size]);
    let gap = RECYCLABLE_HEADER_SIZE - 1;
    let to_the_end =
        record_of(BLOCK_SIZE - 2 * (RECYCLABLE_HEADER_SIZE + 100) - gap - RECYCLABLE_HEADER_SIZE);
    let mut log = [record_of(100), record_of(100), to_the_end, vec![0; gap]].concat();
    assert_eq!(log.len(), BLOCK_SIZE);
    log.extend(record_of(100));
    log.resize(9 * BLOCK_SIZE, 0);
    let file = file_of(&log);
    let mut reader = Reader::new(file.clone(), NUMBER);
    for is_at_hand in [true, true, true, false] {
        assert!(matches!(reader.next_event().unwrap(), Event::Record(_)));
        assert_eq!(reader.has_next_at_hand(), is_at_hand);
    }
    // The writer goes on into what was read as zeros, and its log of sizes behind that.
    let good_until = reader.good_until();
    file.write_at(good_until, &record_of(50)).unwrap();
    let sizes = physical(RECYCLABLE_TIMESTAMP_SIZES, OWN, &[3, 0, 0, 0, 8, 0]);
    let last = [sizes, record_of(70)].concat();
    file.write_at(8 * BLOCK_SIZE as u64, &last).unwrap();
    assert!(!reader.has_next_at_hand());
    reader.resume();
    assert!(matches!(reader.next_event().unwrap(), Event::Record(record) if record.len() == 50));
}
