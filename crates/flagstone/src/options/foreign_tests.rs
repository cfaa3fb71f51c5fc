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

/// RocksDB takes them, and writes them down as they were given; databases that had one did not open here.
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
    assert_eq!((options.compaction_readahead_size, options.cf.write_buffer_size), (1 << 30, 1 << 40));
    assert_eq!((options.cf.max_write_buffer_number, options.cf.target_file_size_multiplier), (1024, 1));
    assert_eq!((options.cf.max_bytes_for_level_multiplier, options.cf.table.metadata_block_size), (1.0, 1));
    let warnings = read.warnings();
    assert_eq!(warnings.len(), 8, "{warnings:?}");
    assert!(
        warnings[0]
            .contains("'writable_file_max_buffer_size=1000' cannot be had here, and is taken for 4096")
    );
    let again = printed(&options);
    for line in
        ["writable_file_max_buffer_size=1000", "max_write_buffer_number=5000", "metadata_block_size=0"]
    {
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

/// RocksDB makes it an eighth of the write buffer, writes that down, and leaves it when the buffer is made smaller.
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
    assert!(read.warnings()[0].contains("memtable_factory=SkipListFactory:5"), "{:?}", read.warnings());
    assert!(printed(&read.options).contains("\n  memtable_factory=SkipListFactory:5\n"));
    let same = parse("", "memtable_factory=SkipListFactory:0", "");
    assert_eq!(same.options.cf.memtable_factory, MemTableFactory::SkipList);
}

/// They were taken for damage.
#[test]
fn names_of_older_versions_are_passed_over() {
    let text = |version: &str| {
        format!(
            "[Version]\nrocksdb_version={version}\n[DBOptions]\nnew_table_reader_for_compaction_inputs=false\n\
             [CFOptions \"default\"]\nsnap_refresh_nanos=0\n"
        )
    };
    let warnings = file::parse(&text("6.29.5")).unwrap().warnings();
    assert!(
        warnings.len() == 2 && warnings[1].contains("'snap_refresh_nanos' of an older RocksDB"),
        "{warnings:?}"
    );
    assert!(file::parse(&text("7.8.3")).is_err());
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
    assert!(refusal.to_string().contains("key 'k' is 1 operands of merge operator 'my.Merge'"), "{refusal}");
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
