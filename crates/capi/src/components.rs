//! What is made of a program's callbacks: comparators, merge operators, compaction filters and
//! their factories, prefix extractors.
//!
//! Engine and handles share them. The state of the callbacks is freed when the last user is gone,
//! which may be a database.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use flagstone::base::prefix::UserPrefixExtractor;
use flagstone::options::{CompactionFilterContext, FilteredKind, PrefixExtractor};
use flagstone::{FilterDecision, MergeOperator, UserComparator};
use flagstone_rocksdb as rdb;

use crate::abi::{Destructor, Own, State, Tagged, calling, fail, handles, make, name, returned};
use crate::api::{c_api, destroys};
use crate::options::Options;

pub type NameCallback = extern "C-unwind" fn(*mut c_void) -> *const c_char;

/// Compares two keys.
type Compare =
    extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;

/// An order of keys.
pub struct CComparator {
    state: State,
    name: String,
    compare: Compare,
    stamped: Option<Stamped>,
}

/// What a comparator of keys with timestamps has besides.
struct Stamped {
    size: usize,
    compare_timestamps: CompareTimestamps,
    compare_without: CompareWithout,
}

/// C's handle of one.
pub struct Comparator(Arc<CComparator>);

impl Comparator {
    /// As the engine takes it.
    pub fn engine(&self) -> flagstone::Comparator {
        flagstone::Comparator::Custom(self.0.clone())
    }
}

fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

impl UserComparator for CComparator {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let state = self.state.pointer();
        let order =
            calling("a comparator", || (self.compare)(state, chars(a), a.len(), chars(b), b.len()));
        order.cmp(&0)
    }

    fn timestamp_size(&self) -> usize {
        self.stamped.as_ref().map_or(0, |stamped| stamped.size)
    }

    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(stamped) = &self.stamped else { return a.cmp(b) };
        let (state, compare) = (self.state.pointer(), stamped.compare_timestamps);
        let order = calling("a comparator of timestamps", || {
            compare(state, chars(a), a.len(), chars(b), b.len())
        });
        order.cmp(&0)
    }

    fn compare_without_timestamps(
        &self,
        (a, a_has_timestamp): (&[u8], bool),
        (b, b_has_timestamp): (&[u8], bool),
    ) -> Ordering {
        let Some(stamped) = &self.stamped else { return self.compare(a, b) };
        let (state, compare) = (self.state.pointer(), stamped.compare_without);
        let flags = (u8::from(a_has_timestamp), u8::from(b_has_timestamp));
        let order = calling("a comparator without timestamps", || {
            compare(state, chars(a), a.len(), flags.0, chars(b), b.len(), flags.1)
        });
        order.cmp(&0)
    }
}

/// Compares two timestamps.
type CompareTimestamps =
    extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
/// Compares two keys without their timestamps.
type CompareWithout =
    extern "C-unwind" fn(*mut c_void, *const c_char, usize, u8, *const c_char, usize, u8) -> c_int;

c_api! {
    fn rocksdb_comparator_create(
        state: *mut c_void, destructor: Option<Destructor>, compare: Compare, name_of: NameCallback
    ) -> *mut Tagged<Comparator> {
        let state = State::new(state, destructor);
        let name = name(name_of, &state);
        make(Comparator(Arc::new(CComparator { state, name, compare, stamped: None })))
    }

    fn rocksdb_comparator_with_ts_create(
        state: *mut c_void, destructor: Option<Destructor>, compare: Compare,
        compare_timestamps: CompareTimestamps, compare_without: CompareWithout,
        name_of: NameCallback, size: usize
    ) -> *mut Tagged<Comparator> {
        let state = State::new(state, destructor);
        let name = name(name_of, &state);
        let stamped = Some(Stamped { size, compare_timestamps, compare_without });
        make(Comparator(Arc::new(CComparator { state, name, compare, stamped })))
    }

    fn rocksdb_options_set_comparator(o: &mut Options, comparator: &Comparator) {
        o.rdb.db.cf.comparator = comparator.engine();
    }
}

/// Combines a value and operands: state, key, value or NULL, operands, their lengths, how many,
/// success, length of the result.
type FullMerge = extern "C-unwind" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;

/// Combines operands.
type PartialMerge = extern "C-unwind" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;

/// Frees the result of a merge.
type DeleteValue = extern "C-unwind" fn(*mut c_void, *const c_char, usize);

struct CMergeOperator {
    state: State,
    name: String,
    full: FullMerge,
    partial: PartialMerge,
    delete_value: Option<DeleteValue>,
}

/// C's handle of a merge operator.
pub struct Merger(Arc<CMergeOperator>);

impl Merger {
    /// As the engine takes it.
    pub fn engine(self) -> Arc<dyn MergeOperator> {
        self.0
    }
}

impl CMergeOperator {
    /// Calls one of the two with operands, and takes its result.
    fn merge(
        &self,
        operands: &[&[u8]],
        call: impl FnOnce(*const *const c_char, *const usize, *mut u8, *mut usize) -> *mut c_char,
    ) -> Option<Vec<u8>> {
        let pointers: Vec<_> = operands.iter().map(|operand| chars(operand)).collect();
        let lengths: Vec<_> = operands.iter().map(|operand| operand.len()).collect();
        let (mut success, mut len) = (0u8, 0usize);
        let result = calling("a merge operator", || {
            call(pointers.as_ptr(), lengths.as_ptr(), &raw mut success, &raw mut len)
        });
        let merged = returned(result, len, <[u8]>::to_vec);
        match self.delete_value {
            Some(delete) => {
                calling("a merge operator", || delete(self.state.pointer(), result, len));
            }
            None => crate::abi::free(result.cast()),
        }
        if success == 0 {
            return None;
        }
        // An empty result may come as NULL.
        Some(merged.unwrap_or_default())
    }
}

impl MergeOperator for CMergeOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let value = existing.map_or(std::ptr::null(), chars);
        let value_len = existing.map_or(0, <[u8]>::len);
        let (state, count) = (self.state.pointer(), operands.len() as c_int);
        self.merge(operands, |list, lengths, success, len| {
            let key_len = key.len();
            (self.full)(
                state,
                chars(key),
                key_len,
                value,
                value_len,
                list,
                lengths,
                count,
                success,
                len,
            )
        })
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let (state, count) = (self.state.pointer(), operands.len() as c_int);
        self.merge(operands, |list, lengths, success, len| {
            (self.partial)(state, chars(key), key.len(), list, lengths, count, success, len)
        })
    }
}

c_api! {
    fn rocksdb_mergeoperator_create(
        state: *mut c_void, destructor: Option<Destructor>, full: FullMerge, partial: PartialMerge,
        delete_value: Option<DeleteValue>, name_of: NameCallback
    ) -> *mut Tagged<Merger> {
        let state = State::new(state, destructor);
        let name = name(name_of, &state);
        make(Merger(Arc::new(CMergeOperator { state, name, full, partial, delete_value })))
    }

    fn rocksdb_options_set_merge_operator(o: &mut Options, operator: own Merger) {
        o.rdb.db.cf.merge_operator = operator.map(Merger::engine);
    }

    fn rocksdb_options_set_uint64add_merge_operator(o: &mut Options) {
        o.rdb.db.cf.merge_operator = Some(Arc::new(Uint64Add));
    }
}

/// RocksDB's operator that adds numbers of 64 bits, little-endian. What has another length counts
/// as 0.
struct Uint64Add;

impl Uint64Add {
    fn sum<'a>(numbers: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        numbers.map(number).fold(0, u64::wrapping_add).to_le_bytes().to_vec()
    }
}

impl MergeOperator for Uint64Add {
    fn name(&self) -> &str {
        "UInt64AddOperator"
    }

    fn option_text(&self) -> String {
        "uint64add".to_string()
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        Some(Self::sum(existing.into_iter().chain(operands.iter().copied())))
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(Self::sum(operands.iter().copied()))
    }
}

/// Decides about an entry: state, level, key, value, the new value, its length, whether there is
/// one. Returns whether the entry goes.
type Filter = extern "C-unwind" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut u8,
) -> u8;

struct CFilter {
    state: State,
    name: String,
    filter: Filter,
}

/// C's handle of a compaction filter.
pub struct CompactionFilter {
    shared: Arc<CFilter>,
    sees_snapshots: bool,
}

impl CompactionFilter {
    /// As the engine takes it.
    pub fn engine(&self) -> Arc<dyn flagstone::CompactionFilter> {
        self.shared.clone()
    }
}

impl flagstone::CompactionFilter for CFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        if kind != FilteredKind::Value {
            return FilterDecision::Keep;
        }
        let (mut new, mut len, mut is_changed) = (std::ptr::null_mut(), 0usize, 0u8);
        let goes = calling("a compaction filter", || {
            (self.filter)(
                self.state.pointer(),
                level as c_int,
                chars(key),
                key.len(),
                chars(value),
                value.len(),
                &raw mut new,
                &raw mut len,
                &raw mut is_changed,
            )
        });
        if goes != 0 {
            return FilterDecision::Remove;
        }
        if is_changed == 0 {
            return FilterDecision::Keep;
        }
        let new = returned(new, len, <[u8]>::to_vec);
        FilterDecision::ChangeValue(new.unwrap_or_default())
    }
}

/// What a factory is told.
pub struct FilterContext {
    is_full: bool,
    is_manual: bool,
}

/// Makes a filter for a part of a compaction; NULL for none. The engine destroys it.
type CreateFilter =
    extern "C-unwind" fn(*mut c_void, *mut Tagged<FilterContext>) -> Own<CompactionFilter>;

struct CFactory {
    state: State,
    name: String,
    create: CreateFilter,
}

/// C's handle of a factory.
pub struct FilterFactory(Arc<CFactory>);

impl FilterFactory {
    /// As the engine takes it.
    pub fn engine(self) -> Arc<dyn flagstone::options::CompactionFilterFactory> {
        self.0
    }
}

/// A filter that one part of a compaction has for itself.
struct Made(Arc<CFilter>);

impl flagstone::CompactionFilter for Made {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        flagstone::CompactionFilter::filter(&*self.0, level, key, kind, value)
    }
}

impl flagstone::options::CompactionFilterFactory for CFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn create_compaction_filter(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn flagstone::CompactionFilter>> {
        let told = make(FilterContext {
            is_full: context.is_full_compaction,
            is_manual: context.is_manual_compaction,
        });
        let made =
            calling("a compaction filter factory", || (self.create)(self.state.pointer(), told));
        crate::abi::unmake(told);
        let made = crate::abi::or_abort("a compaction filter factory", made.get());
        made.map(|filter| Box::new(Made(filter.shared)) as Box<dyn flagstone::CompactionFilter>)
    }
}

c_api! {
    fn rocksdb_compactionfilter_create(
        state: *mut c_void, destructor: Option<Destructor>, filter: Filter, name_of: NameCallback
    ) -> *mut Tagged<CompactionFilter> {
        let state = State::new(state, destructor);
        let name = name(name_of, &state);
        let shared = Arc::new(CFilter { state, name, filter });
        make(CompactionFilter { shared, sees_snapshots: false })
    }

    fn rocksdb_compactionfilter_set_ignore_snapshots(filter: &mut CompactionFilter, ignores: flag) {
        filter.sees_snapshots = !ignores;
    }

    fn rocksdb_options_set_compaction_filter(o: &mut Options, filter: ?CompactionFilter) {
        o.rdb.db.cf.compaction_filter = filter.map(CompactionFilter::engine);
        // RocksDB fails such compactions.
        let why = filter.is_some_and(|filter| filter.sees_snapshots).then(|| {
            rdb::Error::not_supported("compaction filters that do not ignore snapshots")
        });
        o.rdb.refuse("compaction_filter", why);
    }

    fn rocksdb_compactionfilterfactory_create(
        state: *mut c_void, destructor: Option<Destructor>, create: CreateFilter,
        name_of: NameCallback
    ) -> *mut Tagged<FilterFactory> {
        let state = State::new(state, destructor);
        let name = name(name_of, &state);
        make(FilterFactory(Arc::new(CFactory { state, name, create })))
    }

    fn rocksdb_options_set_compaction_filter_factory(o: &mut Options, factory: own FilterFactory) {
        o.rdb.db.cf.compaction_filter_factory = factory.map(FilterFactory::engine);
    }

    fn rocksdb_compactionfiltercontext_is_full_compaction(context: &FilterContext) -> u8 {
        context.is_full.into()
    }

    fn rocksdb_compactionfiltercontext_is_manual_compaction(context: &FilterContext) -> u8 {
        context.is_manual.into()
    }
}

/// Part of a key, as a callback points to it. It must lie in the key: otherwise the process ends.
fn part_of(key: &[u8], pointer: *const c_char, len: usize) -> &[u8] {
    if len == 0 {
        return &[];
    }
    let begin = (pointer as usize).wrapping_sub(key.as_ptr() as usize);
    match begin.checked_add(len).and_then(|end| key.get(begin..end)) {
        Some(part) => part,
        None => fail("a slice transform", "the prefix does not lie in the key"),
    }
}

/// Finds the prefix of a key, in the key.
pub type Transform =
    extern "C-unwind" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;
/// Whether a key has a prefix.
pub type InDomain = extern "C-unwind" fn(*mut c_void, *const c_char, usize) -> u8;

struct CTransform {
    state: State,
    name: String,
    transform: Transform,
    in_domain: InDomain,
}

impl UserPrefixExtractor for CTransform {
    fn name(&self) -> &str {
        &self.name
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let state = self.state.pointer();
        let mut len = 0usize;
        calling("a slice transform", || {
            let has_one = (self.in_domain)(state, chars(key), key.len()) != 0;
            let prefix = || (self.transform)(state, chars(key), key.len(), &raw mut len);
            has_one.then(prefix)
        })
        .map(|prefix| part_of(key, prefix, len))
    }
}

/// C's handle of a rule for prefixes.
pub struct SliceTransform(PrefixExtractor);

impl SliceTransform {
    /// As the engine takes it.
    pub fn engine(self) -> PrefixExtractor {
        self.0
    }
}

/// A rule that calls the program.
pub fn called(
    state: State,
    transform: Transform,
    in_domain: InDomain,
    name_of: NameCallback,
) -> *mut Tagged<SliceTransform> {
    let name = name(name_of, &state);
    let made = CTransform { state, name, transform, in_domain };
    make(SliceTransform(PrefixExtractor::Custom(Arc::new(made))))
}

#[cfg(not(before_11))]
c_api! {
    fn rocksdb_slicetransform_create(
        state: *mut c_void, destructor: Option<Destructor>, transform: Transform,
        in_domain: InDomain, name_of: NameCallback
    ) -> *mut Tagged<SliceTransform> {
        called(State::new(state, destructor), transform, in_domain, name_of)
    }
}

c_api! {
    fn rocksdb_slicetransform_create_fixed_prefix(len: usize) -> *mut Tagged<SliceTransform> {
        make(SliceTransform(PrefixExtractor::FixedPrefix(len)))
    }

    fn rocksdb_slicetransform_create_noop() -> *mut Tagged<SliceTransform> {
        make(SliceTransform(PrefixExtractor::Noop))
    }

    fn rocksdb_options_set_prefix_extractor(o: &mut Options, transform: own SliceTransform) {
        o.rdb.db.cf.prefix_extractor = transform.map(SliceTransform::engine);
    }
}

handles! {
    Comparator = "comparator",
    Merger = "mergeoperator",
    CompactionFilter = "compactionfilter",
    FilterContext = "compactionfiltercontext",
    FilterFactory = "compactionfilterfactory",
    SliceTransform = "slicetransform",
}

destroys! {
    rocksdb_comparator_destroy: Comparator,
    rocksdb_mergeoperator_destroy: Merger,
    rocksdb_compactionfilter_destroy: CompactionFilter,
    rocksdb_compactionfilterfactory_destroy: FilterFactory,
    rocksdb_slicetransform_destroy: SliceTransform,
}
