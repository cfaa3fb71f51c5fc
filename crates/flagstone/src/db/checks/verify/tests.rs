use super::*;
use crate::base::{Comparator, DataPaths, InternalKeyBuf, InternalKeyComparator, ValueType};

/// Each was a fault of its own: of a table by the stacked BlobDB there were millions.
#[test]
fn references_with_a_time_to_live_are_one_fault_of_their_table() {
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let version = Version::empty(order, DataPaths::single(Path::new("/db")), 7);
    let mut astray = Astray::default();
    for number in 0..1000 {
        let key =
            InternalKeyBuf::new(format!("key{number:03}").as_bytes(), 7, ValueType::BlobIndex);
        // A value that expires, and stands in the table.
        astray.note(&version, key.as_key(), b"\x00\x07value");
    }
    let faults: Vec<Fault> = astray.into_faults(Path::new("/db/000004.sst")).collect();
    let [fault] = &faults[..] else { panic!("{} faults", faults.len()) };
    let told = fault.error.to_string();
    assert!(
        told.contains("1000 references") && told.contains("TTL") && told.contains("000004"),
        "{told}"
    );
    assert_eq!(fault.key_range, Some((b"key000".to_vec(), b"key999".to_vec())));
}
