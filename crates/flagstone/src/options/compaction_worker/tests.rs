use std::sync::Arc;

use super::CompactionServiceOptionsOverride;
use crate::base::{Code, Comparator, SstPartitionerFixedPrefixFactory};
use crate::options::file::print;
use crate::options::{ColumnFamilyOptions, KeepEverything, Options};

fn text(family: &ColumnFamilyOptions) -> String {
    let mut options = Options::default();
    options.db.max_subcompactions = 3;
    print(&options, &[("default", &ColumnFamilyOptions::default()), ("photos", family)])
}

#[test]
fn settings_come_from_the_database_and_components_from_the_worker() {
    let mut family = ColumnFamilyOptions::default();
    family.write_buffer_size = 12_345_678;
    family.compaction_filter = Some(Arc::new(KeepEverything::instead_of("A".to_string())));
    family.sst_partitioner_factory = Some(Arc::new(SstPartitionerFixedPrefixFactory::new(3)));
    let worker = CompactionServiceOptionsOverride {
        compaction_filter: family.compaction_filter.clone(),
        settings: vec![("max_subcompactions".into(), "7".into()), ("ttl".into(), "9".into())],
        ..CompactionServiceOptionsOverride::default()
    };
    let (options, cf) = worker.applied_to(&text(&family), "photos").expect("they agree");
    assert_eq!((cf.write_buffer_size, options.max_subcompactions, cf.ttl), (12_345_678, 7, 9));
    assert!(cf.compaction_filter.is_some() && cf.sst_partitioner_factory.is_some());
}

#[test]
fn components_that_differ_are_refused() {
    let plain = ColumnFamilyOptions::default();
    let mut filtered = plain.clone();
    filtered.compaction_filter = Some(Arc::new(KeepEverything::instead_of("A".to_string())));
    let mut reversed = plain.clone();
    reversed.comparator = Comparator::ReverseBytewise;
    let of = |family: &ColumnFamilyOptions| {
        CompactionServiceOptionsOverride::of(&Options { cf: family.clone(), ..Options::default() })
    };
    let refusal = |worker: &CompactionServiceOptionsOverride, family: &ColumnFamilyOptions| {
        let error = worker.applied_to(&text(family), "photos").expect_err("they differ");
        assert_eq!(error.code(), Code::InvalidArgument);
        error.message().to_string()
    };
    assert!(refusal(&of(&plain), &filtered).contains("compaction_filter is 'A'"));
    assert!(refusal(&of(&filtered), &plain).contains("the worker's is 'A'"));
    assert!(refusal(&of(&plain), &reversed).contains("comparator"));
    let none = CompactionServiceOptionsOverride::default();
    none.applied_to(&text(&reversed), "photos").expect("a built-in one need not be given");
    let unknown = CompactionServiceOptionsOverride {
        settings: vec![("no_such_option".into(), "1".into())],
        ..none.clone()
    };
    unknown.applied_to(&text(&plain), "photos").expect_err("there is no such option");
    // Settings were applied after the names had been compared.
    let merging = CompactionServiceOptionsOverride {
        settings: vec![("merge_operator".into(), "stringappend".into())],
        ..none.clone()
    };
    assert!(refusal(&merging, &plain).contains("merge_operator"));
    let mut merged = plain.clone();
    merged.set("merge_operator", "stringappend").expect("it is built in");
    merging.applied_to(&text(&merged), "photos").expect("they agree");
    let missing = none.applied_to(&text(&plain), "films").expect_err("there is no such family");
    assert_eq!(missing.code(), Code::Corruption);
    none.applied_to("[Version", "photos").expect_err("this is no text of options");
}
