//! Every form that a table can have.

use crate::base::PrefixExtractor;
use crate::base::checksum::ChecksumType;
use crate::base::compression::{CompressionOptions, CompressionType};
use crate::sst::filter::FilterPolicy;
use crate::sst::{IndexShortening, IndexType, SuperBlock, TableBuilderSettings};

type Named = (String, TableBuilderSettings);

/// Settings that others are changes of.
pub(super) fn base() -> TableBuilderSettings {
    TableBuilderSettings {
        block_size: 1024,
        filter_policy: Some(FilterPolicy::Bloom { bits_per_key: 10.0 }),
        metadata_block_size: 256,
        session_identity: "QMRXYD2YEAMS18Z2TS60".to_owned(),
        db_identity: "fee32865-4035-4ae2-8dd6-3f4cdf8990cf".to_owned(),
        ..TableBuilderSettings::default()
    }
}

/// Settings in many combinations, each with a name.
pub(super) fn all_settings() -> Vec<Named> {
    let mut all = vec![("defaults".to_owned(), base())];
    all.extend(layouts());
    all.extend(codecs());
    all.extend(single_changes());
    all.extend(in_super_blocks());
    all
}

/// Blocks that follow each other with gaps, so that handles in the index do not tell the next one.
fn in_super_blocks() -> Vec<Named> {
    let mut all = Vec::new();
    for index_block_restart_interval in [1, 16] {
        for index_type in [
            IndexType::BinarySearch,
            IndexType::TwoLevel,
            IndexType::BinarySearchWithFirstKey,
            IndexType::HashSearch,
        ] {
            for compression in [CompressionType::None, CompressionType::Lz4] {
                let name = format!(
                    "super blocks restart {index_block_restart_interval} {index_type:?} {compression}"
                );
                let hashed = index_type == IndexType::HashSearch;
                let more = TableBuilderSettings {
                    super_block: Some(SuperBlock { size: 1024, overhead_ratio: 4 }),
                    index_block_restart_interval,
                    index_type,
                    compression,
                    prefix_extractor: hashed.then_some(PrefixExtractor::FixedPrefix(6)),
                    ..base()
                };
                all.push((name, more));
            }
        }
    }
    all
}

fn layouts() -> Vec<Named> {
    let mut all = Vec::new();
    for format_version in 2..=7 {
        for index_block_restart_interval in [1, 4] {
            for index_type in
                [IndexType::BinarySearch, IndexType::TwoLevel, IndexType::BinarySearchWithFirstKey]
            {
                let name = format!(
                    "v{format_version} restart {index_block_restart_interval} {index_type:?}"
                );
                let partition_filters = index_type == IndexType::TwoLevel;
                let more = TableBuilderSettings {
                    format_version,
                    index_block_restart_interval,
                    index_type,
                    partition_filters,
                    ..base()
                };
                all.push((name, more));
            }
        }
    }
    all
}

fn codecs() -> Vec<Named> {
    let mut all = Vec::new();
    for compression in CompressionType::ALL {
        for max_dict_bytes in [0, 4096] {
            let compression_options = CompressionOptions {
                max_dict_bytes,
                zstd_max_train_bytes: 100 * max_dict_bytes,
                ..CompressionOptions::default()
            };
            let name = format!("{compression} dictionary {max_dict_bytes}");
            all.push((name, TableBuilderSettings { compression, compression_options, ..base() }));
        }
    }
    for checksum in
        [ChecksumType::None, ChecksumType::Crc32c, ChecksumType::XxHash, ChecksumType::XxHash64]
    {
        all.push((format!("checksum {checksum:?}"), TableBuilderSettings { checksum, ..base() }));
    }
    all
}

fn single_changes() -> Vec<Named> {
    let ribbon =
        FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: 10.0, bloom_before_level: -1 };
    let prefix_extractor = Some(PrefixExtractor::FixedPrefix(6));
    let singles = [
        ("aligned", TableBuilderSettings { block_align: Some(4096), block_size: 4096, ..base() }),
        ("hash index", TableBuilderSettings { data_block_hash_ratio: Some(0.75), ..base() }),
        (
            "no shortening",
            TableBuilderSettings { index_shortening: IndexShortening::None, ..base() },
        ),
        (
            "successor",
            TableBuilderSettings {
                index_shortening: IndexShortening::SeparatorsAndSuccessor,
                ..base()
            },
        ),
        (
            "tiny blocks",
            TableBuilderSettings { block_size: 1, block_restart_interval: 1, ..base() },
        ),
        ("ribbon", TableBuilderSettings { filter_policy: Some(ribbon), ..base() }),
        ("no filter", TableBuilderSettings { filter_policy: None, ..base() }),
        ("prefixes", TableBuilderSettings { prefix_extractor: prefix_extractor.clone(), ..base() }),
        (
            "hash search",
            TableBuilderSettings {
                index_type: IndexType::HashSearch,
                prefix_extractor: prefix_extractor.clone(),
                ..base()
            },
        ),
        (
            "prefixes only, partitioned",
            TableBuilderSettings {
                prefix_extractor,
                whole_key_filtering: false,
                index_type: IndexType::TwoLevel,
                partition_filters: true,
                ..base()
            },
        ),
    ];
    singles.map(|(name, settings)| (name.to_owned(), settings)).into()
}
