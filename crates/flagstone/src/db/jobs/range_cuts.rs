//! Where a job is cut whose range deletions are more than one table can hold: a table has them in one block, smaller than 4 GiB.
//!
//! 1. Tables of level 0 may overlap. A flush is cut between sequence numbers, as if a memtable had ended there: RocksDB 7.8 wants
//!    those of different tables of this level not to interleave.
//! 2. Tables of a deeper level must not overlap. A compaction is cut between keys, as for parts that run at the same time.
//!
//! A compaction within level 0 cannot be cut: what it writes takes the place of one table.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::base::{Comparator, MAX_SEQUENCE_NUMBER, RangeTombstone, SequenceNumber};
use crate::sst::range_deletion_bytes;

/// What a block has besides, at most.
const BLOCK_END: u64 = 16;

/// The ranges of sequence numbers, ascending and together all, of each of which the tombstones need at most `bytes_max`: as long
/// as those of a single number do not need more.
pub(super) fn sequence_cuts(
    tombstones: &[RangeTombstone],
    bytes_max: u64,
) -> Vec<RangeInclusive<SequenceNumber>> {
    let mut by_sequence: BTreeMap<SequenceNumber, u64> = BTreeMap::new();
    for tombstone in tombstones {
        *by_sequence.entry(tombstone.sequence).or_default() += range_deletion_bytes(tombstone);
    }
    let bytes_max = bytes_max.saturating_sub(BLOCK_END);
    let (mut ranges, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (sequence, more) in by_sequence {
        if bytes > 0 && bytes + more > bytes_max {
            ranges.push(begin..=sequence - 1);
            (begin, bytes) = (sequence, 0);
        }
        bytes += more;
    }
    ranges.push(begin..=MAX_SEQUENCE_NUMBER);
    ranges
}

/// Adds the keys to `cuts`, which ascend, between which tombstones, ascending by their starts, need at most `bytes_max`: as long
/// as those of the same start do not need more.
pub(super) fn add_key_cuts(
    user: &Comparator,
    tombstones: &[RangeTombstone],
    bytes_max: u64,
    cuts: &mut Vec<Vec<u8>>,
) {
    let bytes_max = bytes_max.saturating_sub(BLOCK_END);
    let mut bytes = 0;
    let mut fresh = Vec::new();
    for same_start in tombstones.chunk_by(|a, b| a.start == b.start) {
        let more = same_start.iter().map(range_deletion_bytes).sum::<u64>();
        if bytes > 0 && bytes + more > bytes_max {
            fresh.push(same_start[0].start.clone());
            bytes = 0;
        }
        bytes += more;
    }
    if !fresh.is_empty() {
        cuts.append(&mut fresh);
        cuts.sort_by(|a, b| user.compare(a, b));
        cuts.dedup_by(|a, b| user.compare(a, b).is_eq());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::sync::Ordering;
    use crate::db::Db;
    use crate::env::Env;
    use crate::iter::testing::parse_tombstones;
    use crate::options::{CompactRangeOptions, Options, ReadOptions};

    /// Each of these needs as much.
    fn of_each() -> u64 {
        range_deletion_bytes(&parse_tombstones("[a,c)@4")[0])
    }

    #[test]
    fn a_flush_is_cut_between_sequence_numbers() {
        let tombstones = parse_tombstones("[a,c)@9 [a,c)@4 [c,e)@5 [e,g)@4");
        let cut = |of: u64| sequence_cuts(&tombstones, of * of_each() + BLOCK_END);
        assert_eq!(cut(4), [0..=MAX_SEQUENCE_NUMBER]);
        assert_eq!(cut(3), [0..=8, 9..=MAX_SEQUENCE_NUMBER]);
        assert_eq!(cut(2), [0..=4, 5..=MAX_SEQUENCE_NUMBER]);
        // Those of one number stay together.
        assert_eq!(cut(1), [0..=4, 5..=8, 9..=MAX_SEQUENCE_NUMBER]);
        assert_eq!(sequence_cuts(&[], 0), [0..=MAX_SEQUENCE_NUMBER]);
    }

    #[test]
    fn a_compaction_is_cut_between_keys() {
        let tombstones = parse_tombstones("[a,c)@9 [a,c)@4 [c,e)@5 [e,g)@4");
        let cut = |of: u64, before: &[&str]| {
            let mut cuts = before.iter().map(|key| key.as_bytes().to_vec()).collect();
            add_key_cuts(&Comparator::Bytewise, &tombstones, of * of_each() + BLOCK_END, &mut cuts);
            cuts.iter().map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(cut(4, &["b"]), "b");
        assert_eq!(cut(3, &["b", "f"]), "b e f");
        assert_eq!(cut(2, &["c"]), "c");
        assert_eq!(cut(1, &[]), "c e");
    }

    type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

    fn key(number: usize) -> Vec<u8> {
        format!("key{:03}", number % 300).into_bytes()
    }

    fn seen(db: &Db, options: &ReadOptions) -> Contents {
        let mut iter = db.iter(options).unwrap();
        iter.seek_to_first();
        let mut contents = Contents::new();
        while iter.valid() {
            contents.insert(iter.key().to_vec(), iter.value().unwrap().to_vec());
            iter.next();
        }
        iter.status().unwrap();
        contents
    }

    /// A flush of more range deletions than one table can hold was refused, each time anew, and so was what a compaction brought
    /// together.
    #[test]
    fn range_deletions_that_are_too_many_for_a_table_go_into_several() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        options.set_all("disable_auto_compactions=true;level_compaction_dynamic_level_bytes=false").unwrap();
        let db = Db::open("/db", &options).unwrap();
        db.inner().range_deletion_bytes_max.store(4000, Ordering::Relaxed);
        let family = db.default_column_family();
        let tables = |level| db.live_files().iter().filter(|file| file.level == Some(level)).count();
        let mut contents = Contents::new();
        // Seen by a snapshot from below, so that all of the deletions must stay.
        for number in 0..300 {
            db.put(key(number), b"below").unwrap();
            contents.insert(key(number), b"below".to_vec());
        }
        db.flush_all().unwrap();
        let down =
            CompactRangeOptions { change_level: true, target_level: 6, ..CompactRangeOptions::default() };
        db.compact_range(family, None, None, &down).unwrap();
        let mut snapshots = vec![(db.snapshot(), contents.clone())];
        for round in 0..300usize {
            let (begin, other) = (round * 7 % 300, round * 11 % 300);
            let (from, to) = (key(begin), key((begin + 5).min(299)));
            db.delete_range(&from, &to).unwrap();
            contents.retain(|key, _| *key < from || *key >= to);
            db.put(key(other), format!("{round}")).unwrap();
            contents.insert(key(other), format!("{round}").into_bytes());
            if round % 50 == 0 {
                snapshots.push((db.snapshot(), contents.clone()));
            }
        }
        snapshots.push((db.snapshot(), contents.clone()));
        let check = |db: &Db| {
            for (snapshot, contents) in &snapshots {
                let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
                assert_eq!(seen(db, &options), *contents);
                let found = (0..300).filter_map(|n| {
                    let value = db.get_with(&options, db.default_column_family(), key(n)).unwrap();
                    value.map(|value| (key(n), value.to_vec()))
                });
                assert_eq!(found.collect::<Contents>(), *contents);
            }
        };
        db.flush_all().unwrap();
        assert!(tables(0) > 3, "{} tables", tables(0));
        check(&db);
        let reopened = Db::open_read_only("/db", &options).unwrap();
        assert_eq!(seen(&reopened, &ReadOptions::default()), contents);
        drop(reopened);

        db.compact_range(family, None, None, &CompactRangeOptions::default()).unwrap();
        check(&db);
        assert_eq!(tables(0), 0);
        assert!(tables(6) > 3, "{} tables", tables(6));
        db.close().unwrap();
        assert_eq!(seen(&Db::open("/db", &options).unwrap(), &ReadOptions::default()), contents);
    }
}
