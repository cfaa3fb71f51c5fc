//! What a table's settings come to before the first entry.

use super::super::format::{IndexType, MAX_FORMAT_VERSION};
use super::super::index::IndexBuilderSettings;
use super::super::properties::TableProperties;
use super::super::settings::TableBuilderSettings;
use super::filters::Filters;
use super::placement::Placement;
use crate::base::checksum::crc32c;
use crate::base::compression::CompressionType;
use crate::base::{CollectorContext, Error, Result};

/// The first format version with values beside the blocks.
const EMBEDDING_SINCE: u32 = 7;

pub(super) fn index(settings: &TableBuilderSettings) -> IndexBuilderSettings {
    let hashed = settings.index_type == IndexType::HashSearch;
    IndexBuilderSettings {
        comparator: settings.comparator.clone(),
        index_type: settings.index_type,
        shortening: settings.index_shortening,
        // Readers of a hash index take restarts for blocks.
        restart_interval: if hashed { 1 } else { settings.index_block_restart_interval },
        partition_size: settings.metadata_block_size,
        user_keys: settings.format_version >= 3,
        delta_values: settings.format_version >= 4
            && settings.block_align.is_none()
            && settings.embedded_from.is_none(),
    }
}

/// The filters that are written; `None` where there is nothing to filter by.
pub(super) fn filters(settings: &TableBuilderSettings) -> Option<Filters> {
    let useful = settings.whole_key_filtering || settings.prefix_extractor.is_some();
    let policy = settings.filter_policy.filter(|_| useful)?;
    let builder = policy.builder(settings.format_version, settings.written_by)?;
    let partitioned = settings.index_type == IndexType::TwoLevel && settings.partition_filters;
    let filters = Filters::new(
        builder,
        settings.whole_key_filtering,
        settings.prefix_extractor.clone(),
        partitioned.then_some(settings.metadata_block_size),
    );
    Some(filters.of_keys_with_timestamps(settings.comparator.timestamp_size()))
}

/// What collectors are told of the table.
pub(super) fn collector_context(settings: &TableBuilderSettings) -> CollectorContext {
    let family = settings.column_family;
    let named = (family != TableProperties::UNKNOWN_FAMILY).then_some(family);
    CollectorContext::new(named, settings.level)
}

/// Where data blocks are to lie, if not one right after the other.
pub(super) fn placement(settings: &TableBuilderSettings) -> Option<Placement> {
    let super_block = settings.super_block?;
    Some(Placement::new(super_block.size, super_block.padding_max(), settings.block_size))
}

/// That the settings do not contradict each other.
pub(super) fn check(settings: &TableBuilderSettings) -> Result<()> {
    let refuse = |what: String| Err(Error::invalid_argument(what));
    if !(2..=MAX_FORMAT_VERSION).contains(&settings.format_version) {
        return refuse(format!(
            "format_version {} cannot be written; 2 to 7 can",
            settings.format_version
        ));
    }
    if let Some(alignment) = settings.block_align {
        if !alignment.is_power_of_two() {
            return refuse(format!("block_align of {alignment} bytes is not a power of two"));
        }
        if settings.compression != CompressionType::None {
            return refuse("block_align needs compression to be off".to_owned());
        }
    }
    if let Some(super_block) =
        settings.super_block.filter(|super_block| !super_block.size.is_power_of_two())
    {
        return refuse(format!("super blocks of {} bytes are no power of two", super_block.size));
    }
    if settings.embedded_from.is_some() {
        if settings.format_version < EMBEDDING_SINCE {
            return refuse(format!(
                "embedded blobs need format_version {EMBEDDING_SINCE}, not {}",
                settings.format_version
            ));
        }
        if settings.block_align.is_some() || settings.super_block.is_some() {
            return refuse(
                "embedded blobs lie between blocks, which then cannot be aligned".to_owned(),
            );
        }
    }
    if settings.index_type == IndexType::HashSearch && settings.prefix_extractor.is_none() {
        return refuse("the hash-search index needs a prefix extractor".to_owned());
    }
    if settings.partition_filters && settings.index_type != IndexType::TwoLevel {
        return refuse("partition_filters needs the two-level index".to_owned());
    }
    Ok(())
}

/// A number that differs from file to file and is not 0: from format_version 6 on it enters each
/// checksum.
pub(super) fn context_base(settings: &TableBuilderSettings) -> u32 {
    if settings.format_version < 6 {
        return 0;
    }
    let identity =
        format!("{} {} {}", settings.db_identity, settings.session_identity, settings.file_number);
    crc32c(identity.as_bytes()).max(1)
}
