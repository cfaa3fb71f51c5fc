use super::*;
use crate::base::coding::put_varint32;

#[test]
fn numbers_of_every_size_are_read() {
    let sizes = [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 21, u32::MAX];
    for shared in sizes {
        for non_shared in sizes {
            for value_length in sizes {
                let mut bytes = vec![7];
                put_varint32(&mut bytes, shared);
                put_varint32(&mut bytes, non_shared);
                put_varint32(&mut bytes, value_length);
                let suffix = bytes.len() as u32;
                let expected = Some(EntryHeader { shared, non_shared, value_length, suffix });
                assert_eq!(entry_header(&bytes, 1), expected);
                assert_eq!(entry_header(&bytes[..bytes.len() - 1], 1), None);
                bytes.extend_from_slice(b"rest");
                assert_eq!(entry_header(&bytes, 1), expected);
            }
        }
    }
}
