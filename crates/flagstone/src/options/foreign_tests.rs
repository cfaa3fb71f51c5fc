//! OPTIONS files of RocksDB that hold what is RocksDB's, or an application's, alone.

use super::*;
use crate::base::prefix::UserPrefixExtractor;
use crate::base::{Code, Comparator, PrefixExtractor};

fn parse(db: &str, family: &str, table: &str) -> LoadedOptions {
    let text = format!(
        "[Version]\nrocksdb_version=7.8.3\n[DBOptions]\n{db}\n[CFOptions \"default\"]\n{family}\n\
         [TableOptions/BlockBasedTable \"default\"]\n{table}\n"
    );
    file::parse(&text).unwrap()
}

fn printed(options: &Options) -> String {
    file::print(options, &[(DEFAULT_COLUMN_FAMILY_NAME, &options.cf)])
}

/// RocksDB takes them, and writes them down as they were given; databases that had one did not open
/// here.
#[test]
fn numbers_out_of_range_are_taken_for_the_nearest_and_stay_in_the_file() {
    let read = parse(
        "writable_file_max_buffer_size=1000\nmax_subcompactions=0\ncompaction_readahead_size=18446744073709551615",
        "write_buffer_size=18446744073709551615\nmax_write_buffer_number=5000\ntarget_file_size_multiplier=0\n\
         max_bytes_for_level_multiplier=0.500000\nnum_levels=7",
        "metadata_block_size=0\nblock_size=4096",
    );
    let options = read.options.clone();
    options.validate_for_writing().unwrap();
    assert_eq!((options.writable_file_max_buffer_size, options.max_subcompactions), (4096, 1));
    assert_eq!(
        (options.compaction_readahead_size, options.cf.write_buffer_size),
        (1 << 30, 1 << 40)
    );
    assert_eq!(
        (options.cf.max_write_buffer_number, options.cf.target_file_size_multiplier),
        (1024, 1)
    );
    assert_eq!(
        (options.cf.max_bytes_for_level_multiplier, options.cf.table.metadata_block_size),
        (1.0, 1)
    );
    let warnings = read.warnings();
    assert_eq!(warnings.len(), 8, "{warnings:?}");
    assert!(
        warnings[0].contains("'writable_file_max_buffer_size=1000' is not available here; 4096")
    );
    let again = printed(&options);
    for line in [
        "writable_file_max_buffer_size=1000",
        "max_write_buffer_number=5000",
        "metadata_block_size=0",
    ] {
        assert_eq!(again.matches(&format!("\n  {line}\n")).count(), 1, "{line}: {again}");
    }

    // What is set afterwards counts.
    let mut options = options;
    options.set("max_subcompactions", "4").unwrap();
    assert!(printed(&options).contains("\n  max_subcompactions=4\n"));
    assert!(
        Options { db: DbSettings { max_subcompactions: 0, ..options.db.clone() }, ..options }
            .validate()
            .is_err()
    );
}

/// No number near by would do: the tables cannot be read.
#[test]
fn a_version_of_tables_that_there_is_not_is_refused() {
    let refusal = parse("", "", "format_version=1").options.validate().unwrap_err();
    assert!(refusal.to_string().contains("'format_version' is 1"), "{refusal}");
}

/// RocksDB makes it an eighth of the write buffer, writes that down, and leaves it when the buffer
/// is made smaller.
#[test]
fn an_arena_block_may_be_larger_than_the_write_buffer() {
    let read = parse("", "write_buffer_size=65536\narena_block_size=1048576", "");
    read.options.validate_for_writing().unwrap();
    assert!(printed(&read.options).contains("\n  arena_block_size=1048576\n"));
}

/// So RocksDB 7.8 writes it.
#[test]
fn a_skip_list_that_looks_ahead_is_a_skip_list() {
    let read = parse("", "memtable_factory=SkipListFactory:5", "");
    assert!(
        read.warnings()[0].contains("memtable_factory=SkipListFactory:5"),
        "{:?}",
        read.warnings()
    );
    assert!(printed(&read.options).contains("\n  memtable_factory=SkipListFactory:5\n"));
    let same = parse("", "memtable_factory=SkipListFactory:0", "");
    assert_eq!(same.options.cf.memtable_factory, MemTableFactory::SkipList);
}

/// They were taken for damage.
#[test]
fn names_of_older_versions_are_passed_over() {
    let text = |version: &str, preserves: bool| {
        format!(
            "[Version]\nrocksdb_version={version}\n[DBOptions]\nnew_table_reader_for_compaction_inputs=false\n\
             preserve_deletes={preserves}\n[CFOptions \"default\"]\nsnap_refresh_nanos=0\n\
             [TableOptions/BlockBasedTable \"default\"]\nread_amp_bytes_per_bit=8589934592\n"
        )
    };
    for version in ["6.29.5", "7.8.3"] {
        assert_eq!(file::parse(&text(version, false)).unwrap().warnings(), Vec::<String>::new());
    }
    let read = file::parse(&text("6.29.5", true)).unwrap();
    assert_eq!(
        read.warnings(),
        ["option 'preserve_deletes=true' has no effect: RocksDB 7.0 removed it"]
    );
    assert!(read.options.kept[0].is_inert());
    assert!(printed(&read.options).contains("\n  # flagstone:preserve_deletes=true\n"));
}

const BY_ROCKSDB: &str = "# This is a RocksDB option file.\n";

/// Options that no release has.
fn by_a_newer_rocksdb() -> String {
    format!(
        "{BY_ROCKSDB}[Version]\nrocksdb_version=11.4.0\noptions_file_version=1.1\n[DBOptions]\nnew_of_db=1:{{a=2\\#3}}\n\
         wal_recovery_mode=kNewRecovery\n[CFOptions \"default\"]\nnew_of_family=\ncompaction_pri=kNewPriority\n\
         compaction_options_universal={{min_merge_width=3;new_field=1;stop_style=kNewStyle;}}\n\
         memtable_factory={{id=SkipListFactory;new_field=1;}}\nnum_levels=5\n[TableOptions/BlockBasedTable \"default\"]\n\
         new_of_tables=x\nindex_type=kNewIndex\nblock_size=8192\n[NewOptions \"default\" 7]\nnew_of_section=y\n \n"
    )
}

/// They were taken for damage, and the file of every RocksDB from 10.6 to 11.1 had one.
#[test]
fn what_only_a_newer_rocksdb_has_is_kept_and_stops_nothing() {
    let read = file::parse(&by_a_newer_rocksdb()).unwrap();
    read.options.validate_for_writing().unwrap();
    assert_eq!((read.options.cf.num_levels, read.options.cf.table.block_size), (5, 8192));
    assert_eq!(read.options.cf.compaction_options_universal.min_merge_width, 3);
    let warnings = read.warnings();
    for says in [
        "option 'new_of_db=1:{a=2\\#3}' is unknown and has no effect",
        "option 'wal_recovery_mode=kNewRecovery' is not available here; kPointInTimeRecovery is used instead",
        "column family 'default': option 'new_of_family=' is unknown",
        "'compaction_pri=kNewPriority' is not available here; kMinOverlappingRatio",
        "new_field=1;stop_style=kNewStyle;}' is not available here; {",
        "'memtable_factory={id=SkipListFactory;new_field=1;}' is not available here",
        "'new_of_tables=x' is unknown",
        "'index_type=kNewIndex' is not available here; kBinarySearch",
        "section [NewOptions \"default\" 7] is unknown and has no effect",
    ] {
        assert_eq!(
            warnings.iter().filter(|warning| warning.contains(says)).count(),
            1,
            "{says}: {warnings:?}"
        );
    }
    assert_eq!(warnings.len(), 9, "{warnings:?}");

    // Written again in comments only, and read again as it was.
    let again = printed(&read.options);
    for line in again
        .lines()
        .filter(|line| line.contains("new_") || line.contains("kNew") || line.contains("[New"))
    {
        assert!(line.trim_start().starts_with("# flagstone:"), "{line}");
    }
    for line in [
        "  # flagstone:new_of_db=1:{a=2\\#3}",
        "  wal_recovery_mode=kPointInTimeRecovery",
        "  # flagstone:wal_recovery_mode=kNewRecovery",
        "# flagstone:[NewOptions \"default\" 7]",
        "  # flagstone:new_of_section=y",
    ] {
        assert_eq!(again.matches(&format!("\n{line}\n")).count(), 1, "{line}: {again}");
    }
    let third = file::parse(&again).unwrap();
    assert_eq!(third.warnings(), warnings);
    assert_eq!(format!("{:?}", third.options), format!("{:?}", read.options));
    assert_eq!(printed(&third.options), again);

    // What is set afterwards counts.
    let mut options = third.options;
    options.set("compaction_pri", "kRoundRobin").unwrap();
    assert!(!printed(&options).contains("kNewPriority"));
}

/// In text that nothing says another program wrote, it is a mistake.
#[test]
fn what_nobody_has_is_a_mistake_where_no_other_program_wrote_it() {
    let text = by_a_newer_rocksdb();
    let text = text.strip_prefix(BY_ROCKSDB).unwrap();
    assert!(file::parse(text).unwrap_err().to_string().contains("there is no option 'new_of_db'"));
    let ours = printed(&Options::default());
    let wrong = ours.replace("\n[CFOptions", "\n  new_of_db=1\n[CFOptions");
    assert!(
        file::parse(&wrong).unwrap_err().to_string().contains("there is no option 'new_of_db'")
    );
    let wrong = ours.replace("kMinOverlappingRatio", "kMinOverlapingRatio");
    assert!(file::parse(&wrong).unwrap_err().to_string().contains("expected one of"));
}

/// Tables that need them could not be read, and a malformed value is damage.
#[test]
fn values_that_say_how_to_read_stop_the_opening() {
    for (was, is) in [
        ("num_levels=5", "compression=kNewCompression"),
        ("num_levels=5", "blob_compression_type=kNewCompression"),
        ("block_size=8192", "checksum=kNewChecksum"),
        ("block_size=8192", "block_size=large"),
        ("num_levels=5", "allow_concurrent_memtable_write"),
    ] {
        let refusal = file::parse(&by_a_newer_rocksdb().replace(was, is)).unwrap_err().to_string();
        let value = is.split('=').next_back().unwrap();
        assert!(refusal.contains(value) && refusal.contains("line "), "{refusal}");
    }
    let other = by_a_newer_rocksdb().replace("block_size=8192", "format_version=12");
    let refusal = file::parse(&other).unwrap().options.validate().unwrap_err().to_string();
    assert!(refusal.contains("'format_version' is 12"), "{refusal}");
}

/// They were taken for block-based tables, with a warning.
#[test]
fn tables_of_another_kind_are_refused_by_the_name_of_the_file() {
    let env = crate::env::Env::memory();
    let directory = std::path::Path::new("/db");
    env.fs.create_directory(directory).unwrap();
    let text = format!(
        "{BY_ROCKSDB}[Version]\nrocksdb_version=7.8.3\n[DBOptions]\n[CFOptions \"default\"]\n\
         table_factory=PlainTable\n[TableOptions/PlainTable \"default\"]\nuser_key_len=4\n \n"
    );
    let file = env
        .fs
        .create_writable(&directory.join("OPTIONS-000007"), crate::env::IoMode::Buffered)
        .unwrap();
    file.write_at(0, text.as_bytes()).unwrap();
    let mut options = load_latest(&env, directory).unwrap().unwrap().options;
    let refusal = options.validate().unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.path()),
        (Code::NotSupported, Some(&*directory.join("OPTIONS-000007")))
    );
    assert!(refusal.to_string().contains("table_factory 'PlainTable'"), "{refusal}");
    options.set("table_factory", "BlockBasedTable").unwrap();
    options.validate().unwrap();
    let printed = printed(&options);
    assert!(printed.contains(
        "\n# flagstone:[TableOptions/PlainTable \"default\"]\n  # flagstone:user_key_len=4\n"
    ));
}

struct Mine;

impl UserPrefixExtractor for Mine {
    fn name(&self) -> &str {
        "my.Prefix"
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.get(..1)
    }
}

/// Not even a program that had the components could read the file.
#[test]
fn components_of_an_application_are_asked_for_when_the_database_is_opened() {
    let read = parse(
        "",
        "comparator=my.Order\nmerge_operator={id=my.Merge;depth=3;}\nprefix_extractor=my.Prefix",
        "",
    );
    assert_eq!(read.warnings().len(), 3);
    let mut options = read.options;
    let refused = |options: &Options, says: &str| {
        let refusal = options.validate_for_writing().unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument);
        assert!(refusal.to_string().contains(says), "{refusal}");
    };
    refused(&options, "comparator 'my.Order'");
    options.set("comparator", Comparator::default().name()).unwrap();
    refused(&options, "merge_operator '{id=my.Merge;depth=3;}'");
    options.set("merge_operator", "max").unwrap();
    options.validate().unwrap();
    refused(&options, "prefix_extractor 'my.Prefix'");
    options.cf.prefix_extractor = Some(PrefixExtractor::Custom(std::sync::Arc::new(Mine)));
    options.validate_for_writing().unwrap();
    assert!(printed(&options).contains("\n  prefix_extractor=my.Prefix\n"));
}

#[test]
fn what_stands_in_for_components_leaves_their_names_in_the_file() {
    let merge = "merge_operator={id=my.Merge;depth=3;}";
    let family = format!(
        "{merge}\nprefix_extractor=my.Prefix\nmemtable_factory={{id=HashSkipListRepFactory;bucket_count=9;}}"
    );
    let mut options = parse("", &family, "index_type=kHashSearch").options;
    options.cf.stand_in_for_components().unwrap();
    options.validate_for_writing().unwrap();
    let operator = options.cf.merge_operator.clone().unwrap();
    assert_eq!(operator.name(), "my.Merge");
    let refusal = crate::base::merge::full_merge(&*operator, b"k", None, &[b"1"]).unwrap_err();
    assert!(
        refusal.to_string().contains("key 'k' consists of 1 operands of merge operator 'my.Merge'"),
        "{refusal}"
    );
    let again = printed(&options);
    for line in family.lines().chain(["index_type=kHashSearch"]) {
        assert_eq!(again.matches(&format!("\n  {line}\n")).count(), 1, "{line}: {again}");
    }

    // A time to live around it changes nothing.
    let stamping = "merge_operator={id=TtlMergeOperator;user_operator=my.Merge;}";
    let mut options = parse("", stamping, "").options;
    options.cf.stand_in_for_components().unwrap();
    assert!(printed(&options).contains(&format!("\n  {stamping}\n")));
}
