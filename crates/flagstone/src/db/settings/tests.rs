use super::*;
use crate::options::{MemoryBudget, Options};

/// With a `write_buffer_size` that means "no limit" the first write to a memtable asked for a tenth
/// of it at once, and the process ended.
#[test]
fn a_filter_of_a_memtable_without_limit_fits_into_memory() {
    let mut options = Options::default();
    options.db.memory_budget = MemoryBudget::None;
    options
        .set_all("memtable_prefix_bloom_size_ratio=0.25;memtable_whole_key_filtering=true")
        .unwrap();
    let mut bytes_of = |write_buffer_size| {
        options.cf.settings.write_buffer_size = write_buffer_size;
        memtable_filter_settings(&options.db, &options.cf).unwrap().bytes
    };
    assert_eq!(bytes_of(64 << 20), 16 << 20);
    assert_eq!(bytes_of(1 << 40), 256 << 20);
}
