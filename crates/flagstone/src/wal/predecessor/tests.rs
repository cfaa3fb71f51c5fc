use super::*;
use crate::batch::WriteBatch;

const WAL: PredecessorWal = PredecessorWal { number: 7, size: 100, last_sequence: 5 };

fn batch(operations: impl FnOnce(&mut WriteBatch)) -> WriteBatch {
    let mut batch = WriteBatch::new();
    operations(&mut batch);
    batch
}

fn noted(batch: &WriteBatch, is_first: bool) -> Option<PredecessorWal> {
    let view = BatchView::parse(batch.data()).unwrap();
    Noted::in_batch(view, is_first).map(|noted| noted.wal)
}

#[test]
fn a_note_is_alone_in_the_first_batch() {
    let note = batch(|batch| batch.put_log_data(WAL.to_note()).unwrap());
    assert_eq!((noted(&note, true), noted(&note, false)), (Some(WAL), None));
    let others = [
        batch(|_| {}),
        batch(|batch| batch.put_log_data("of the application").unwrap()),
        batch(|batch| {
            batch.put_log_data(WAL.to_note()).unwrap();
            batch.put(b"key", b"value").unwrap();
        }),
        batch(|batch| {
            batch.put_log_data("of the application").unwrap();
            batch.put_log_data(WAL.to_note()).unwrap();
        }),
        batch(|batch| {
            batch.put_log_data(WAL.to_note()).unwrap();
            batch.put_log_data("of the application").unwrap();
        }),
    ];
    for other in &others {
        assert_eq!(noted(other, true), None, "{other:?}");
    }
}

#[test]
fn each_witness_knows_the_end_by_something_else() {
    let [own, of_rocksdb] =
        [Witness::Own, Witness::RocksDb].map(|witness| Noted { wal: WAL, witness });
    for (good_until, last_sequence, is_held) in [
        (100, 5, [true, true]),
        (99, 5, [false, true]),
        (100, 4, [true, false]),
        (0, 0, [false, false]),
    ] {
        let end = WalEnd { good_until, last_sequence };
        assert_eq!([own.is_held(end), of_rocksdb.is_held(end)], is_held, "{end:?}");
    }
}
