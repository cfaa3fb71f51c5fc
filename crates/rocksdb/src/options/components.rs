//! Setters of a column family: what a program supplies.

use super::Options;
use crate::c_text::{CStrLike, name_of};
use crate::compaction_filter::{CompactionFilterCallback, CompactionFilterFn, engine_filter};
use crate::compaction_filter_factory::{CompactionFilterFactory, engine_factory};
use crate::comparator::{CompareFn, CompareTsFn, CompareWithoutTsFn, Stamped, engine_comparator};
use crate::merge_operator::{MergeFn, operator};
use crate::slice_transform::SliceTransform;

impl Options {
    /// The order of keys. The MANIFEST stores the name; two orders must never share one. Default:
    /// by bytes.
    ///
    /// # Panics
    /// If there is a NUL byte in the name.
    pub fn set_comparator(&mut self, name: impl CStrLike, compare_fn: Box<CompareFn>) {
        self.db.cf.comparator = engine_comparator(name_of(name), compare_fn);
    }

    /// The order of keys that end in timestamps of so many bytes: by key first, and then newest
    /// first. Default: none.
    ///
    /// # Panics
    /// If there is a NUL byte in the name.
    pub fn set_comparator_with_ts(
        &mut self,
        name: impl CStrLike,
        timestamp_size: usize,
        compare_fn: Box<CompareFn>,
        compare_ts_fn: Box<CompareTsFn>,
        compare_without_ts_fn: Box<CompareWithoutTsFn>,
    ) {
        self.db.cf.comparator = flagstone::Comparator::Custom(std::sync::Arc::new(Stamped {
            name: name_of(name),
            timestamp_size,
            compare: compare_fn,
            compare_timestamps: compare_ts_fn,
            compare_without: compare_without_ts_fn,
        }));
    }

    /// A merge operator of one function, for values and operands alike. Default: none.
    ///
    /// # Panics
    /// If there is a NUL byte in the name.
    pub fn set_merge_operator_associative<F: MergeFn + Clone>(
        &mut self,
        name: impl CStrLike,
        full_merge_fn: F,
    ) {
        self.set_merge_operator(name, full_merge_fn.clone(), full_merge_fn);
    }

    /// A merge operator: `full_merge_fn` combines a value and its operands, `partial_merge_fn`
    /// operands alone. Default: none.
    ///
    /// # Panics
    /// If there is a NUL byte in the name.
    pub fn set_merge_operator<F: MergeFn, PF: MergeFn>(
        &mut self,
        name: impl CStrLike,
        full_merge_fn: F,
        partial_merge_fn: PF,
    ) {
        let name = name_of(name);
        self.db.cf.merge_operator = Some(operator(name, full_merge_fn, partial_merge_fn));
    }

    /// The same as [`set_merge_operator_associative`](Self::set_merge_operator_associative).
    #[deprecated(since = "0.5.0", note = "see set_merge_operator_associative")]
    pub fn add_merge_operator<F: MergeFn + Clone>(&mut self, name: &str, merge_fn: F) {
        self.set_merge_operator_associative(name, merge_fn);
    }

    /// Decides in compactions which values stay. Default: none.
    ///
    /// # Panics
    /// If there is a NUL byte in the name.
    pub fn set_compaction_filter<F>(&mut self, name: impl CStrLike, filter_fn: F)
    where
        F: CompactionFilterFn + Send + 'static,
    {
        let name = match name.into_c_string() {
            Ok(name) => name,
            Err(error) => panic!("a name must have no NUL byte: {error}"),
        };
        let filter = CompactionFilterCallback { name, filter_fn };
        self.db.cf.compaction_filter = Some(engine_filter(filter));
    }

    /// Makes a filter for each part of a compaction. Not asked where there is a compaction filter.
    /// Default: none.
    pub fn set_compaction_filter_factory<F>(&mut self, factory: F)
    where
        F: CompactionFilterFactory + Send + 'static,
        F::Filter: Send + 'static,
    {
        self.db.cf.compaction_filter_factory = Some(engine_factory(factory));
    }

    /// Finds the prefix of a key, for prefix filters and prefix seeks. Default: none.
    pub fn set_prefix_extractor(&mut self, prefix_extractor: SliceTransform) {
        self.db.cf.prefix_extractor = Some(prefix_extractor.engine);
    }
}
