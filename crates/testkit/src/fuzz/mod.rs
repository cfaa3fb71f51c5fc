//! Bodies of the fuzz targets: each takes any bytes and panics only where the engine is at fault.
//!
//! libFuzzer drives them from `fuzz/`; `tests/fuzz_smoke.rs` runs the same bodies over their seeds
//! and mutations of those. Where a checksum would stop nearly every mutation, the body runs a
//! second time with the checksums put right (`mend`), so that the decoder behind them is reached.

mod apply;
mod backups;
mod batches;
mod blobs;
mod blocks;
mod codecs;
mod database;
mod database_seeds;
mod expiring;
mod filters;
mod histories;
mod input;
mod manifests;
mod mend;
mod merges;
mod mutate;
mod names;
mod options;
mod positions;
mod primitives;
mod remote;
mod seeds;
mod smoke;
mod table_parts;
mod tables;
mod told;
mod tombstones;
mod traces;
mod wals;

pub use mutate::mutate;
pub use seeds::{Seeds, seeds};
pub use smoke::{databases as smoke_databases, decoders as smoke_decoders};

/// The body of a target.
pub type Body = fn(&[u8]);

/// Every target by the name of its file in `fuzz/fuzz_targets`.
pub const TARGETS: &[(&str, Body)] = &[
    ("apply", apply::apply),
    ("backup_meta", backups::backup_meta),
    ("batch", batches::batch),
    ("blob_file", blobs::blob_file),
    ("blob_index", blobs::blob_index),
    ("block", blocks::block),
    ("coding", primitives::coding),
    ("compaction_order", remote::compaction_order),
    ("compaction_result", remote::compaction_result),
    ("database", database::database),
    ("decompress", codecs::decompress),
    ("entity", primitives::entity),
    ("file_name", names::file_name),
    ("filter", filters::filter),
    ("filter_build", filters::filter_build),
    ("footer", tables::footer),
    ("history", histories::history),
    ("identity", names::identity),
    ("internal_key", primitives::internal_key),
    ("manifest", manifests::manifest),
    ("manifest_edit", manifests::manifest_edit),
    ("merge", merges::merge),
    ("option_text", options::option_text),
    ("options_file", options::options_file),
    ("owner", names::owner),
    ("properties", tables::properties),
    ("range_tombstones", tombstones::range_tombstones),
    ("salvage", database::salvage),
    ("statistics", told::statistics),
    ("table", tables::table),
    ("table_part", table_parts::table_part),
    ("trace", traces::trace),
    ("ttl", expiring::ttl),
    ("unique_id", names::unique_id),
    ("update_position", positions::update_position),
    ("wal", wals::wal),
    ("wal_replay", wals::wal_replay),
];

/// The body of the target called `name`.
///
/// # Panics
/// If there is none.
pub fn run(name: &str, data: &[u8]) {
    let (_, body) =
        TARGETS.iter().find(|(target, _)| *target == name).expect("a target of that name");
    body(data);
}
