use super::*;

#[test]
fn every_key_is_found_in_its_interval_or_nowhere_certain() {
    let keys: Vec<Vec<u8>> =
        (0..200u32).map(|n| format!("key{:04}\u{e9}", n * 7).into_bytes()).collect();
    let mut builder = HashIndexBuilder::new(0.75);
    for (n, key) in keys.iter().enumerate() {
        builder.add(key, n as u32 / 16);
    }
    let mut block = vec![7; 100];
    assert!(builder.finish(&mut block, 0));
    let index = HashIndex::parse(&block).unwrap();
    assert_eq!((index.start(), index.num_buckets), (100, 266 | 1));
    let mut certain = 0;
    for (n, key) in keys.iter().enumerate() {
        match index.lookup(&block, key) {
            Bucket::Restart(restart) => {
                assert_eq!(restart, n as u32 / 16);
                certain += 1;
            }
            bucket => assert_eq!(bucket, Bucket::Unknown),
        }
    }
    assert!(certain > 80, "{certain}");
}

#[test]
fn too_many_restarts_leave_no_index() {
    let mut builder = HashIndexBuilder::new(0.75);
    builder.add(b"a", 253);
    builder.add(b"b", 254);
    let mut block = Vec::new();
    assert!(!builder.finish(&mut block, 0));
    assert!(block.is_empty());
}

#[test]
fn an_index_larger_than_its_block_is_refused() {
    assert_eq!(HashIndex::parse(&[0, 0]), None);
    assert_eq!(HashIndex::parse(&[9, 2, 0]), None);
    assert_eq!(HashIndex::parse(&[1]), None);
}
