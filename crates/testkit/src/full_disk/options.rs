//! The options of a life.

use flagstone::env::Env;
use flagstone::options::Options;

use crate::settings;

/// What may be chosen, with the values tried: whatever decides when space is taken, and for what.
const CHOICES: &[(&str, &[&str])] = &[
    ("write_buffer_size", &["100000", "500000", "2000000"]),
    ("max_write_buffer_number", &["2", "4"]),
    ("wal_write_mode", &["mapped", "mapped", "plain"]),
    ("manual_wal_flush", &["false", "false", "true"]),
    ("recycle_log_file_num", &["0", "2"]),
    ("wal_compression", &["kNoCompression", "kZSTD"]),
    ("reserved_disk_space", &["0", "0", "2000000", "6000000"]),
    ("compression", &["kNoCompression", "kLZ4Compression"]),
    ("enable_blob_files", &["false", "true"]),
    ("min_blob_size", &["0", "2000"]),
    ("blob_write_mode", &["commit", "flush"]),
    ("blob_commit_min_size", &["500", "5000"]),
    ("enable_blob_garbage_collection", &["false", "true"]),
    ("use_direct_io_for_flush_and_compaction", &["false", "true"]),
    (
        "compaction_style",
        &["kCompactionStyleLevel", "kCompactionStyleLevel", "kCompactionStyleUniversal"],
    ),
    ("max_subcompactions", &["1", "2"]),
    ("max_background_jobs", &["2", "4"]),
    ("max_manifest_file_size", &["2000", "1073741824"]),
];

/// Draws the options of a life, and says them.
pub fn draw(env: &Env, random: &mut fastrand::Rng, in_memory: bool) -> (Options, String) {
    let mut options = Options { env: env.clone(), ..Options::default() };
    let fixed = [
        ("create_if_missing", "true"),
        ("create_missing_column_families", "true"),
        ("target_file_size_base", "500000"),
        ("max_bytes_for_level_base", "1000000"),
        ("level0_file_num_compaction_trigger", "2"),
    ];
    settings::set(&mut options, &fixed);
    let mut said = Vec::new();
    for (name, values) in CHOICES {
        let value = values[random.usize(..values.len())];
        // Direct I/O is for real files.
        let value = if in_memory && name.contains("direct") { values[0] } else { value };
        settings::set(&mut options, &[(name, value)]);
        said.push(format!("{name}={value}"));
    }
    (options, said.join(" "))
}
