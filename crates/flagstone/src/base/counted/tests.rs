use super::{counted, form};

#[test]
fn a_noun_goes_by_its_number() {
    assert_eq!(counted(0u64, "table"), "0 tables");
    assert_eq!(counted(1usize, "entry"), "1 entry");
    assert_eq!(counted(2u64, "entry"), "2 entries");
    assert_eq!(counted(2u64, "key"), "2 keys");
    assert_eq!((form(1u64, "waits", "wait"), form(0u64, "waits", "wait")), ("waits", "wait"));
}
