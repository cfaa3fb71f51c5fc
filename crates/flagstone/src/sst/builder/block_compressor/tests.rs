use std::path::Path;

use super::*;
use crate::base::{InternalIterator, InternalKeyBuf, ValueType};
use crate::env::{FileSystem, IoMode, memory::MemoryFileSystem};
use crate::sst::{IterSettings, Table, TableBuilder, TableReadSettings};

const KINDS: [CompressionType; 6] = [
    CompressionType::Snappy,
    CompressionType::Zlib,
    CompressionType::Bzip2,
    CompressionType::Lz4,
    CompressionType::Lz4hc,
    CompressionType::Zstd,
];

#[test]
fn what_was_garbled_is_found_if_that_is_wanted() {
    let block: Vec<u8> = (0..4000u32).map(|n| (n * n % 251 % 7) as u8).collect();
    for kind in KINDS {
        for verify_compression in [true, false] {
            let settings = TableBuilderSettings {
                compression: kind,
                verify_compression,
                ..TableBuilderSettings::default()
            };
            for dictionary in [None, Some(&block[..500])] {
                let mut compressor = BlockCompressor::new(&settings, dictionary).unwrap().unwrap();
                let mut stored = Vec::new();
                assert_eq!(compressor.compress(&block, &mut stored).unwrap(), kind);
                compressor.check(&block, &stored).unwrap();
                let mut other = block.clone();
                other[1234] ^= 1;
                let (longer, cut) = ([&block[..], b"x"].concat(), &stored[..stored.len() - 1]);
                for (block, stored) in [(&other, &stored[..]), (&longer, &stored), (&block, cut)] {
                    let found =
                        compressor.check(block, stored).is_err_and(|error| error.is_corruption());
                    assert_eq!(found, verify_compression, "{kind}");
                }
            }
        }
    }
    assert!(BlockCompressor::new(&TableBuilderSettings::default(), None).unwrap().is_none());
}

/// Such a table was not finished: a value of 2 GiB that had been acknowledged could not be flushed,
/// at each opening anew.
#[test]
fn blocks_that_the_codec_cannot_compress_are_stored_as_they_are() {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/d")).unwrap();
    for kind in KINDS {
        let file = fs.create_writable(Path::new("/d/000007.sst"), IoMode::Buffered).unwrap();
        let settings = TableBuilderSettings {
            compression: kind,
            block_size: 1,
            ..TableBuilderSettings::default()
        };
        let mut builder = TableBuilder::new(file.clone(), settings).unwrap();
        builder.codec.compressor.as_mut().unwrap().block_size_max = 2000;
        let entries = [("k", 1000), ("l", 3000), ("m", 1000)].map(|(key, size)| {
            (InternalKeyBuf::new(key.as_bytes(), 1, ValueType::Value), vec![b'x'; size])
        });
        for (key, value) in &entries {
            builder.add(key.as_key(), value).unwrap();
        }
        let summary = builder.finish().unwrap();
        assert!((3000..4000).contains(&summary.properties.data_size), "{kind}: {summary:?}");
        let table = Table::open(file, summary.size, TableReadSettings::default()).unwrap();
        assert!(table.verify(&mut |fault| panic!("{kind}: {fault:?}")));
        let mut iter = table.iter(IterSettings::default());
        iter.seek_to_first();
        for (key, value) in &entries {
            assert_eq!((iter.key(), iter.value()), (key.as_key(), &value[..]), "{kind}");
            iter.next();
        }
    }
}

#[test]
fn a_table_with_a_garbled_block_is_not_finished() {
    for verify_compression in [true, false] {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/d")).unwrap();
        let file = fs.create_writable(Path::new("/d/000007.sst"), IoMode::Buffered).unwrap();
        let settings = TableBuilderSettings {
            compression: CompressionType::Lz4,
            verify_compression,
            ..TableBuilderSettings::default()
        };
        let mut builder = TableBuilder::new(file, settings).unwrap();
        builder.codec.compressor.as_mut().unwrap().garble(b"abcdefghijklmnop");
        builder
            .add(InternalKeyBuf::new(b"k", 1, ValueType::Value).as_key(), b"abcdefghijklmnop")
            .unwrap();
        let key = InternalKeyBuf::new(b"l", 1, ValueType::Value);
        builder.add(key.as_key(), &b"abcdefghijklmnop".repeat(100)).unwrap();
        let finished = builder.finish();
        assert_eq!(finished.is_err(), verify_compression);
        if let Err(error) = finished {
            assert!(error.is_corruption() && error.to_string().contains("000007.sst"), "{error}");
        }
    }
}
