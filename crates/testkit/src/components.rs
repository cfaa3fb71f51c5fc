//! Components of an application's own. Most change nothing but the way through the engine; what the
//! others change, a [`crate::Model`] knows.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use flagstone::WideColumns;
use flagstone::base::{Comparator, Error, Result, UserComparator};
use flagstone::options::{
    ColumnFamilyOptions, CompactionFilter, CompactionFilterContext, CompactionFilterFactory,
    FilterDecision, FilteredKind, TableFileCreationReason,
};

use crate::fakes::{broken_decision, broken_order};
use crate::model::{ONCE, Order, SINGLE};

/// Sets an option of a family; besides the engine's own, `comparator`, `compaction_filter` and its
/// factory may be ours.
///
/// # Errors
/// As [`ColumnFamilyOptions::set`].
pub fn set(options: &mut ColumnFamilyOptions, name: &str, value: &str) -> Result<()> {
    match (name, value) {
        ("comparator", PlainOrder::NAME) => {
            options.comparator = Comparator::Custom(Arc::new(PlainOrder))
        }
        ("comparator", AnyCase::NAME) => {
            options.comparator = Comparator::Custom(broken_order(Arc::new(AnyCase)))
        }
        ("comparator", Padded::NAME) => {
            options.comparator = Comparator::Custom(broken_order(Arc::new(Padded)))
        }
        ("compaction_filter", "nullptr") => options.compaction_filter = None,
        ("compaction_filter", SameAgain::NAME) => {
            options.compaction_filter = Some(Arc::new(SameAgain))
        }
        ("compaction_filter", Thinning::NAME) => {
            options.compaction_filter = Some(Arc::new(Thinning))
        }
        ("compaction_filter_factory", "nullptr") => options.compaction_filter_factory = None,
        ("compaction_filter_factory", SameAgain::NAME) => {
            options.compaction_filter_factory = Some(Arc::new(SameAgain));
        }
        ("compaction_filter_factory", Thinning::NAME) => {
            options.compaction_filter_factory = Some(Arc::new(Thinning));
        }
        _ => return options.set(name, value),
    }
    Ok(())
}

/// Whether an application may choose these options, which the engine takes: no filter may tell keys
/// apart that are the same. Those of tables hold no whole keys in such an order.
///
/// # Errors
/// `InvalidArgument` if not.
pub fn check(options: &ColumnFamilyOptions) -> Result<()> {
    let tells_apart = options.prefix_extractor.is_some() || options.memtable_whole_key_filtering;
    if tells_apart && [AnyCase::NAME, Padded::NAME].contains(&options.comparator.name()) {
        Err(Error::invalid_argument("a filter tells keys apart that are the same in this order"))
    } else {
        Ok(())
    }
}

/// The order as a model knows it.
pub fn order(comparator: &Comparator) -> Order {
    match comparator.name() {
        AnyCase::NAME => Order::AnyCase,
        Padded::NAME => Order::Padded,
        "rocksdb.ReverseBytewiseComparator" => Order::Reversed,
        _ => Order::Bytewise,
    }
}

/// Whether a filter of these options drops or changes anything.
pub fn thins(options: &ColumnFamilyOptions) -> bool {
    let filter =
        options.compaction_filter.as_ref().is_some_and(|filter| filter.name() == Thinning::NAME);
    let factory = &options.compaction_filter_factory;
    filter || factory.as_ref().is_some_and(|factory| factory.name() == Thinning::NAME)
}

/// The order of bytes, which the engine cannot know it to be.
struct PlainOrder;

impl PlainOrder {
    const NAME: &'static str = "testkit.PlainOrder";
}

impl UserComparator for PlainOrder {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

/// Letters of either case are the same.
pub struct AnyCase;

impl AnyCase {
    const NAME: &'static str = "testkit.AnyCase";

    /// One of the keys that are the same as this one, always the same one.
    pub fn known_as(key: &[u8]) -> Cow<'_, [u8]> {
        if key.iter().any(u8::is_ascii_uppercase) {
            Cow::Owned(key.to_ascii_lowercase())
        } else {
            Cow::Borrowed(key)
        }
    }
}

impl UserComparator for AnyCase {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.iter().map(u8::to_ascii_lowercase).cmp(b.iter().map(u8::to_ascii_lowercase))
    }
}

/// Zeros at the end mean nothing: keys of different lengths may be the same.
pub struct Padded;

impl Padded {
    const NAME: &'static str = "testkit.Padded";

    /// The shortest of the keys that are the same as this one.
    pub fn known_as(key: &[u8]) -> &[u8] {
        let end = key.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &key[..end]
    }
}

impl UserComparator for Padded {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        Self::known_as(a).cmp(Self::known_as(b))
    }
}

/// Keeps all values, of which it lets some be written anew and some be read in vain.
struct SameAgain;

impl SameAgain {
    const NAME: &'static str = "testkit.SameAgain";
}

impl CompactionFilter for SameAgain {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn filter(&self, _level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        match key.last() {
            Some(last) if last % 2 == 0 && kind == FilteredKind::WideColumnEntity => {
                FilterDecision::ChangeEntity(value.to_vec())
            }
            Some(last) if last % 2 == 0 => FilterDecision::ChangeValue(value.to_vec()),
            _ => FilterDecision::Keep,
        }
    }

    fn filter_by_key(&self, _level: u32, key: &[u8]) -> Option<FilterDecision> {
        (key.last().is_some_and(|last| last % 3 == 0)).then_some(FilterDecision::Keep)
    }
}

/// As a factory, it filters flushes and recovery, too.
impl CompactionFilterFactory for SameAgain {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn should_filter_table_file_creation(&self, _reason: TableFileCreationReason) -> bool {
        true
    }

    fn create_compaction_filter(
        &self,
        _context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        Some(Box::new(Self))
    }
}

/// What [`Thinning`] does with a key's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Remove,
    RemoveUnlessMerged,
    Shout,
    RemoveAndSkip,
    BeSkipped,
}

/// Removes the values of some keys, and turns those of others into capital letters; never of keys
/// for single deletions. Of those that are put once it drops some with all up to the next but one,
/// whatever is between.
pub struct Thinning;

impl Thinning {
    const NAME: &'static str = "testkit.Thinning";

    fn fate(key: &[u8]) -> Fate {
        let is = |kind| key.first().is_some_and(|first| first.to_ascii_lowercase() == kind);
        // Whatever the order is that they are sorted in.
        match Padded::known_as(key).last() {
            _ if is(SINGLE) => Fate::Keep,
            last if is(ONCE) => match last {
                // Those in capital letters are put more than once, where the order takes them for
                // others.
                Some(b'7') if key.first() == Some(&ONCE) => Fate::RemoveAndSkip,
                Some(b'8') if key.first() == Some(&ONCE) => Fate::BeSkipped,
                _ => Fate::Keep,
            },
            Some(b'2') => Fate::Shout,
            Some(b'4') => Fate::RemoveUnlessMerged,
            Some(b'7') => Fate::Remove,
            _ => Fate::Keep,
        }
    }

    /// What removes the key and goes on at the next but one.
    fn skip(key: &[u8]) -> FilterDecision {
        let mut until = Padded::known_as(key).to_vec();
        until.pop();
        until.push(b'9');
        FilterDecision::RemoveAndSkipUntil(until)
    }

    /// Whether the key may be gone.
    pub fn may_remove(key: &[u8]) -> bool {
        !matches!(Self::fate(key), Fate::Keep | Fate::Shout)
    }

    /// Whether the key may have the value `left`, and not `value`. What was merged onto a value
    /// that was removed stays; of operands some may have been removed, and others not yet.
    pub fn may_leave(key: &[u8], value: &[u8], left: &[u8]) -> bool {
        let mut pieces = value.split(|byte| *byte == b',');
        match Self::fate(key) {
            Fate::Keep | Fate::RemoveAndSkip | Fate::BeSkipped => false,
            Fate::Remove => {
                left.split(|byte| *byte == b',').all(|left| pieces.any(|piece| piece == left))
            }
            Fate::RemoveUnlessMerged => {
                let before = value.strip_suffix(left);
                before.is_some_and(|before| before.last() == Some(&b','))
            }
            Fate::Shout => value.eq_ignore_ascii_case(left),
        }
    }
}

impl CompactionFilter for Thinning {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn filter(&self, _level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        broken_decision(match Self::fate(key) {
            Fate::Keep | Fate::BeSkipped => FilterDecision::Keep,
            Fate::RemoveAndSkip => Self::skip(key),
            Fate::Remove => FilterDecision::Remove,
            Fate::RemoveUnlessMerged => FilterDecision::RemoveUnlessMerged,
            Fate::Shout if kind == FilteredKind::WideColumnEntity => {
                let columns = WideColumns::decode(value).expect("an entity");
                let loud = columns.iter().map(|(name, value)| (name, value.to_ascii_uppercase()));
                FilterDecision::change_columns(loud).expect("the same names")
            }
            Fate::Shout => FilterDecision::ChangeValue(value.to_ascii_uppercase()),
        })
    }

    fn filter_by_key(&self, _level: u32, key: &[u8]) -> Option<FilterDecision> {
        let decision = match Self::fate(key) {
            Fate::Remove if key.len().is_multiple_of(2) => Some(FilterDecision::Remove),
            Fate::RemoveAndSkip if key.len().is_multiple_of(2) => Some(Self::skip(key)),
            _ => None,
        };
        decision.map(broken_decision)
    }
}

/// As a factory, it filters flushes, and what is written when the database is opened, too.
impl CompactionFilterFactory for Thinning {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn should_filter_table_file_creation(&self, _reason: TableFileCreationReason) -> bool {
        true
    }

    fn create_compaction_filter(
        &self,
        _context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        Some(Box::new(Self))
    }
}
