use super::*;
use crate::base::{Code, ColumnFamilyId, Result, SubCode};

const CF1: ColumnFamilyId = ColumnFamilyId(1);

/// The worked example of the format: nine counted operations on two families, and log data.
const GOLDEN: &[u8] = b"\
    \x01\0\0\0\0\0\0\0\x09\0\0\0\
    \x01\x02k1\x02v1\
    \x00\x02k2\
    \x07\x02k3\
    \x02\x02k4\x01m\
    \x0f\x01a\x01b\
    \x03\x03log\
    \x05\x01\x02k5\x02v5\
    \x04\x01\x02k6\
    \x0e\x01\x01c\x01d\
    \x16\x01e\x0b\x01\x02\0\x02\x02c1\x01dvx";

fn golden_batch() -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(b"k1", b"v1").unwrap();
    batch.delete(b"k2").unwrap();
    batch.single_delete(b"k3").unwrap();
    batch.merge(b"k4", b"m").unwrap();
    batch.delete_range(b"a", b"b").unwrap();
    batch.put_log_data(b"log").unwrap();
    batch.put_cf(CF1, b"k5", b"v5").unwrap();
    batch.delete_cf(CF1, b"k6").unwrap();
    batch.delete_range_cf(CF1, b"c", b"d").unwrap();
    batch
        .put_encoded_entity(ColumnFamilyId::DEFAULT, b"e", b"\x01\x02\0\x02\x02c1\x01dvx")
        .unwrap();
    batch.set_sequence(1);
    batch
}

fn operations(bytes: &[u8]) -> Result<Vec<Operation<'_>>> {
    let view = BatchView::parse(bytes)?;
    view.validate()?;
    view.iter().collect()
}

fn with_body(count: u32, body: &[u8]) -> Vec<u8> {
    [&encode_header(1, count)[..], body].concat()
}

fn timed(stored: &[u8]) -> TimedValue<'_> {
    TimedValue::new(stored).unwrap()
}

#[test]
fn golden_bytes_are_written_and_read() {
    let batch = golden_batch();
    assert_eq!(batch.data().escape_ascii().to_string(), GOLDEN.escape_ascii().to_string());
    assert_eq!((batch.sequence(), batch.count(), batch.byte_size()), (1, 9, 77));
    let read = WriteBatch::from_bytes(GOLDEN.to_vec()).unwrap();
    assert_eq!(read, batch);
    let operations: Vec<_> = read.iter().map(Result::unwrap).collect();
    assert_eq!(operations[2], Operation::SingleDelete { cf: ColumnFamilyId(0), key: b"k3" });
    assert_eq!(operations[5], Operation::LogData(b"log"));
    assert_eq!(operations[8], Operation::DeleteRange { cf: CF1, begin: b"c", end: b"d" });
}

#[test]
fn every_tag_is_read() {
    use TransactionPolicy::*;
    let (zero, one) = (ColumnFamilyId(0), ColumnFamilyId(300));
    let cases: &[(&[u8], Operation<'_>)] = &[
        (b"\x00\x01k", Operation::Delete { cf: zero, key: b"k" }),
        (b"\x01\x01k\x01v", Operation::Put { cf: zero, key: b"k", value: b"v" }),
        (b"\x02\x01k\x01v", Operation::Merge { cf: zero, key: b"k", operand: b"v" }),
        (b"\x03\x01k", Operation::LogData(b"k")),
        (b"\x04\xac\x02\x01k", Operation::Delete { cf: one, key: b"k" }),
        (b"\x05\xac\x02\x01k\x01v", Operation::Put { cf: one, key: b"k", value: b"v" }),
        (b"\x05\x00\x01k\x01v", Operation::Put { cf: zero, key: b"k", value: b"v" }),
        (b"\x06\xac\x02\x01k\x01v", Operation::Merge { cf: one, key: b"k", operand: b"v" }),
        (b"\x07\x01k", Operation::SingleDelete { cf: zero, key: b"k" }),
        (b"\x08\xac\x02\x01k", Operation::SingleDelete { cf: one, key: b"k" }),
        (b"\x09", Operation::BeginPrepare(WriteCommitted)),
        (b"\x0a\x01x", Operation::EndPrepare { xid: b"x" }),
        (b"\x0b\x01x", Operation::Commit { xid: b"x" }),
        (b"\x0c\x01x", Operation::Rollback { xid: b"x" }),
        (b"\x0d", Operation::Noop),
        (b"\x0e\xac\x02\x01a\x01b", Operation::DeleteRange { cf: one, begin: b"a", end: b"b" }),
        (b"\x0f\x01a\x01b", Operation::DeleteRange { cf: zero, begin: b"a", end: b"b" }),
        (b"\x10\xac\x02\x01k\x01i", Operation::BlobIndex { cf: one, key: b"k", index: b"i" }),
        (b"\x11\x01k\x01i", Operation::BlobIndex { cf: zero, key: b"k", index: b"i" }),
        (b"\x12", Operation::BeginPrepare(WritePrepared)),
        (b"\x13", Operation::BeginPrepare(WriteUnprepared)),
        (b"\x15\x01t\x01x", Operation::CommitWithTimestamp { timestamp: b"t", xid: b"x" }),
        (b"\x16\x01k\x01e", Operation::PutEntity { cf: zero, key: b"k", entity: b"e" }),
        (b"\x17\xac\x02\x01k\x01e", Operation::PutEntity { cf: one, key: b"k", entity: b"e" }),
        (
            b"\x18\x01k\x09v\x07\0\0\0\0\0\0\0",
            Operation::TimedPut { cf: zero, key: b"k", timed: timed(b"v\x07\0\0\0\0\0\0\0") },
        ),
        (
            b"\x19\xac\x02\x01k\x08\x07\0\0\0\0\0\0\0",
            Operation::TimedPut { cf: one, key: b"k", timed: timed(b"\x07\0\0\0\0\0\0\0") },
        ),
    ];
    for (body, expected) in cases {
        let bytes = with_body(u32::from(expected.is_counted()), body);
        assert_eq!(operations(&bytes).unwrap(), [*expected]);
        for cut in 1..body.len() {
            let error = operations(&with_body(1, &body[..cut])).unwrap_err();
            assert!(error.is_corruption() && error.message().contains("cut off"), "{error}");
        }
    }
    let known = |tag| cases.iter().any(|(body, _)| body[0] == tag);
    for tag in (0..=255u8).filter(|tag| !known(*tag)) {
        let error = operations(&with_body(0, &[tag, 1, b'k', 1, b'v'])).unwrap_err();
        assert_eq!(
            error.message(),
            format!("unknown WriteBatch tag: {tag} at byte 0 of the write batch's body")
        );
    }
}

#[test]
fn a_bad_batch_is_refused() {
    for (bytes, why) in [
        (b"\x01\0\0".to_vec(), "log record too small: 3 bytes"),
        (with_body(2, b"\x01\x01k\x01v"), "wrong count: 1 operation, the header says 2"),
        (with_body(0, b"\x01\x01k\x01v"), "wrong count: 1 operation or more, the header says 0"),
        (
            with_body(1, b"\x00\x01k\x00\x01l\xff"),
            "wrong count: 2 operations or more, the header says 1",
        ),
        (with_body(1, b"\x18\x01k\x07v\0\0\0\0\0\0"), "tag 24 is cut off"),
        (encode_header(1 << 56, 0).to_vec(), "too large"),
        ([&encode_header(u64::MAX, 1)[..], b"\x00\0"].concat(), "too large"),
    ] {
        let error = WriteBatch::from_bytes(bytes).unwrap_err();
        assert!(error.is_corruption() && error.message().contains(why), "{error}");
    }
}

#[test]
fn cut_or_flipped_bytes_never_panic() {
    for length in 0..GOLDEN.len() {
        assert!(WriteBatch::from_bytes(GOLDEN[..length].to_vec()).is_err(), "{length}");
    }
    for (at, bit) in (0..GOLDEN.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 1 << bit;
        let _ = WriteBatch::from_bytes(bytes);
    }
}

#[test]
fn save_points_nest() {
    let mut batch = WriteBatch::new();
    assert!(batch.rollback_to_save_point().unwrap_err().is_not_found());
    batch.put(b"a", b"1").unwrap();
    batch.set_save_point();
    batch.put(b"b", b"2").unwrap();
    batch.set_save_point();
    batch.put_log_data(b"c").unwrap();
    batch.pop_save_point().unwrap();
    assert_eq!(batch.count(), 2);
    batch.rollback_to_save_point().unwrap();
    assert_eq!((batch.count(), batch.body()), (1, &b"\x01\x01a\x011"[..]));
    assert!(batch.pop_save_point().unwrap_err().is_not_found());
    batch.clear();
    assert!(batch.is_empty() && batch.count() == 0 && batch.byte_size() == HEADER_SIZE);
}

/// Went wrong: a cleared batch kept its save points. Rolling back gave the next batch a count of
/// operations that it did not hold.
#[test]
fn a_cleared_batch_has_no_save_points() {
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    batch.put(b"b", b"2").unwrap();
    batch.set_save_point();
    batch.clear();
    batch.put(b"c", b"3").unwrap();
    assert!(batch.rollback_to_save_point().unwrap_err().is_not_found());
    WriteBatch::from_bytes(batch.into_bytes()).unwrap();
}

#[test]
fn appending_adds_operations_and_counts() {
    let mut batch = golden_batch();
    let other = golden_batch();
    batch.append(&other).unwrap();
    assert_eq!(batch.count(), 18);
    assert_eq!(batch.body(), [other.body(), other.body()].concat());
    WriteBatch::from_bytes(batch.into_bytes()).unwrap();
}

#[test]
fn empty_keys_and_values_are_legal() {
    let mut batch = WriteBatch::new();
    batch.put(b"", b"").unwrap();
    batch.delete(b"").unwrap();
    let operations: Vec<_> = batch.iter().map(Result::unwrap).collect();
    let cf = ColumnFamilyId::DEFAULT;
    assert_eq!(
        operations,
        [Operation::Put { cf, key: b"", value: b"" }, Operation::Delete { cf, key: b"" }]
    );
}

/// The number of a family, a key, and how many bytes the value has.
fn put() -> impl proptest::strategy::Strategy<Value = (u32, Vec<u8>, usize)> {
    (0u32..3, proptest::collection::vec(0u8.., 0..300), 0usize..20_000)
}

proptest::proptest! {
    #[test]
    fn what_is_put_in_comes_out(
        puts in proptest::collection::vec(put(), 0..20)
    ) {
        let mut batch = WriteBatch::new();
        let values: Vec<_> = puts.iter().map(|(_, _, size)| vec![b'v'; *size]).collect();
        for ((cf, key, _), value) in puts.iter().zip(&values) {
            batch.put_cf(ColumnFamilyId(*cf), key, value).unwrap();
        }
        let read = WriteBatch::from_bytes(batch.data().to_vec()).unwrap();
        let operations: Vec<_> = read.iter().map(Result::unwrap).collect();
        let expected: Vec<_> = puts.iter().zip(&values)
            .map(|((cf, key, _), value)| Operation::Put { cf: ColumnFamilyId(*cf), key, value })
            .collect();
        proptest::prop_assert_eq!(operations, expected);
    }
}

#[test]
fn a_batch_that_is_full_refuses_more_and_keeps_what_it_has() {
    let full = golden_batch();
    let mut batch = full.clone();
    batch.protect();
    batch.set_max_bytes(full.byte_size());
    type Add = fn(&mut WriteBatch) -> Result<()>;
    let additions: [Add; 8] = [
        |batch| batch.put(b"", b""),
        |batch| batch.delete(b""),
        |batch| batch.single_delete_cf(CF1, b""),
        |batch| batch.merge(b"", b""),
        |batch| batch.delete_range(b"", b"x"),
        |batch| batch.put_log_data(b""),
        |batch| batch.put_entity(b"", [("", "")]),
        |batch| batch.append(&golden_batch()),
    ];
    for add in additions {
        let error = add(&mut batch).unwrap_err();
        assert_eq!((error.code(), error.subcode()), (Code::Aborted, SubCode::MemoryLimit));
        assert_eq!((batch.count(), batch.data()), (full.count(), full.data()));
    }
    batch.set_max_bytes(full.byte_size() + 3);
    batch.put(b"", b"").unwrap();
    assert_eq!(batch.count(), full.count() + 1);
    batch.clear();
    assert!(batch.put(b"a", [0; 200]).is_err(), "the limit stays");
    batch.put(b"a", b"1").unwrap();
}
