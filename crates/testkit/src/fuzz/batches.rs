//! Write batches as bytes.

use flagstone::base::entity;
use flagstone::batch::{BatchView, HEADER_SIZE, Operation, WriteBatch};
use flagstone::blob::BlobIndex;

use super::input::ok;

/// Reads a batch; its operations are written again where that is possible.
pub fn batch(data: &[u8]) {
    read_batch(data);
    let Some(mut taken) = ok(WriteBatch::from_bytes(data.to_vec())) else { return };
    assert_eq!(taken.data(), data);
    let rebuilt = rebuild(&taken);
    // Timed puts of RocksDB are read; no call writes them.
    let plain = |operation: &Operation<'_>| {
        operation.is_counted() && !matches!(operation, Operation::TimedPut { .. })
    };
    let both = [&taken, &rebuilt].map(|batch| {
        let operations = batch.iter().map(|operation| operation.expect("a valid batch"));
        format!("{:?}", operations.filter(plain).collect::<Vec<_>>())
    });
    assert_eq!(both[0], both[1]);
    taken.set_save_point();
    ok(taken.append(&rebuilt));
    ok(taken.rollback_to_save_point());
    assert_eq!(taken.data(), data);
}

/// Goes through every operation, whatever they are.
pub fn read_batch(data: &[u8]) {
    let Some(view) = ok(BatchView::parse(data)) else { return };
    view.next_sequence();
    let mut operations = view.iter();
    let mut before = 0;
    while let Some(operation) = operations.next() {
        let Some(operation) = ok(operation) else { break };
        assert!(operations.offset() > before, "every operation takes bytes");
        before = operations.offset();
        match operation {
            Operation::BlobIndex { index, .. } => drop(ok(BlobIndex::decode(index))),
            Operation::PutEntity { entity, .. } => drop(ok(entity::default_column(entity))),
            _ => {}
        }
    }
    assert!(operations.offset() <= data.len() - HEADER_SIZE);
    ok(view.validate());
}

fn rebuild(batch: &WriteBatch) -> WriteBatch {
    let mut rebuilt = WriteBatch::new();
    for operation in batch.iter() {
        let added = match operation.expect("a valid batch") {
            Operation::Put { cf, key, value } => rebuilt.put_cf(cf, key, value),
            Operation::Delete { cf, key } => rebuilt.delete_cf(cf, key),
            Operation::SingleDelete { cf, key } => rebuilt.single_delete_cf(cf, key),
            Operation::Merge { cf, key, operand } => rebuilt.merge_cf(cf, key, operand),
            Operation::DeleteRange { cf, begin, end } => rebuilt.delete_range_cf(cf, begin, end),
            Operation::BlobIndex { cf, key, index } => rebuilt.put_blob_index(cf, key, index),
            Operation::PutEntity { cf, key, entity } => rebuilt.put_encoded_entity(cf, key, entity),
            Operation::LogData(bytes) => rebuilt.put_log_data(bytes),
            _ => Ok(()),
        };
        added.expect("no longer than it was");
    }
    rebuilt
}
