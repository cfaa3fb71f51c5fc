use super::*;

#[test]
fn what_is_put_is_on_the_disk_and_can_be_read_in_both_ways() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let engine = open(directory.path(), &Tuning::default()).unwrap();
    let value = vec![7; 1 << 20];
    (0..40).for_each(|_| engine.put(b"key", &value, Durability::Process).unwrap());
    engine.close().unwrap();
    let lengths =
        fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    let mut lengths: Vec<u64> = lengths.collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [8 << 20, 16 << 20, 16 << 20]);
    for reads_directly in ["false", "true"] {
        let options = vec![("use_direct_reads".to_string(), reads_directly.to_string())];
        let engine = open(directory.path(), &Tuning { options, ..Tuning::default() }).unwrap();
        // In a thread of its own, as each keeps its files.
        let seen = std::thread::scope(|scope| {
            let read = || {
                let mut seen = 0;
                for key in 0..100u32 {
                    let mut visit =
                        |bytes: &[u8]| seen += bytes.iter().filter(|byte| **byte == 7).count();
                    assert!(engine.get(&key.to_be_bytes(), &mut visit).unwrap());
                }
                seen
            };
            scope.spawn(read).join().unwrap()
        });
        assert_eq!(seen, 100 * BLOCK);
    }
}

#[test]
fn writers_wait_where_too_much_is_not_synced() {
    let unsynced = Unsynced::default();
    unsynced.change(|bytes| *bytes += 10);
    unsynced.wait_until_at_most(10);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| unsynced.wait_until_at_most(5));
        unsynced.change(|bytes| *bytes -= 5);
        waiting.join().unwrap();
    });
}
