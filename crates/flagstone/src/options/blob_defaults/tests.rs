use super::*;
use crate::options::{Options, file};

#[test]
fn large_values_are_kept_apart_unless_somebody_decides_otherwise() {
    let settled = |text: &str| {
        let mut options = Options::default();
        options.set_all(text).unwrap();
        let family = options.cf.sanitized();
        (family.separates_values(), family.smallest_blob(), family.blob_compression())
    };
    assert_eq!(settled(""), (true, 4096, CompressionType::Lz4));
    assert_eq!(settled("compression=kZSTD;min_blob_size=100"), (true, 100, CompressionType::Zstd));
    assert_eq!(
        settled("blob_compression_type=kNoCompression"),
        (true, 4096, CompressionType::None)
    );
    assert!(!settled("compaction_style=kCompactionStyleFIFO").0, "its limit would not count them");
    // Who decides means what it means to RocksDB.
    assert_eq!(settled("enable_blob_files=true"), (true, 0, CompressionType::None));
    assert_eq!(settled("enable_blob_files=false"), (false, 0, CompressionType::None));
    assert!(settled("enable_blob_files=true;compaction_style=kCompactionStyleFIFO").0);
    assert_eq!(settled("enable_blob_files=true;enable_blob_files=auto"), settled(""));
    // Whoever wrote an OPTIONS file without the name reads no blob files.
    let old =
        "[Version]\nrocksdb_version=6.4.6\n[DBOptions]\n[CFOptions \"default\"]\nnum_levels=5\n";
    let family = file::parse(old).unwrap().options.cf;
    assert_eq!((family.enable_blob_files, family.num_levels), (Some(false), 5));
}

/// What the file of a database with these options says, and what it is read as.
fn kept(text: &str) -> (String, CfSettings) {
    let mut options = Options::default();
    options.set_all(text).unwrap();
    let printed = file::print(&options, &[("default", &options.cf.sanitized())]);
    let read = read(&printed);
    (printed, read)
}

fn read(text: &str) -> CfSettings {
    file::parse(text).unwrap().options.cf.settings
}

/// They came back as if somebody had decided: under FIFO compaction, chosen later, values went to
/// blob files; with another compression blobs had the former one.
#[test]
fn what_is_left_open_stays_open_in_the_file_beside_what_rocksdb_reads() {
    let (printed, mut read) = kept("");
    for line in [
        "  enable_blob_files=true",
        "  min_blob_size=4096",
        "  blob_compression_type=kLZ4Compression",
    ] {
        assert!(printed.lines().any(|found| found == line), "{printed}");
    }
    assert_eq!(read.left_open().collect::<Vec<_>>(), LEFT_OPEN);
    read.compression = CompressionType::Zstd;
    assert_eq!(read.blob_compression(), CompressionType::Zstd);
    read.compaction_style = CompactionStyle::Fifo;
    assert!(!read.separates_values());

    for (text, open) in [
        ("enable_blob_files=true", &LEFT_OPEN[1..]),
        ("min_blob_size=100", &["enable_blob_files", "blob_compression_type"]),
        ("enable_blob_files=false;min_blob_size=0;blob_compression_type=kZSTD", &[]),
        ("compaction_style=kCompactionStyleFIFO", &LEFT_OPEN),
    ] {
        let (_, read) = kept(text);
        assert_eq!(read.left_open().collect::<Vec<_>>(), open, "{text}");
    }
}

#[test]
fn who_changes_a_line_of_the_file_has_decided() {
    let (printed, _) = kept("");
    let changed = |from: &str, to: &str| {
        let read = read(&printed.replace(from, to));
        (read.separates_values(), read.smallest_blob(), read.blob_compression())
    };
    assert!(!changed("  enable_blob_files=true", "  enable_blob_files=false").0);
    assert_eq!(
        changed("  min_blob_size=4096", "  min_blob_size=100"),
        (true, 100, CompressionType::Lz4)
    );
    let kinds = ("_type=kLZ4Compression", "_type=kZSTD");
    assert_eq!(changed(kinds.0, kinds.1), (true, 4096, CompressionType::Zstd));
    // RocksDB writes no comments: then all three have what was in force.
    assert_eq!(changed("# flagstone:", "# "), (true, 4096, CompressionType::Lz4));
}

/// A database whose files were to take 1.1 times their live data took 2.2 times with a version that
/// allows it in bursts.
#[test]
fn a_limit_of_space_by_a_version_without_bursts_holds_at_every_moment() {
    let (printed, read) = kept("max_space_amplification=1.1");
    assert_eq!(read.space_in_bursts(), 2.2);
    let lines = printed.lines().filter(|line| !line.contains("burst_space_amplification"));
    let before: String = lines.map(|line| format!("{line}\n")).collect();
    assert_eq!(self::read(&before).space_in_bursts(), 1.1);
    // RocksDB's file says nothing of either.
    let neither = before.replace("# flagstone:", "# ");
    assert_eq!(self::read(&neither).space_in_bursts(), 2.2);
}
