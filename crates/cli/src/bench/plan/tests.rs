use super::*;
use crate::bench::flags::tests::parse;

/// A benchmark that is not in the list is never suggested.
#[test]
fn every_name_that_may_be_suggested_is_a_benchmark() {
    let (flags, _) = parse("flagstone bench --benchmarks=fillseq --db=/x");
    for name in NAMES {
        assert!(Plan::new(name, &flags).is_some(), "{name}");
    }
    assert!(Plan::new("fillrandm", &flags).is_none());
}
