use super::super::comparator::UserComparator;
use super::super::key::InternalKeyBuf;
use super::*;

fn tombstone(start: &str, end: &str, sequence: SequenceNumber) -> RangeTombstone {
    RangeTombstone { start: start.into(), end: end.into(), sequence }
}

fn fragmented(tombstones: &[RangeTombstone]) -> Arc<FragmentedRangeTombstones> {
    Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, tombstones.to_vec()))
}

fn shown(tombstones: &FragmentedRangeTombstones) -> String {
    let show = |f: Fragment<'_>| {
        format!("[{}, {})@{:?}", f.start.escape_ascii(), f.end.escape_ascii(), f.sequences)
    };
    tombstones.fragments().map(show).collect::<Vec<_>>().join(" ")
}

#[test]
fn overlapping_tombstones_are_cut_where_they_begin_and_end() {
    let tombstones = fragmented(&[tombstone("b", "m", 3), tombstone("k", "p", 4)]);
    assert_eq!(shown(&tombstones), "[b, k)@[3] [k, m)@[4, 3] [m, p)@[4]");
    // What RocksDB flushes when no snapshot is held.
    let written = tombstones.for_writing(&[]);
    assert_eq!(written, [tombstone("b", "k", 3), tombstone("k", "m", 4), tombstone("m", "p", 4)]);
}

#[test]
fn empty_and_inverted_ranges_delete_nothing() {
    assert!(fragmented(&[tombstone("b", "b", 3), tombstone("c", "b", 4)]).is_empty());
}

#[test]
fn the_same_range_twice_is_one_fragment() {
    let tombstones = fragmented(&[
        tombstone("a", "c", 3),
        tombstone("a", "c", 9),
        tombstone("a", "c", 3),
        tombstone("c", "d", 1),
    ]);
    assert_eq!(shown(&tombstones), "[a, c)@[9, 3] [c, d)@[1]");
}

#[test]
fn a_snapshot_keeps_the_tombstone_that_it_sees() {
    let all: Vec<_> =
        [2, 4, 6, 8].into_iter().map(|sequence| tombstone("a", "b", sequence)).collect();
    let kept = |snapshots: &[SequenceNumber]| -> Vec<SequenceNumber> {
        fragmented(&all).for_writing(snapshots).iter().map(|t| t.sequence).collect()
    };
    assert_eq!(kept(&[]), [8]);
    assert_eq!(kept(&[8]), [8]);
    assert_eq!(kept(&[7]), [8, 6]);
    assert_eq!(kept(&[5, 6, 7]), [8, 6, 4]);
    assert_eq!(kept(&[1]), [8]);
    assert_eq!(kept(&[3]), [8, 2]);
    assert_eq!(kept(&[2, 100]), [8, 2]);
}

#[test]
fn a_file_that_ends_at_a_sentinel_leaves_the_next_key_alone() {
    let tombstones = fragmented(&[tombstone("a", "z", 9)]);
    let smallest = InternalKeyBuf::new(b"c", 5, ValueType::Value);
    let largest = InternalKeyBuf::new(b"p", MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
    let cut = tombstones.truncated(smallest.as_key(), largest.as_key());
    let covering = |user: &str, sequence| {
        cut.covering_sequence(
            InternalKeyBuf::new(user.as_bytes(), sequence, ValueType::Value).as_key(),
            100,
        )
    };
    assert_eq!(covering("b", 1), 0);
    assert_eq!(covering("c", 6), 0, "a newer version of the smallest key lies in the file before");
    assert_eq!(covering("c", 5), 9);
    assert_eq!(covering("c", 1), 9);
    assert_eq!(covering("o", 1), 9);
    assert_eq!(covering("p", 8), 0);
}

#[test]
fn a_user_key_that_straddles_two_files_is_covered_once_in_each() {
    let tombstones = fragmented(&[tombstone("a", "z", 9)]);
    let smallest = InternalKeyBuf::new(b"a", 9, ValueType::RangeDeletion);
    let largest = InternalKeyBuf::new(b"k", 5, ValueType::Value);
    let cut = tombstones.truncated(smallest.as_key(), largest.as_key());
    let covering = |sequence| {
        cut.covering_sequence(InternalKeyBuf::new(b"k", sequence, ValueType::Value).as_key(), 100)
    };
    assert_eq!((covering(6), covering(5), covering(4)), (9, 9, 0));
    let fragment = cut.covering(InternalKeyBuf::new(b"k", 5, ValueType::Value).as_key()).unwrap();
    assert_eq!((fragment.end.user_key, fragment.end.packed >> 8), (&b"k"[..], 4));
}

#[test]
fn fragments_outside_the_bounds_are_not_seen() {
    let tombstones =
        fragmented(&[tombstone("a", "c", 9), tombstone("e", "g", 8), tombstone("i", "k", 7)]);
    let smallest = InternalKeyBuf::new(b"d", 5, ValueType::Value);
    let largest = InternalKeyBuf::new(b"g", MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
    let cut = tombstones.truncated(smallest.as_key(), largest.as_key());
    assert_eq!(cut.fragments().map(|f| f.sequences[0]).collect::<Vec<_>>(), [8]);
    assert_eq!(tombstones.untruncated().fragments().count(), 3);
    let nothing = tombstones
        .truncated(smallest.as_key(), InternalKeyBuf::new(b"d", 1, ValueType::Value).as_key());
    assert_eq!(nothing.fragments().count(), 0);
}

/// The largest visible sequence number of all tombstones over a key, one by one.
fn naive(
    comparator: &Comparator,
    tombstones: &[RangeTombstone],
    key: &[u8],
    snapshot: SequenceNumber,
) -> SequenceNumber {
    let covers = |t: &&RangeTombstone| {
        t.sequence <= snapshot
            && comparator.compare(&t.start, key).is_le()
            && comparator.compare(key, &t.end).is_lt()
    };
    tombstones.iter().filter(covers).map(|t| t.sequence).max().unwrap_or(0)
}

fn random_tombstones(random: &mut fastrand::Rng) -> Vec<RangeTombstone> {
    let key = |random: &mut fastrand::Rng| vec![random.u8(..12); random.usize(..2)];
    (0..random.usize(..8))
        .map(|_| RangeTombstone {
            start: key(random),
            end: key(random),
            sequence: random.u64(1..20),
        })
        .collect()
}

#[test]
fn fragments_answer_like_the_tombstones_they_came_from() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..2000 {
        let comparator =
            if round % 2 == 0 { Comparator::Bytewise } else { Comparator::ReverseBytewise };
        let tombstones = random_tombstones(&mut random);
        let fragmented = FragmentedRangeTombstones::new(&comparator, tombstones.clone());
        let fragments: Vec<_> = fragmented.fragments().collect();
        assert!(fragments.iter().all(|f| comparator.compare(f.start, f.end).is_lt()));
        assert!(
            fragments.windows(2).all(|pair| comparator.compare(pair[0].end, pair[1].start).is_le())
        );
        assert!(
            fragments
                .iter()
                .all(|f| f.sequences.is_sorted_by(|a, b| a > b) && !f.sequences.is_empty())
        );
        let mut snapshots: Vec<_> = (0..random.usize(..4)).map(|_| random.u64(..22)).collect();
        snapshots.sort_unstable();
        let written = fragmented.for_writing(&snapshots);
        for byte in 0..13 {
            for key in [vec![], vec![byte], vec![byte, 0]] {
                for snapshot in 0..22 {
                    let expected = naive(&comparator, &tombstones, &key, snapshot);
                    assert_eq!(fragmented.covering_sequence(&key, snapshot), expected);
                }
                // What is written serves the held snapshots and the present.
                for &snapshot in snapshots.iter().chain([&100]) {
                    let expected = naive(&comparator, &tombstones, &key, snapshot);
                    assert_eq!(
                        naive(&comparator, &written, &key, snapshot),
                        expected,
                        "{snapshots:?}"
                    );
                }
            }
        }
    }
}

/// Keys that numbers of eight bytes tell apart, or not, or only with what follows them.
#[test]
fn long_keys_are_told_apart() {
    let mut random = fastrand::Rng::with_seed(2);
    for round in 0..300 {
        let bytes = |random: &mut fastrand::Rng, length: usize| -> Vec<u8> {
            (0..length)
                .map(|_| *random.choice(&[0, 1, b'a', 0xff]).expect("there are some"))
                .collect()
        };
        let common = bytes(&mut random, round % 4);
        let tail = bytes(&mut random, round % 3);
        let mut key = |of_all: bool| {
            let (number, length) = (bytes(&mut random, 3), random.usize(..12));
            let middle = [&[b'a'; 5][..], &number].concat();
            if of_all {
                [&common[..], &middle, &tail].concat()
            } else {
                [&common[..], &middle, &bytes(&mut random, 3)].concat()[..length].to_vec()
            }
        };
        let range = |n: u64, start: Vec<u8>, end: Vec<u8>| RangeTombstone {
            start,
            end,
            sequence: 1 + n % 20,
        };
        let is_one_shape = round % 5 > 0;
        let tombstones: Vec<_> =
            (0..60).map(|n| range(n, key(is_one_shape), key(is_one_shape))).collect();
        let fragmented = FragmentedRangeTombstones::new(&Comparator::Bytewise, tombstones.clone());
        let bounds = tombstones.iter().flat_map(|one| [one.start.clone(), one.end.clone()]);
        let asked: Vec<_> = bounds.chain((0..60).map(|n| key(n % 2 == 0))).collect();
        for key in asked.iter().flat_map(|key| {
            let shorter = key[..key.len().saturating_sub(1)].to_vec();
            [shorter, key.clone(), [&key[..], b"\0"].concat(), [b"b", &key[..]].concat()]
        }) {
            for snapshot in [5, 100] {
                let expected = naive(&Comparator::Bytewise, &tombstones, &key, snapshot);
                assert_eq!(fragmented.covering_sequence(&key, snapshot), expected, "{key:?}");
            }
        }
    }
}

/// An application's order: shorter keys first.
struct LengthFirst;

impl UserComparator for LengthFirst {
    fn name(&self) -> &str {
        "length first"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

/// Keys of up to 38 bytes with a common beginning and sometimes a common end: numbers that follow
/// one another, or a few far from many, or any bytes, or groups with some of their own.
fn long_keys(random: &mut fastrand::Rng) -> impl Fn(&mut fastrand::Rng) -> Vec<u8> + use<> {
    let bytes = |random: &mut fastrand::Rng, length| -> Vec<u8> {
        (0..length).map(|_| random.u8(..)).collect()
    };
    let (common, tail) = (random.usize(..12), random.usize(..10));
    let (common, tail) = (bytes(random, common), bytes(random, tail));
    let (shape, unit) = (random.u8(..6), random.u32(..40));
    let group_len = 8 + random.usize(..10);
    move |random| {
        let number = match shape {
            0 => random.u64(..8000) << unit,
            1 => {
                (if random.u8(..50) == 0 { random.u64(..1 << 20) } else { random.u64(..3000) })
                    << unit
            }
            2 => random.u64(..),
            3 => {
                let digits = format!("{:09}", random.u64(..3000 << (unit / 4)));
                return [&common[..], digits.as_bytes(), &tail].concat();
            }
            // Many share eight bytes and more, or fewer that end in zeros.
            4 => {
                let group = [random.u8(..20) / 7; 18];
                let length = random.usize(..9);
                let item = [
                    random.u8(..3) / 2,
                    random.u8(..),
                    0,
                    random.u8(..2),
                    0,
                    0,
                    random.u8(..),
                    0,
                    1,
                ];
                return [&common[..], &group[..group_len - random.usize(..2)], &item[..length]]
                    .concat();
            }
            _ => {
                let length = random.usize(..30 - common.len());
                return [&common[..], &bytes(random, length)].concat();
            }
        };
        [&common[..], &number.to_be_bytes(), &tail].concat()
    }
}

#[test]
fn thousands_of_ranges_answer_like_the_tombstones_they_came_from() {
    let own_order = Comparator::Custom(Arc::new(LengthFirst));
    let mut sure = [0; 2];
    for round in 0..60 {
        let random = &mut fastrand::Rng::with_seed(round);
        let key = long_keys(random);
        let comparator = match round % 6 {
            0 => Comparator::ReverseBytewise,
            1 => own_order.clone(),
            _ => Comparator::Bytewise,
        };
        let count = if round % 3 == 0 { 2500 } else { 50 };
        // Neighbours among the keys, so that some ranges touch and few are long.
        let mut keys: Vec<_> = (0..2 * count).map(|_| key(random)).collect();
        keys.sort_by(|a, b| comparator.compare(a, b));
        let tombstones: Vec<_> = (0..count)
            .map(|_| {
                let start = random.usize(..keys.len());
                let end = (start + random.usize(..3)).min(keys.len() - 1);
                let (start, mut end) = (keys[start].clone(), keys[end].clone());
                // Of some, one key and perhaps what begins with it.
                match (round % 4, start.last()) {
                    (1, _) => end = [&start[..], b"\0"].concat(),
                    (2, Some(&last)) if last < u8::MAX => {
                        end.clone_from(&start);
                        *end.last_mut().unwrap() += 1;
                    }
                    _ => {}
                }
                RangeTombstone { start, end, sequence: random.u64(5..20) }
            })
            .collect();
        let fragmented = FragmentedRangeTombstones::new(&comparator, tombstones.clone());
        for _ in 0..300 {
            let mut asked =
                if random.bool() { random.choice(&keys).unwrap().clone() } else { key(random) };
            if random.u8(..4) == 0 {
                let bounds = random.choice(&tombstones).unwrap();
                asked.clone_from(if random.bool() { &bounds.start } else { &bounds.end });
            }
            match random.u8(..8) {
                0 => asked.truncate(random.usize(..=asked.len())),
                1 => asked.push(random.u8(..)),
                2 => asked = Vec::new(),
                3 if !asked.is_empty() => {
                    *random.choice(&mut asked).unwrap() ^= 1 << random.u8(..8)
                }
                _ => {}
            }
            let (snapshot, enough) = (random.u64(..30), random.u64(..22));
            let expected = naive(&comparator, &tombstones, &asked, snapshot);
            assert_eq!(fragmented.covering_sequence(&asked, snapshot), expected, "{asked:?}");
            let Some(within) = fragmented.seek(&asked) else {
                assert_eq!(naive(&comparator, &tombstones, &asked, 100), 0, "{asked:?}");
                continue;
            };
            if let Some(covers) = fragmented.covers(within, &asked, snapshot) {
                assert_eq!(covers, expected > 0, "{asked:?}");
                sure[usize::from(covers)] += 1;
            }
            let found = fragmented.covering_at(within, &asked, snapshot, enough);
            assert!(
                found == expected || enough < found && found <= expected,
                "{found}, not {expected}"
            );
        }
    }
    assert!(sure.iter().all(|&sure| sure > 20), "{sure:?}");
}

/// Of keys in text, of hashes with something behind them, and of keys that share eight bytes with
/// deleted ones, nothing told that they are not deleted but the tombstones' keys.
#[test]
fn of_keys_of_any_kind_bits_tell_most_that_are_not_deleted() {
    let hash = |n: u64| n.wrapping_mul(0xff51_afd7_ed55_8ccd);
    let joined =
        |words: &[u64]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let kinds: [&dyn Fn(u64) -> Vec<u8>; 10] = [
        &|n| format!("user{n:012}").into_bytes(),
        &|n| format!("{:016x}", hash(n)).into_bytes(),
        &|n| [&hash(n).to_be_bytes()[..], b"00000000"].concat(),
        &|n| [&n.to_be_bytes()[..], b"00000000"].concat(),
        &|n| format!("{}/{n:05}{}", n % 7, &"abcdef"[..n as usize % 6]).into_bytes(),
        // Of those that share something many are deleted, or one.
        &|n| joined(&[hash(n / 100), hash(n)]),
        &|n| joined(&[hash(n / 4), hash(n)]),
        &|n| joined(&[7, hash(n / 100), hash(n / 100), n]),
        &|n| [&hash(n / 12).to_be_bytes()[..], &[(n % 12) as u8]].concat(),
        &|n| format!("{:07}:{:03}", n / 100, n % 100).into_bytes(),
    ];
    for (kind, key) in kinds.iter().enumerate() {
        let last_byte_larger = |mut key: Vec<u8>| {
            *key.last_mut().unwrap() += 1;
            key
        };
        let with_zero = |key: Vec<u8>| [&key[..], b"\0"].concat();
        for end in [&last_byte_larger as &dyn Fn(_) -> _, &with_zero] {
            let tombstones = (0..3000)
                .map(|n| RangeTombstone {
                    start: key(4 * n),
                    end: end(key(4 * n)),
                    sequence: n + 1,
                })
                .collect();
            let fragmented = FragmentedRangeTombstones::new(&Comparator::Bytewise, tombstones);
            let others = || (0..12_000).filter(|n| n % 4 > 0).map(key);
            for n in 0..3000 {
                assert!(fragmented.covering_sequence(&key(4 * n), 5000) > 0, "{n}, {kind}");
            }
            if kind == 0 {
                let covers =
                    |key: &[u8]| fragmented.covers(fragmented.seek(key).unwrap(), key, 5000);
                assert!((0..3000).all(|n| covers(&key(4 * n)) == Some(true)));
            }
            let unsure = others().filter(|key| fragmented.seek(key).is_some()).count();
            assert!(unsure < 9000 / 10, "{unsure} of 9,000, {kind}");
        }
    }
}

#[test]
fn cut_tombstones_answer_like_whole_ones_within_their_bounds() {
    let mut random = fastrand::Rng::with_seed(2);
    let order = super::super::key::InternalKeyComparator::new(Comparator::Bytewise);
    for _ in 0..2000 {
        let tombstones = random_tombstones(&mut random);
        let fragmented = fragmented(&tombstones);
        let mut ends = [(); 2]
            .map(|()| InternalKeyBuf::new(&[random.u8(..12)], random.u64(1..20), ValueType::Value));
        ends.sort_by(|a, b| order.compare(a.as_key(), b.as_key()));
        let cut = fragmented.truncated(ends[0].as_key(), ends[1].as_key());
        for byte in 0..12 {
            for sequence in 1..20 {
                let key = InternalKeyBuf::new(&[byte], sequence, ValueType::Value);
                let inside = order.compare(ends[0].as_key(), key.as_key()).is_le()
                    && order.compare(key.as_key(), ends[1].as_key()).is_le();
                let expected =
                    if inside { naive(&Comparator::Bytewise, &tombstones, &[byte], 15) } else { 0 };
                assert_eq!(cut.covering_sequence(key.as_key(), 15), expected);
            }
        }
    }
}
