use super::*;
use crate::base::Code;

fn factory(text: &str) -> Result<MemTableFactory> {
    let mut factory = MemTableFactory::default();
    factory.assign(text).map(|()| factory)
}

#[test]
fn memtables_as_rocksdb_and_people_write_them() {
    let hash = |bucket_count| MemTableFactory::PrefixHash { bucket_count };
    for (text, expected) in [
        ("SkipListFactory", MemTableFactory::BTree),
        ("{id=SkipListFactory;}", MemTableFactory::BTree),
        ("btree", MemTableFactory::BTree),
        ("skip_list", MemTableFactory::SkipList),
        ("skip_list:0", MemTableFactory::SkipList),
        ("{id=VectorRepFactory;count=0;}", MemTableFactory::Vector),
        ("vector:1024", MemTableFactory::Vector),
        ("prefix_hash", hash(1_000_000)),
        ("prefix_hash:7", hash(7)),
        (
            "{id=HashSkipListRepFactory;branching_factor=4;skiplist_height=4;bucket_count=1048576;}",
            hash(1 << 20),
        ),
        (
            "{id=HashLinkListRepFactory;log_when_flash=true;logging_threshold=4096;huge_page_size=0;\
             threshold=256;bucket_count=50;}",
            hash(50),
        ),
    ] {
        assert_eq!(factory(text).unwrap(), expected, "{text}");
        assert_eq!(factory(&expected.text()).unwrap(), expected, "{text}");
    }
}

#[test]
fn others_are_refused() {
    for (text, code) in [
        ("cuckoo", Code::NotSupported),
        ("", Code::NotSupported),
        ("{bucket_count=3;}", Code::NotSupported),
        ("skip_list:16", Code::NotSupported),
        ("btree:3", Code::InvalidArgument),
        ("prefix_hash:0", Code::InvalidArgument),
        ("prefix_hash:many", Code::InvalidArgument),
        ("{id=VectorRepFactory;bucket_count=3;}", Code::InvalidArgument),
        ("{id=VectorRepFactory;count", Code::InvalidArgument),
    ] {
        assert_eq!(factory(text).unwrap_err().code(), code, "{text}");
    }
}
