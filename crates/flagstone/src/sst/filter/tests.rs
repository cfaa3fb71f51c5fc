use std::path::Path;

use super::*;
use crate::base::checksum::{ChecksumType, block_checksum};
use crate::base::coding::Decoder;
use crate::base::compression::{CompressionType, DecompressionDictionary, decompress};
use crate::base::hash::hash64;
use crate::env::{Env, read_file};

const BLOOM: FilterPolicy = FilterPolicy::DEFAULT;
const RIBBON: FilterPolicy =
    FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: 10.0, bloom_before_level: 0 };
const COMPACTION: WrittenBy = WrittenBy::Compaction { level: 3 };

fn key(i: u32) -> Vec<u8> {
    format!("key{i:09}").into_bytes()
}

fn build(policy: FilterPolicy, format_version: u32, count: u32) -> Vec<u8> {
    let mut builder = policy.builder(format_version, COMPACTION).unwrap();
    for i in 0..count {
        builder.add(&key(i));
    }
    assert_eq!(builder.len(), count as usize);
    let estimate = builder.estimated_size();
    let filter = builder.finish();
    assert!(builder.is_empty());
    assert!(
        filter.len().abs_diff(estimate) <= 64 + estimate / 20,
        "{} instead of {estimate}",
        filter.len()
    );
    filter
}

/// The part of 20,000 keys that are not in the filter but pass it.
fn false_positives(filter: &Filter) -> f64 {
    let passed =
        (0..20_000).filter(|i| filter.may_contain(FilterKey::new(&key(1_000_000_000 + i)))).count();
    passed as f64 / 20_000.0
}

#[test]
fn every_kind_passes_its_keys_and_few_others() {
    for (policy, format_version, most) in
        [(BLOOM, 5, 0.0125), (BLOOM, 4, 0.016), (RIBBON, 5, 0.0125)]
    {
        for count in [1, 2, 100, 255, 256, 257, 1000, 4096, 20_000] {
            let bytes = build(policy, format_version, count);
            let filter = Filter::new(bytes);
            for i in 0..count {
                assert!(
                    filter.may_contain(FilterKey::new(&key(i))),
                    "{policy:?} {format_version} {count}"
                );
            }
            let rate = false_positives(&filter);
            assert!(rate < most, "{policy:?} {format_version} {count}: {rate}");
        }
    }
}

#[test]
fn ribbon_is_smaller_than_bloom() {
    let (bloom, ribbon) = (build(BLOOM, 5, 20_000), build(RIBBON, 5, 20_000));
    assert_eq!((bloom.len(), ribbon[ribbon.len() - 5]), (25_024 + 5, super::RIBBON));
    assert!(ribbon.len() < bloom.len() * 3 / 4, "{} bytes", ribbon.len());
}

#[test]
fn ribbon_starts_at_its_level() {
    let mixed = FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: 10.0, bloom_before_level: 3 };
    for (policy, written_by, kind) in [
        (RIBBON, WrittenBy::Flush, NEW_BLOOM),
        (RIBBON, WrittenBy::Compaction { level: 0 }, super::RIBBON),
        (mixed, WrittenBy::Compaction { level: 2 }, NEW_BLOOM),
        (mixed, WrittenBy::Compaction { level: 3 }, super::RIBBON),
        (mixed, WrittenBy::Other, super::RIBBON),
    ] {
        let mut builder = policy.builder(5, written_by).unwrap();
        (0..1000).for_each(|i| builder.add(&key(i)));
        let filter = builder.finish();
        assert_eq!(filter[filter.len() - METADATA_SIZE], kind, "{policy:?} {written_by:?}");
    }
}

#[test]
fn golden_filter_of_four_keys() {
    // sst.md 13: 10 bits for a1, a2, b, c still make one line, so that 24 probes are best.
    let mut builder = BLOOM.builder(5, WrittenBy::Other).unwrap();
    for key in ["a1", "a2", "b", "c"] {
        builder.add(key.as_bytes());
    }
    let filter = builder.finish();
    assert_eq!((filter.len(), &filter[64..]), (0x45, &[0xff, 0x00, 0x18, 0x00, 0x00][..]));
}

#[test]
fn golden_legacy_filter_of_rocksdb() {
    // Written by db_bench 7.8.3 with --format_version=4 --bloom_bits=10: a hundred numbers, each
    // padded to 16 bytes.
    let hex = "d04c4441216e044037623c420288e36830040c565445cdf2751520a184f0c6243cc4135266139852281902059694a011\
        1430311da88204f01104cf48848144149040221d01160014610060022e4022888240041023240402800c11ab00900c21\
        10cb80860403281108603660320209e0a14112002480878b328822c0d010032c62051d30af0d1ce501d0022219358822\
        4d94920192494b5a19042217c3a01142b0614a98c930ec678c2719e5198dd012b09a03701519e58769003e76250409ca\
        0603000000";
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let golden: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let numbered = |n: u64| [&n.to_be_bytes()[..], b"00000000"].concat();
    let filter = Filter::new(&golden);
    let passes = |n: &u64| filter.may_contain(FilterKey::new(&numbered(*n)));
    assert_eq!((0..100).filter(passes).count(), 100);
    let wrong = (100..10_100).filter(passes).count();
    assert!((5..100).contains(&wrong), "{wrong} of 10000 at 15 bits a key");
    let mut builder = BLOOM.builder(4, WrittenBy::Other).unwrap();
    (0..100).for_each(|n| builder.add(&numbered(n)));
    assert_eq!(builder.finish(), golden);
}

#[test]
fn a_filter_of_no_keys_holds_nothing() {
    let mut builder = BLOOM.builder(5, WrittenBy::Flush).unwrap();
    assert_eq!((builder.estimated_size(), builder.finish()), (0, Vec::new()));
    assert!(!Filter::new(Vec::new()).may_contain(FilterKey::new(b"x")));
    assert!(!Filter::new(vec![0xff, 0, 6, 0, 0]).may_contain(FilterKey::new(b"x")));
}

#[test]
fn keys_and_prefixes_may_alternate() {
    let mut builder = BLOOM.builder(5, WrittenBy::Flush).unwrap();
    for i in 0..10 {
        for _version in 0..3 {
            builder.add(b"key");
            builder.add(&key(i));
        }
    }
    assert_eq!(builder.len(), 11);
    builder.finish();
    builder.add(&key(9));
    assert_eq!(builder.len(), 1, "a new partition knows nothing of the old one");
}

#[test]
fn partitions_are_cut_where_the_size_says() {
    for (policy, format_version) in [(BLOOM, 5), (BLOOM, 4), (RIBBON, 5)] {
        let builder = policy.builder(format_version, COMPACTION).unwrap();
        let count = builder.keys_that_fit(4096);
        let size = build(policy, format_version, count as u32).len();
        assert!((3500..=4200).contains(&size), "{policy:?}: {count} keys in {size} bytes");
        assert_eq!(builder.keys_that_fit(0), 1);
    }
}

#[test]
fn unknown_filters_answer_true() {
    let line = |metadata: [u8; 5]| Filter::new([vec![0; 64], metadata.to_vec()].concat());
    for metadata in [
        [0, 0, 0, 0, 0],
        [0xff, 1, 6, 0, 0],
        [0xff, 0, 6, 1, 0],
        [0xff, 0, 0x26, 0, 0],
        [0xfd, 0, 6, 0, 0],
        [0xfe, 0, 1, 0, 0],
        [6, 2, 0, 0, 0],
        [6, 0, 0, 0, 0],
    ] {
        assert!(line(metadata).may_contain(FilterKey::new(b"x")), "{metadata:x?}");
    }
    assert!(!line([0xff, 0, 6, 0, 0]).may_contain(FilterKey::new(b"x")));
    assert!(!line([6, 1, 0, 0, 0]).may_contain(FilterKey::new(b"x")));
}

#[test]
fn damaged_filters_do_not_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for (policy, format_version) in [(BLOOM, 5), (BLOOM, 4), (RIBBON, 5)] {
        let good = build(policy, format_version, 300);
        let ask = |bytes: &[u8]| {
            (0..50).for_each(|i| _ = Filter::new(bytes).may_contain(FilterKey::new(&key(i))))
        };
        (0..good.len()).for_each(|size| ask(&good[..size]));
        for _ in 0..3000 {
            let mut bad = good.clone();
            let i = good.len() - 1 - random.usize(..METADATA_SIZE);
            bad[i] = random.u8(..);
            bad.drain(..random.usize(..good.len() - METADATA_SIZE));
            ask(&bad);
        }
    }
}

#[test]
fn too_few_bits_make_no_filter() {
    for bits in [0.0, 0.49, -1.0, f64::NAN] {
        assert!(FilterPolicy::Bloom { bits_per_key: bits }.builder(5, COMPACTION).is_none());
    }
}

// What follows reads tables that RocksDB wrote with the least code that does, independent of the
// real reader.

struct Fixture {
    bytes: Vec<u8>,
    checksum: ChecksumType,
    metaindex: (usize, usize),
    index: (usize, usize),
}

fn fixtures(name: &str) -> Vec<Fixture> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8").join(name);
    let fs = Env::os().fs;
    let mut found = Vec::new();
    for name in fs.list(&directory).unwrap() {
        if !name.ends_with(".sst") {
            continue;
        }
        let bytes = read_file(&*fs, &directory.join(name), 1 << 24).unwrap();
        let mut footer = Decoder::new(&bytes[bytes.len() - 53..]);
        let checksum = ChecksumType::from_byte(footer.u8().unwrap()).unwrap();
        let (metaindex, index) = (handle(&mut footer), handle(&mut footer));
        found.push(Fixture { bytes, checksum, metaindex, index });
    }
    assert!(!found.is_empty());
    found
}

fn handle(decoder: &mut Decoder<'_>) -> (usize, usize) {
    (decoder.varint64().unwrap() as usize, decoder.varint64().unwrap() as usize)
}

impl Fixture {
    fn block(
        &self,
        (offset, size): (usize, usize),
        dictionary: Option<&DecompressionDictionary>,
    ) -> Vec<u8> {
        let (stored, trailer) = self.bytes[offset..offset + size + 5].split_at(size);
        let checksum = block_checksum(self.checksum, stored, trailer[0]);
        assert_eq!(checksum.to_le_bytes(), trailer[1..]);
        decompress(CompressionType::from_byte(trailer[0]).unwrap(), stored, dictionary, 1 << 20)
            .unwrap()
    }

    fn meta_block(&self, name: &str) -> Option<Vec<u8>> {
        let entries = entries(&self.block(self.metaindex, None));
        let (_, value) = entries.into_iter().find(|(key, _)| key.starts_with(name.as_bytes()))?;
        Some(self.block(handle(&mut Decoder::new(&value)), None))
    }

    /// The user keys of all data blocks.
    fn user_keys(&self) -> Vec<Vec<u8>> {
        let dictionary =
            self.meta_block("rocksdb.compression_dict").map(DecompressionDictionary::new);
        let index = self.block(self.index, None);
        let restarts = Decoder::new(&index[index.len() - 4..]).fixed32().unwrap() as usize;
        let mut decoder = Decoder::new(&index[..index.len() - 4 * (restarts + 1)]);
        let mut keys = Vec::new();
        while !decoder.is_empty() {
            assert_eq!(decoder.varint32(), Some(0), "restart interval 1");
            let size = decoder.varint32().unwrap();
            decoder.bytes(size as usize).unwrap();
            let block = self.block(handle(&mut decoder), dictionary.as_ref());
            keys.extend(entries(&block).into_iter().map(|(key, _)| key[..key.len() - 8].to_vec()));
        }
        keys
    }
}

fn entries(block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let restarts = Decoder::new(&block[block.len() - 4..]).fixed32().unwrap() as usize;
    let mut decoder = Decoder::new(&block[..block.len() - 4 * (restarts + 1)]);
    let (mut key, mut found) = (Vec::new(), Vec::new());
    while !decoder.is_empty() {
        let [shared, own, value] = [(); 3].map(|()| decoder.varint32().unwrap() as usize);
        key.truncate(shared);
        key.extend_from_slice(decoder.bytes(own).unwrap());
        found.push((key.clone(), decoder.bytes(value).unwrap().to_vec()));
    }
    found
}

#[test]
fn filters_of_rocksdb_pass_all_their_keys() {
    for (name, kind, prefix) in [
        ("bloom", NEW_BLOOM, None),
        ("ribbon", super::RIBBON, None),
        ("bloom-prefix", NEW_BLOOM, Some(9)),
    ] {
        let (mut asked, mut wrong) = (0, 0.0);
        let tables = fixtures(name);
        for table in &tables {
            let filter = Filter::new(table.meta_block("fullfilter.").unwrap());
            assert_eq!(filter.bytes()[filter.bytes().len() - METADATA_SIZE], kind);
            for key in table.user_keys() {
                assert!(filter.may_contain(FilterKey::new(&key[..prefix.unwrap_or(key.len())])));
                asked += 1;
            }
            wrong += false_positives(&filter);
        }
        assert!(
            asked > 100 && wrong / (tables.len() as f64) < 0.015,
            "{name}: {asked} asked, {wrong} wrong"
        );
    }
}

#[test]
fn our_bloom_bits_are_those_that_rocksdb_sets() {
    for table in fixtures("bloom") {
        let theirs = table.meta_block("fullfilter.").unwrap();
        let keys = table.user_keys();
        let mut builder = BLOOM.builder(5, COMPACTION).unwrap();
        keys.iter().for_each(|key| builder.add(key));
        assert_eq!(builder.finish().len(), theirs.len());
        // RocksDB 7.8 takes the probes for the bits asked for, we (and RocksDB with filters
        // optimised for memory) for the bits there are.
        let mut ours = vec![0; theirs.len() - METADATA_SIZE];
        let probes = u32::from(theirs[ours.len() + 2]);
        keys.iter().for_each(|key| bloom::add(&mut ours, probes, hash64(key)));
        assert_eq!(ours, theirs[..ours.len()]);
    }
}

#[test]
fn blocks_of_every_codec_and_checksum_are_read() {
    for (name, expected) in [
        ("comp-none", None),
        ("comp-snappy", Some("Snappy")),
        ("comp-zlib", Some("Zlib")),
        ("comp-bzip2", Some("BZip2")),
        ("comp-lz4", Some("LZ4")),
        ("comp-lz4hc", Some("LZ4HC")),
        ("comp-zstd", Some("ZSTD")),
        ("comp-zstddict", Some("ZSTD")),
        ("csum-none", None),
        ("csum-crc32c", None),
        ("csum-xxhash", None),
        ("csum-xxhash64", None),
        ("csum-xxh3", None),
    ] {
        for table in fixtures(name) {
            let properties = entries(&table.meta_block("rocksdb.properties").unwrap());
            let property =
                |name: &[u8]| &properties.iter().find(|(key, _)| key == name).unwrap().1[..];
            let deleted =
                Decoder::new(property(b"rocksdb.num.range-deletions")).varint64().unwrap();
            let count =
                Decoder::new(property(b"rocksdb.num.entries")).varint64().unwrap() - deleted;
            assert_eq!(table.user_keys().len() as u64, count, "{name}");
            if let Some(expected) = expected {
                assert_eq!(property(b"rocksdb.compression"), expected.as_bytes());
            }
        }
    }
}

/// A measurement, not a test: `cargo test --release -p flagstone --lib filter:: -- --ignored
/// --nocapture`.
#[test]
#[ignore = "measures; run it in release"]
fn how_long_filters_take() {
    const COUNT: u32 = 1_000_000;
    let clock = Env::os().clock;
    let keys: Vec<Vec<u8>> = (0..2 * COUNT).map(key).collect();
    for (policy, format_version) in [(BLOOM, 5), (BLOOM, 4), (RIBBON, 5)] {
        let ns = |start: u64| (clock.now_us() - start) as f64 * 1000.0 / f64::from(COUNT);
        let mut builder = policy.builder(format_version, COMPACTION).unwrap();
        let start = clock.now_us();
        keys[..COUNT as usize].iter().for_each(|key| builder.add(key));
        let (adding, start) = (ns(start), clock.now_us());
        let filter = Filter::new(builder.finish());
        let (finishing, start) = (ns(start), clock.now_us());
        let passed = keys[..COUNT as usize]
            .iter()
            .filter(|key| filter.may_contain(FilterKey::new(key)))
            .count();
        let (hit, start) = (ns(start), clock.now_us());
        let wrong = keys[COUNT as usize..]
            .iter()
            .filter(|key| filter.may_contain(FilterKey::new(key)))
            .count();
        assert_eq!(passed, COUNT as usize);
        eprintln!(
            "{policy:?} version {format_version}: {} bytes, add {adding:.1} ns, finish {finishing:.1} ns, query {hit:.1} ns \
             (present), {:.1} ns (absent), {wrong} wrong",
            filter.bytes().len(),
            ns(start)
        );
    }
}
