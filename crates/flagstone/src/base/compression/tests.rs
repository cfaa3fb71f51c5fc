use super::*;
use crate::base::SharedRoom;
use crate::base::coding::put_varint32;

const LIMIT: usize = 64 << 20;

/// Bytes that compress somewhat: words from a small vocabulary with noise between them.
fn text(size: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut out = Vec::with_capacity(size + 16);
    while out.len() < size {
        out.extend_from_slice(format!("word{:02} ", random.u8(..40)).as_bytes());
        if random.u8(..4) == 0 {
            out.push(random.u8(..));
        }
    }
    out.truncate(size);
    out
}

fn compressed(kind: CompressionType, raw: &[u8], dictionary: Option<&[u8]>) -> Vec<u8> {
    let mut compressor = Compressor::new(kind, &CompressionOptions::default(), dictionary).unwrap();
    let mut out = Vec::new();
    compressor.compress(raw, &mut out).unwrap();
    out
}

#[test]
fn every_type_is_known_by_its_byte() {
    for kind in CompressionType::ALL {
        assert_eq!(CompressionType::from_byte(kind.to_byte()), Some(kind));
    }
    assert_eq!(CompressionType::from_byte(0x40), Some(CompressionType::Zstd));
    assert_eq!((CompressionType::from_byte(6), CompressionType::from_byte(0x80)), (None, None));
}

#[test]
fn options_print_as_rocksdb_stores_them() {
    let options = CompressionOptions { max_dict_bytes: 4096, ..Default::default() };
    assert_eq!(
        options.to_string(),
        "window_bits=-14; level=32767; strategy=0; max_dict_bytes=4096; zstd_max_train_bytes=0; enabled=0; \
         max_dict_buffer_bytes=0; use_zstd_dict_trainer=1; max_compressed_bytes_per_kb=896; checksum=0; "
    );
}

#[test]
fn a_block_must_save_an_eighth_to_be_worthwhile() {
    let options = CompressionOptions::default();
    assert!(options.is_worthwhile(4096, 3584));
    assert!(!options.is_worthwhile(4096, 3585));
    assert!(
        CompressionOptions { max_compressed_bytes_per_kb: u32::MAX, ..options }.is_worthwhile(1, 5)
    );
}

/// Snappy was asked for a block of more than 3.4 GiB, and its refusal failed the flush, and each
/// opening after it.
#[test]
fn snappy_is_given_no_more_than_it_takes() {
    let most = CompressionType::Snappy.raw_size_max();
    assert!(snap::raw::max_compress_len(most) > 0);
    assert_eq!(snap::raw::max_compress_len(most + 1), 0);
}

#[test]
fn golden_lz4_value_of_a_blob_file() {
    assert_eq!(compressed(CompressionType::Lz4, b"abcd", None), b"\x04\x40abcd");
}

#[test]
fn every_codec_gives_back_what_it_took() {
    let mut decompressor = Decompressor::new();
    for kind in CompressionType::ALL {
        let mut compressor = Compressor::new(kind, &CompressionOptions::default(), None).unwrap();
        for size in [0, 1, 2, 7, 64, 100, 4095, 4096, 65_536, 70_000, 1 << 20] {
            for raw in
                [text(size, size as u64), vec![0; size], fastrand::Rng::with_seed(7).bytes(size)]
            {
                let mut out = b"before".to_vec();
                compressor.compress(&raw, &mut out).unwrap();
                assert_eq!(&out[..6], b"before");
                let back = decompressor.decompress(kind, &out[6..], None, size).unwrap();
                assert!(back == raw, "{kind}, {size} bytes");
            }
        }
    }
}

/// As many bytes as asked for.
trait Bytes {
    fn bytes(self, size: usize) -> Vec<u8>;
}

impl Bytes for fastrand::Rng {
    fn bytes(mut self, size: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.u8(..)).take(size).collect()
    }
}

#[test]
fn levels_and_windows_of_all_kinds_round_trip() {
    let raw = text(20_000, 3);
    for kind in CompressionType::ALL {
        for (level, window_bits) in
            [(-5, 15), (0, 0), (1, -9), (9, -14), (12, i32::MIN), (i32::MIN, 10)]
        {
            let options =
                CompressionOptions { level, window_bits, checksum: true, ..Default::default() };
            let Ok(mut compressor) = Compressor::new(kind, &options, None) else { continue };
            let mut out = Vec::new();
            compressor.compress(&raw, &mut out).unwrap();
            assert!(
                decompress(kind, &out, None, LIMIT).unwrap() == raw,
                "{kind} {level} {window_bits}"
            );
        }
    }
}

#[test]
fn a_dictionary_is_needed_to_read_what_it_helped_to_write() {
    let blocks: Vec<Vec<u8>> = (0..400).map(|seed| text(1000, seed)).collect();
    let samples: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    let trained = CompressionOptions {
        max_dict_bytes: 8 << 10,
        zstd_max_train_bytes: 200 << 10,
        ..Default::default()
    };
    let raw_content = CompressionOptions { zstd_max_train_bytes: 0, ..trained.clone() };
    for (kind, options) in [
        (CompressionType::Zstd, &trained),
        (CompressionType::Zstd, &raw_content),
        (CompressionType::Zlib, &raw_content),
        (CompressionType::Lz4, &raw_content),
        (CompressionType::Lz4hc, &raw_content),
    ] {
        let dictionary = build_dictionary(kind, options, &samples);
        assert!((1000..=8 << 10).contains(&dictionary.len()), "{kind}: {}", dictionary.len());
        let prepared = DecompressionDictionary::new(dictionary.clone());
        let mut compressor = Compressor::new(kind, options, Some(&dictionary)).unwrap();
        for block in &blocks[..20] {
            let mut out = Vec::new();
            compressor.compress(block, &mut out).unwrap();
            assert!(out.len() < compressed(kind, block, None).len(), "{kind}");
            assert!(decompress(kind, &out, Some(&prepared), LIMIT).unwrap() == *block, "{kind}");
            assert!(decompress(kind, &out, None, LIMIT).ok().as_ref() != Some(block), "{kind}");
        }
    }
    for kind in [CompressionType::None, CompressionType::Snappy, CompressionType::Bzip2] {
        assert!(build_dictionary(kind, &trained, &samples).is_empty());
    }
}

#[test]
fn a_dictionary_beyond_64_kib_serves_lz4_by_its_end() {
    let dictionary = text(150_000, 5);
    let prepared = DecompressionDictionary::new(dictionary.clone());
    let raw = dictionary[100_000..108_000].to_vec();
    for kind in [CompressionType::Lz4, CompressionType::Lz4hc] {
        let out = compressed(kind, &raw, Some(&dictionary));
        assert!(out.len() < raw.len() / 4);
        assert!(decompress(kind, &out, Some(&prepared), LIMIT).unwrap() == raw);
    }
}

#[test]
fn a_claimed_size_takes_no_memory_before_it_is_checked() {
    for kind in CompressionType::ALL {
        let good = compressed(kind, &vec![7; 100_000], None);
        assert!(decompress(kind, &good, None, 99_999).unwrap_err().is_corruption());
        assert!(decompress(kind, &good, None, 100_000).is_ok());
        if matches!(kind, CompressionType::None) {
            continue;
        }
        for claim in [0, 1, 99_999, 100_001, 1 << 30, u32::MAX] {
            let mut bad = Vec::new();
            put_varint32(&mut bad, claim);
            bad.extend_from_slice(&good[3..]);
            assert!(
                decompress(kind, &bad, None, usize::MAX).unwrap_err().is_corruption(),
                "{kind} {claim}"
            );
        }
    }
}

#[test]
fn damaged_streams_neither_panic_nor_spoil_the_next_one() {
    let raw = text(3000, 11);
    let dictionary = text(2000, 12);
    let prepared = DecompressionDictionary::new(dictionary.clone());
    let mut decompressor = Decompressor::new();
    for kind in CompressionType::ALL.into_iter().skip(1) {
        for (used, prepared) in [(None, None), (Some(&dictionary[..]), Some(&prepared))] {
            let good = compressed(kind, &raw, used);
            for size in 0..good.len() {
                assert!(
                    decompressor.decompress(kind, &good[..size], prepared, LIMIT).is_err(),
                    "{kind} {size}"
                );
            }
            for i in 0..good.len() {
                let mut bad = good.clone();
                bad[i] ^= 1 << (i % 8);
                // Only the block's checksum can tell a wrong byte; here it must merely not hurt.
                let _ = decompressor.decompress(kind, &bad, prepared, LIMIT);
            }
            assert!(
                decompressor.decompress(kind, &good, prepared, LIMIT).unwrap() == raw,
                "{kind}"
            );
        }
    }
}

#[test]
fn noise_is_refused() {
    let mut random = fastrand::Rng::with_seed(99);
    let mut decompressor = Decompressor::new();
    for kind in CompressionType::ALL.into_iter().skip(1) {
        for _ in 0..300 {
            let size = random.usize(..200);
            let noise = random.clone().bytes(size);
            random.u8(..);
            let _ = decompressor.decompress(kind, &noise, None, 1 << 20);
        }
        assert!(decompressor.decompress(kind, &[], None, LIMIT).is_err());
    }
}

/// BZip2's ratio has no bound, so the size that it claims says nothing: no room was to be made for
/// it, and was.
#[test]
fn no_room_is_made_for_what_bzip2_only_claims() {
    let mut stored = vec![0x80, 0x80, 0x80, 0x80, 0x02];
    stored.extend_from_slice(b"no stream at all");
    let room = |size| -> SharedRoom { panic!("room for {size} bytes") };
    let outcome = super::decompress_into(CompressionType::Bzip2, &stored, None, 1 << 30, room);
    assert!(outcome.is_err_and(|error| error.is_corruption()));
}

/// LZ4HC reckons with addresses before its input, and that of an empty vector is 1: it read there,
/// and the process died. Such a block is written where a table has a hash index and no keys.
#[test]
fn nothing_is_compressed_wherever_it_lies() {
    for kind in [
        CompressionType::Snappy,
        CompressionType::Zlib,
        CompressionType::Bzip2,
        CompressionType::Lz4,
        CompressionType::Lz4hc,
        CompressionType::Zstd,
    ] {
        for level in [CompressionOptions::DEFAULT_LEVEL, 1, 3, 9, 12] {
            let options = CompressionOptions { level, ..CompressionOptions::default() };
            for dictionary in [None, Some(&b"some words and some more words"[..])] {
                let mut compressor = Compressor::new(kind, &options, dictionary).unwrap();
                let mut stored = Vec::new();
                compressor.compress(&Vec::new(), &mut stored).unwrap();
                let known = dictionary.map(|bytes| DecompressionDictionary::new(bytes.to_vec()));
                let raw = Decompressor::new().decompress(kind, &stored, known.as_ref(), 0).unwrap();
                assert!(raw.is_empty(), "{kind} {level}");
                compressor.compress(b"words", &mut stored).unwrap();
            }
        }
    }
}
