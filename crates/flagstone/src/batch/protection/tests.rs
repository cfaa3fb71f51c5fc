use super::*;
use crate::base::ColumnFamilyId;
use crate::batch::WriteBatch;

fn protected() -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put("early", "1").unwrap();
    batch.protect();
    batch.put_cf(ColumnFamilyId(7), "key", "value").unwrap();
    batch.delete_range("a", "b").unwrap();
    batch.put_log_data("note").unwrap();
    batch
}

#[test]
fn operations_are_covered_from_their_addition_on() {
    let mut batch = protected();
    batch.verify_checksum().unwrap();
    batch.set_sequence(77);
    batch.set_save_point();
    batch.merge("more", "1").unwrap();
    batch.verify_checksum().unwrap();
    batch.rollback_to_save_point().unwrap();
    batch.append(&protected()).unwrap();
    batch.verify_checksum().unwrap();
    batch.clear();
    batch.verify_checksum().unwrap();
    batch.put("a", "1").unwrap();
    batch.verify_checksum().unwrap();
    assert_eq!(batch, WriteBatch::from_bytes(batch.data().to_vec()).unwrap());
}

#[test]
fn each_bit_of_each_operation_is_covered() {
    let batch = protected();
    let mut protection = BatchProtection::default();
    protection.extend(batch.body());
    for bit in 0..batch.body().len() * 8 {
        let mut body = batch.body().to_vec();
        body[bit / 8] ^= 1 << (bit % 8);
        assert!(protection.verify(&body).unwrap_err().is_corruption(), "bit {bit}");
    }
    protection.verify(&batch.body()[..batch.body().len() - 1]).unwrap_err();
    protection.verify(&[batch.body(), b"x"].concat()).unwrap_err();
}

#[test]
fn operations_that_get_timestamps_stay_covered() {
    let mut batch = protected();
    batch.set_timestamps([7; 8], |cf| if cf == ColumnFamilyId(7) { 8 } else { 0 }).unwrap();
    assert!(batch.is_protected());
    batch.verify_checksum().unwrap();
    batch.put("later", "1").unwrap();
    batch.verify_checksum().unwrap();
}
