use super::super::format::{BLOCK_SIZE, FULL, RECYCLABLE};
use super::super::test_support::{NUMBER, file_of, pad, physical};
use super::reached_until;

const BLOCK: u64 = BLOCK_SIZE as u64;

/// Blocks that begin with a record of this type and number.
fn blocks(count: usize, record_type: u8, number: u32) -> Vec<u8> {
    let mut log = Vec::new();
    for _ in 0..count {
        log.extend(physical(record_type, number, b"payload"));
        pad(&mut log);
    }
    log
}

/// Whatever is known to be reached already, the same place is found.
fn found(log: &[u8], reached: u64) -> Vec<u64> {
    let file = file_of(log);
    let from = [0, 1, BLOCK - 1, BLOCK, reached.saturating_sub(1), reached];
    let known = from.into_iter().filter(|from| *from <= reached);
    known.map(|from| reached_until(&*file, NUMBER, from).unwrap()).collect()
}

#[test]
fn space_that_is_reserved_was_not_reached() {
    for count in 0..9 {
        let mut log = blocks(count, FULL + RECYCLABLE, NUMBER.0 as u32);
        let end = log.len() as u64;
        log.resize(9 * BLOCK_SIZE, 0);
        assert!(found(&log, end).iter().all(|found| *found == end), "{count} blocks");
    }
}

#[test]
fn an_earlier_life_was_not_reached() {
    let mut log = blocks(3, FULL + RECYCLABLE, NUMBER.0 as u32);
    log.extend(blocks(4, FULL + RECYCLABLE, 5));
    assert!(found(&log, 3 * BLOCK).iter().all(|found| *found == 3 * BLOCK));
}

#[test]
fn a_log_that_is_appended_to_was_reached_to_its_end() {
    let mut log = blocks(2, FULL, 0);
    log.extend(physical(FULL, 0, b"payload"));
    let end = log.len() as u64;
    assert!(found(&log, end).iter().all(|found| *found == end));
    log.truncate(2 * BLOCK_SIZE + 3);
    let found = reached_until(&*file_of(&log), NUMBER, 0).unwrap();
    assert_eq!(found, 2 * BLOCK, "of a header only a part is there");
}
