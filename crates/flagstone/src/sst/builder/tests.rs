use super::*;
use crate::base::Code;

/// Whoever opened a database with a WAL of another engine was told of a table that did not exist
/// yet, and of no key.
#[test]
fn an_entry_too_large_for_a_table_is_named() {
    for (key_size, shown) in
        [(3, "'kkk' and its value have 61 bytes".to_string()), (200, "k".repeat(100) + "...'")]
    {
        let key = InternalKeyBuf::new(&vec![b'k'; key_size], 1, ValueType::Value);
        let size = key.as_key().as_bytes().len() + 50;
        check_entry_size(key.as_key(), 50, size).unwrap();
        let error = check_entry_size(key.as_key(), 50, size - 1).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(&shown), "{error}");
    }
}
