//! The rules as text: entries in, entries out.

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::base::merge::{MergeFailureScope, MergeOperator, StringAppendOperator};
use crate::base::{
    CompactionFilter, Comparator, FilterDecision, FilteredKind, FragmentedRangeTombstones,
    InternalIterator, InternalKey, InternalKeyComparator, MAX_SEQUENCE_NUMBER, Result,
    SequenceNumber, ValueType,
};
use crate::iter::ValueResolver;
use crate::iter::testing::{
    VecIterator, parse_entries, parse_tombstones, show_entry, show_tombstone,
};

/// A flush (unless said otherwise) of entries, written newest first per key, and tombstones.
struct Case {
    text: String,
    settings: StreamSettings,
    no_below: bool,
    filter: Option<Scripted>,
    /// The first entry of the table with the tombstones, if they do not count before it.
    table_begins: Option<&'static str>,
}

fn flush(text: &str) -> Case {
    let mut settings = StreamSettings::new(Comparator::Bytewise);
    settings.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    Case { text: text.into(), settings, no_below: false, filter: None, table_begins: None }
}

/// A compaction to the bottom.
fn full(text: &str) -> Case {
    let mut case = flush(text);
    case.settings.bottommost = true;
    case
}

struct UpperCaseBlobs;

impl ValueResolver for UpperCaseBlobs {
    fn resolve_blob(&self, _user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        Ok(blob_index.to_ascii_uppercase().into())
    }
}

/// Moves values of five bytes and more to a blob, and blobs named `inline` back.
struct FiveBytes;

impl ValueSeparator for FiveBytes {
    fn place(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ValueType>> {
        Ok(match key.value_type() {
            Some(ValueType::Value) if value.len() >= 5 => {
                out.extend_from_slice(b"blob");
                Some(ValueType::BlobIndex)
            }
            Some(ValueType::BlobIndex) if value == b"inline" => {
                out.extend_from_slice(b"back");
                Some(ValueType::Value)
            }
            _ => None,
        })
    }
}

impl Case {
    fn snapshots(mut self, snapshots: &[SequenceNumber]) -> Self {
        self.settings.snapshots = snapshots.to_vec();
        self
    }

    /// The keys exist in no deeper level.
    fn no_below(mut self) -> Self {
        self.no_below = true;
        self
    }

    fn tombstones_from(mut self, entry: &'static str) -> Self {
        self.table_begins = Some(entry);
        self
    }

    fn filter(mut self, filter: Scripted) -> Self {
        self.filter = Some(filter);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut StreamSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    fn tombstones(&self) -> StreamTombstones {
        let words: Vec<_> =
            self.text.split_whitespace().filter(|word| word.starts_with('[')).collect();
        let tombstones = parse_tombstones(&words.join(" "));
        let whole = Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, tombstones));
        let counting = match self.table_begins {
            Some(entry) => {
                let bounds = parse_entries(&format!("{entry} ~@0:DEL"));
                let [first, last] = [&bounds[0].0, &bounds[1].0];
                whole.truncated(first.as_key(), last.as_key())
            }
            None => whole.untruncated(),
        };
        StreamTombstones::new(&Comparator::Bytewise, &[counting], &self.settings.snapshots)
    }

    fn run(self) -> Result<String> {
        self.run_to_the_end().map(|(shown, _)| shown)
    }

    /// What is wrong with keys.
    fn faults(self) -> String {
        let faults = self.run_to_the_end().unwrap().1;
        let each = faults
            .iter()
            .map(|fault| format!("{}: {}", fault.user_key.escape_ascii(), fault.error));
        each.collect::<Vec<_>>().join("; ")
    }

    fn run_to_the_end(self) -> Result<(String, Vec<KeyError>)> {
        let tombstones = self.tombstones();
        let words: Vec<_> =
            self.text.split_whitespace().filter(|word| !word.starts_with('[')).collect();
        let comparator = InternalKeyComparator::new(Comparator::Bytewise);
        let mut input = VecIterator::new(comparator, parse_entries(&words.join(" ")));
        input.seek_to_first();
        let (no_below, bottommost) = (self.no_below, self.settings.bottommost);
        let snapshots = self.settings.snapshots.clone();
        let filter = self.filter.as_ref().map(|filter| filter as &dyn CompactionFilter);
        let mut stream = CompactionStream::new(
            self.settings,
            input,
            &tombstones,
            move |_| no_below,
            filter,
            UpperCaseBlobs,
            FiveBytes,
        );
        let mut shown = Vec::new();
        while stream.valid() {
            shown.push(show_entry(stream.key(), stream.value()));
            stream.next();
        }
        stream.status()?;
        shown.extend(
            tombstones
                .surviving(&snapshots, bottommost, |_, _| no_below)
                .iter()
                .map(show_tombstone),
        );
        Ok((shown.join(" "), stream.take_faults()))
    }

    #[track_caller]
    fn gives(self, expected: &str) {
        let text = self.text.clone();
        assert_eq!(self.run().unwrap(), expected, "from {text}");
    }
}

/// What RocksDB 11.9 was observed to do.
#[test]
fn observed_outcomes() {
    full("a@3:MERGE(y) a@2:MERGE(x) a@1:PUT(1)").snapshots(&[2]).gives("a@3:MERGE(y) a@0:PUT(1,x)");
    full("a@2:SD a@1:PUT()").snapshots(&[1]).gives("a@2:SD a@0:PUT()");
    flush("a@2:SD a@1:PUT()").gives("");
    full("a@2:SD a@0:PUT()").gives("");
    full("a@1:SD b@2:PUT()").gives("b@0:PUT()");
    flush("a@1:PUT() b@2:PUT() c@3:PUT() [a,c)@4").gives("c@3:PUT() [a,c)@4");
    full("a@1:PUT(1) b@4:PUT(9) b@2:PUT(2) [a,c)@3")
        .snapshots(&[2])
        .gives("a@0:PUT(1) b@4:PUT(9) b@0:PUT(2) [a,c)@3");
    flush("a@2:DEL a@1:PUT()").gives("a@2:DEL");
    full("a@2:DEL a@1:PUT()").gives("");
    flush("a@2:MERGE(2) a@1:MERGE(1)").gives("a@2:MERGE(1,2)");
    full("a@2:MERGE(1,2)").gives("a@0:PUT(1,2)");
    flush("a@3:MERGE(2) a@2:MERGE(1) a@1:DEL").gives("a@3:PUT(1,2)");
    full("a@3:PUT(1,2)").gives("a@0:PUT(1,2)");
    full("a@5:PUT() a@3:PUT() b@4:DEL b@2:PUT()").snapshots(&[4]).gives("a@5:PUT() a@0:PUT()");
}

#[test]
fn a_newer_entry_of_the_same_stripe_hides_older_ones() {
    flush("a@9:PUT(c) a@5:PUT(b) a@3:PUT(a)").gives("a@9:PUT(c)");
    flush("a@9:PUT(c) a@5:PUT(b) a@3:PUT(a)").snapshots(&[5]).gives("a@9:PUT(c) a@5:PUT(b)");
    flush("a@9:PUT(c) a@5:PUT(b) a@3:PUT(a)")
        .snapshots(&[4, 6])
        .gives("a@9:PUT(c) a@5:PUT(b) a@3:PUT(a)");
    flush("a@9:PUT(c) a@5:PUT(b) a@3:PUT(a)").snapshots(&[1]).gives("a@9:PUT(c)");
}

#[test]
fn a_deletion_goes_when_nothing_is_left_to_delete() {
    flush("a@5:DEL").no_below().gives("");
    flush("a@5:DEL").no_below().snapshots(&[4]).gives("a@5:DEL");
    flush("a@5:DEL a@3:PUT()").no_below().snapshots(&[9]).gives("");
    flush("a@5:DEL a@3:PUT()").no_below().snapshots(&[4]).gives("a@5:DEL a@3:PUT()");
    full("a@5:DEL a@3:PUT()").snapshots(&[4]).gives("a@5:DEL a@0:PUT()");
    full("a@7:DEL a@6:PUT() a@5:PUT()").snapshots(&[4]).gives("");
    full("a@7:DEL a@6:PUT() a@3:PUT()").snapshots(&[4]).gives("a@7:DEL a@0:PUT()");
    full("a@5:DEL").with(|settings| settings.ingest_behind = true).gives("a@5:DEL");
    full("a@5:PUT()").with(|settings| settings.ingest_behind = true).gives("a@5:PUT()");
}

#[test]
fn sequence_numbers_become_zero_at_the_bottom() {
    full("a@5:PUT() b@6:BLOB() c@4:ENTITY(x)").gives("a@0:PUT() b@0:BLOB() c@0:ENTITY(x)");
    full("a@5:PUT() b@6:PUT()").snapshots(&[5]).gives("a@0:PUT() b@6:PUT()");
    full("a@9:MERGE(z) a@5:MERGE(y) a@4:PUT(x)")
        .snapshots(&[4, 6])
        .gives("a@9:MERGE(z) a@5:MERGE(y) a@0:PUT(x)");
}

#[test]
fn a_single_deletion_and_its_value_go_together() {
    flush("a@4:SD a@3:PUT() a@2:SD a@1:PUT()").gives("");
    flush("a@5:PUT(n) a@4:SD a@3:PUT()").gives("a@5:PUT(n)");
    flush("a@4:SD a@3:SD a@2:PUT()").gives("");
    flush("a@4:SD a@3:BLOB()").gives("");
    flush("a@4:SD").gives("a@4:SD");
    flush("a@4:SD").no_below().gives("");
    flush("a@4:SD").no_below().snapshots(&[3]).gives("a@4:SD");
    // It may be needed for the older value even where a newer one hides it.
    flush("a@5:PUT(n) a@4:SD a@3:PUT()").snapshots(&[3]).gives("a@5:PUT(n) a@4:SD a@3:PUT()");
    flush("a@5:PUT(n) a@4:SD").gives("a@5:PUT(n) a@4:SD");
    full("a@5:PUT(n) a@4:SD").gives("a@0:PUT(n)");
    flush("a@7:SD a@5:PUT() [a,b)@3").gives("[a,b)@3");
}

#[test]
fn a_transaction_keeps_the_single_deletion_it_has_to_see() {
    let conflicts_at =
        |sequence| move |settings: &mut StreamSettings| settings.write_conflict_snapshot = sequence;
    flush("a@4:SD a@3:PUT(long)").with(conflicts_at(3)).gives("a@4:SD a@3:PUT()");
    flush("a@4:SD a@3:BLOB(x)").with(conflicts_at(3)).gives("a@4:SD a@3:PUT()");
    flush("a@4:SD a@3:PUT(long)").with(conflicts_at(4)).gives("");
    flush("a@5:PUT(n) a@4:SD a@3:PUT(long)").with(conflicts_at(3)).gives("a@5:PUT(n)");
}

#[test]
fn mixing_single_and_plain_deletions_is_reported() {
    let text = "a@4:SD a@3:DEL a@2:PUT()";
    let faults = flush(text).faults();
    assert!(faults.starts_with("a: ") && faults.contains("single deletion a@4"), "{faults}");
    flush(text).gives("a@3:DEL");
    let lenient = |settings: &mut StreamSettings| settings.enforce_single_del_contracts = false;
    assert_eq!(flush(text).with(lenient).faults(), "");
    flush(text).with(lenient).gives("a@3:DEL");
    flush("a@4:SD a@3:DEL").snapshots(&[3]).gives("a@4:SD a@3:DEL");
}

#[test]
fn operands_meet_their_base_within_a_stripe() {
    flush("a@3:MERGE(z) a@2:MERGE(y) a@1:PUT(x)").gives("a@3:BLOB(blob)");
    flush("a@3:MERGE(z) a@1:PUT(x)").gives("a@3:PUT(x,z)");
    flush("a@3:MERGE(z) a@1:PUT(x)").snapshots(&[1]).gives("a@3:MERGE(z) a@1:PUT(x)");
    flush("a@3:MERGE(z) a@1:BLOB(b)").gives("a@3:PUT(B,z)");
    flush("a@3:MERGE(z) a@1:ENTITY(e)").gives("a@3:ENTITY(e,z)");
    flush("a@3:MERGE(z) a@1:TIMED(t/1)").gives("a@3:PUT(t,z)");
    flush("a@3:MERGE(z) a@2:SD a@1:PUT(x)").gives("a@3:PUT(z)");
    flush("a@3:MERGE(z) a@2:DEL a@1:PUT(x)").snapshots(&[1]).gives("a@3:PUT(z) a@1:PUT(x)");
    flush("a@9:MERGE(z) a@8:MERGE(y) a@5:MERGE(x) a@4:MERGE(w)")
        .snapshots(&[5])
        .gives("a@9:MERGE(y,z) a@5:MERGE(w,x)");
    flush("a@3:MERGE(z)").gives("a@3:MERGE(z)");
    full("a@3:MERGE(z)").with(|settings| settings.ingest_behind = true).gives("a@3:MERGE(z)");
    flush("a@4:PUT(n) a@3:MERGE(z) a@2:MERGE(y)").gives("a@4:PUT(n)");
}

#[test]
fn range_tombstones_end_a_merge() {
    flush("a@5:MERGE(z) a@3:MERGE(y) a@2:PUT(x) [a,b)@4").gives("a@5:PUT(z) [a,b)@4");
    flush("a@5:MERGE(z) a@3:MERGE(y) [a,b)@4").gives("a@5:MERGE(z) [a,b)@4");
    flush("a@3:MERGE(z) a@2:PUT(x) b@6:PUT(k) [a,c)@4").gives("b@6:PUT(k) [a,c)@4");
    flush("a@3:MERGE(z) a@2:PUT(x) [a,c)@4").snapshots(&[3]).gives("a@3:PUT(x,z) [a,c)@4");
}

#[test]
fn operands_that_cannot_be_combined_stay() {
    let separate = |settings: &mut StreamSettings| {
        settings.merge_operator = Some(Arc::new(StringAppendOperator::without_partial_merge(",")));
    };
    flush("a@3:MERGE(z) a@2:MERGE(y)").with(separate).gives("a@3:MERGE(z) a@2:MERGE(y)");
    full("a@3:MERGE(z) a@2:MERGE(y)").with(separate).gives("a@0:PUT(y,z)");
    let none = |settings: &mut StreamSettings| settings.merge_operator = None;
    let text = "a@3:MERGE(z) a@2:MERGE(y) a@1:PUT(x)";
    flush(text).with(none).gives(text);
    assert!(flush(text).with(none).faults().contains("key 'a' has merge operands, but"));
}

struct Refusing(MergeFailureScope);

impl MergeOperator for Refusing {
    fn name(&self) -> &str {
        "Refusing"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        _existing: Option<&[u8]>,
        _operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        None
    }

    fn failure_scope(&self) -> MergeFailureScope {
        self.0
    }
}

#[test]
fn a_refused_merge_stays_unmerged_and_is_told_unless_it_is_expected() {
    let refusing = |scope| {
        move |settings: &mut StreamSettings| {
            settings.merge_operator = Some(Arc::new(Refusing(scope)))
        }
    };
    let text = "a@3:MERGE(z) a@2:MERGE(y) a@1:PUT(x) b@1:PUT(k)";
    flush(text).with(refusing(MergeFailureScope::TryMerge)).gives(text);
    let faults = flush(text).with(refusing(MergeFailureScope::TryMerge)).faults();
    assert_eq!(
        faults,
        "a: corruption: merge operator 'Refusing' refused the 2 operands of key 'a'"
    );
    flush(text).with(refusing(MergeFailureScope::MustMerge)).gives(text);
    assert_eq!(flush(text).with(refusing(MergeFailureScope::MustMerge)).faults(), "");
    full("a@3:MERGE(z) a@1:PUT(x)")
        .with(refusing(MergeFailureScope::MustMerge))
        .gives("a@3:MERGE(z) a@0:PUT(x)");
    full("a@3:MERGE(z)").with(refusing(MergeFailureScope::MustMerge)).gives("a@3:MERGE(z)");
}

/// The table refused the entry, and with it the compaction or the flush failed, again and again.
#[test]
fn what_no_table_can_hold_stays_unmerged() {
    let most = |bytes| move |settings: &mut StreamSettings| settings.entry_size_max = bytes;
    let text = "a@3:MERGE(z) a@2:MERGE(y) a@1:PUT(x) b@1:PUT(k)";
    flush(text).with(most(5)).gives(text);
    flush(text).with(most(6)).gives("a@3:BLOB(blob) b@1:PUT(k)");
    full("a@3:MERGE(z) a@1:PUT(x)").with(most(3)).gives("a@3:MERGE(z) a@0:PUT(x)");
    full("a@3:MERGE(z) a@2:MERGE(y)").with(most(3)).gives("a@3:MERGE(z) a@2:MERGE(y)");
    flush("a@3:MERGE(z) a@2:MERGE(y)").with(most(3)).gives("a@3:MERGE(z) a@2:MERGE(y)");
    flush("a@3:MERGE(z) a@2:MERGE(y)").with(most(4)).gives("a@3:MERGE(y,z)");
    // The merged column would fit by itself.
    flush("a@3:MERGE(z) a@1:ENTITY(e)").with(most(6)).gives("a@3:MERGE(z) a@1:ENTITY(e)");
}

#[test]
fn range_tombstones_drop_what_no_snapshot_sees() {
    flush("a@1:PUT() b@2:DEL b@1:PUT() c@9:PUT() c@3:PUT() [a,d)@5").gives("c@9:PUT() [a,d)@5");
    flush("a@1:PUT() a@0:PUT() [a,d)@5").snapshots(&[1]).gives("a@1:PUT() [a,d)@5");
    flush("a@3:PUT() [a,d)@5 [a,d)@9").snapshots(&[6]).gives("[a,d)@9 [a,d)@5");
    flush("a@5:PUT() [a,d)@5").gives("a@5:PUT() [a,d)@5");
    full("a@3:PUT() b@7:PUT() [a,d)@5").gives("b@0:PUT()");
    full("a@3:PUT() [a,d)@5").snapshots(&[4]).gives("a@0:PUT() [a,d)@5");
}

#[test]
fn a_timed_value_takes_its_preferred_sequence_number() {
    flush("a@8:TIMED(v/3)").gives("a@8:TIMED(v/3)");
    flush("a@8:TIMED(v/3)").no_below().gives("a@3:PUT(v)");
    full("a@8:TIMED(v/3)").gives("a@0:PUT(v)");
    full("a@8:TIMED(v/3)").snapshots(&[7]).gives("a@8:TIMED(v/3)");
    full("a@8:TIMED(v/3) [a,b)@5").gives("a@8:TIMED(v/3)");
    full("a@8:TIMED(v/3) [a,b)@9").gives("");
    // Such a tombstone was not seen over the value as it was, and then dropped it.
    full("a@8:TIMED(v/0) a@5:DEL a@2:PUT(old) [a,b)@5")
        .tombstones_from("a@5:DEL")
        .gives("a@8:TIMED(v/0)");
    full("a@8:TIMED(v/6) a@5:DEL a@2:PUT(old) [a,b)@5")
        .tombstones_from("a@5:DEL")
        .gives("a@0:PUT(v)");
}

#[test]
fn large_values_are_separated_and_blobs_come_back() {
    flush("a@1:PUT(12345) b@2:PUT(1234) c@3:BLOB(inline) d@4:BLOB(stays)")
        .gives("a@1:BLOB(blob) b@2:PUT(1234) c@3:PUT(back) d@4:BLOB(stays)");
    full("a@1:PUT(12345)").gives("a@0:BLOB(blob)");
}

#[test]
fn an_unknown_type_fails_the_compaction() {
    struct Strange;
    impl InternalIterator for Strange {
        fn valid(&self) -> bool {
            true
        }
        fn seek_to_first(&mut self) {}
        fn seek_to_last(&mut self) {}
        fn seek(&mut self, _target: InternalKey<'_>) {}
        fn seek_for_prev(&mut self, _target: InternalKey<'_>) {}
        fn next(&mut self) {}
        fn prev(&mut self) {}
        fn key(&self) -> InternalKey<'_> {
            InternalKey::from_checked(b"k\x7f\0\0\0\0\0\0\0")
        }
        fn value(&self) -> &[u8] {
            b""
        }
        fn status(&self) -> Result<()> {
            Ok(())
        }
    }
    let none = StreamTombstones::new(&Comparator::Bytewise, &[], &[]);
    let settings = StreamSettings::new(Comparator::Bytewise);
    let stream = CompactionStream::new(
        settings,
        Strange,
        &none,
        |_| false,
        None,
        UpperCaseBlobs,
        KeepInPlace,
    );
    assert!(!stream.valid() && stream.status().unwrap_err().is_corruption());
}

#[test]
fn a_failing_input_fails_the_stream_wherever_it_fails() {
    let text = "a@3:SD a@2:PUT() b@5:MERGE() b@4:MERGE() c@6:DEL c@5:PUT()";
    for index in 0..6 {
        let none = StreamTombstones::new(&Comparator::Bytewise, &[], &[]);
        let mut settings = StreamSettings::new(Comparator::Bytewise);
        settings.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
        settings.bottommost = true;
        settings.snapshots = vec![1];
        let mut input = VecIterator::parse(text).failing_after(index);
        input.seek_to_first();
        let mut stream = CompactionStream::new(
            settings,
            input,
            &none,
            |_| false,
            None,
            UpperCaseBlobs,
            KeepInPlace,
        );
        while stream.valid() {
            stream.next();
        }
        assert!(stream.status().unwrap_err().is_corruption(), "at {index}");
    }
}

/// A filter that decides by the value's text, and remembers what it was shown.
#[derive(Default)]
struct Scripted {
    by_key: bool,
    shown: Arc<parking_lot::Mutex<Vec<String>>>,
}

impl CompactionFilter for Scripted {
    fn name(&self) -> &str {
        "Scripted"
    }

    fn filter(&self, _level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        let text = format!("{}={}", key.escape_ascii(), value.escape_ascii());
        self.shown.lock().push(text);
        match (value, kind) {
            (b"rm" | b"RM", _) => FilterDecision::Remove,
            (b"purge", _) => FilterDecision::Purge,
            (b"up", _) => FilterDecision::ChangeValue(b"UP".to_vec()),
            (b"skip", _) => FilterDecision::RemoveAndSkipUntil(b"d".to_vec()),
            (b"entity", _) => {
                FilterDecision::ChangeEntity(crate::base::entity::encode(&[(b"", b"e")]))
            }
            (b"nonsense", _) => FilterDecision::ChangeEntity(b"nonsense".to_vec()),
            _ => FilterDecision::Keep,
        }
    }

    fn filter_by_key(&self, _level: u32, _key: &[u8]) -> Option<FilterDecision> {
        self.by_key.then_some(FilterDecision::Keep)
    }
}

#[test]
fn the_filter_decides_about_the_newest_value_of_a_key() {
    let case = |case: Case| case.filter(Scripted::default());
    case(flush("a@2:PUT(rm) a@1:PUT(x)")).gives("a@2:DEL");
    case(full("a@2:PUT(rm) a@1:PUT(x)")).gives("");
    case(full("a@2:PUT(rm) a@1:PUT(x)")).snapshots(&[1]).gives("a@2:DEL a@0:PUT(x)");
    case(flush("a@2:PUT(purge) b@1:PUT(x)")).gives("a@2:SD b@1:PUT(x)");
    case(full("a@2:PUT(purge) b@1:PUT(x)")).gives("b@0:PUT(x)");
    case(flush("a@2:PUT(up) a@1:PUT(rm)")).gives("a@2:PUT(UP)");
    case(flush("a@2:PUT(x) a@1:PUT(rm)")).snapshots(&[1]).gives("a@2:PUT(x) a@1:PUT(rm)");
    case(flush("a@2:PUT(rm)")).snapshots(&[2]).gives("a@2:DEL");
    case(flush("a@2:PUT(skip) b@3:PUT(x) c@4:DEL d@5:PUT(y)")).gives("d@5:PUT(y)");
    case(flush("e@2:PUT(skip)")).gives("e@2:PUT(skip)");
    case(flush("a@2:DEL a@1:PUT(up)")).gives("a@2:DEL");
    case(flush("a@2:BLOB(rm) b@1:BLOB(x)")).gives("a@2:DEL b@1:BLOB(x)");
}

/// One value too large, or an entity that nobody can read, failed the compaction, and each that
/// followed: where none had asked for it the database was poisoned, at each opening anew.
#[test]
fn what_a_filter_makes_that_cannot_be_stored_or_read_leaves_the_entry_as_it_was() {
    let case = |text: &str, bytes: usize| {
        let case = flush(text).filter(Scripted::default());
        case.with(|settings| settings.entry_size_max = bytes)
    };
    case("a@2:PUT(entity)", 6).gives("a@2:ENTITY(e)");
    // It was a plain value, and one so long goes to a blob file.
    case("a@2:PUT(entity)", 5).gives("a@2:BLOB(blob)");
    case("a@2:PUT(up) b@1:PUT(rm)", 2).gives("a@2:PUT(up) b@1:DEL");
    case("a@3:MERGE(up) b@1:PUT(x)", 2).gives("a@3:MERGE(up) b@1:PUT(x)");
    case("a@2:PUT(nonsense)", 100).gives("a@2:BLOB(blob)");
}

#[test]
fn a_filter_that_decides_by_key_needs_no_blobs() {
    let filter = Scripted { by_key: true, ..Scripted::default() };
    let shown = filter.shown.clone();
    flush("a@2:BLOB(rm) b@1:PUT(x)").filter(filter).gives("a@2:BLOB(rm) b@1:PUT(x)");
    assert_eq!(*shown.lock(), ["b=x"]);
}

#[test]
fn operands_are_filtered_unless_a_snapshot_sees_them() {
    let case = |case: Case| case.filter(Scripted::default());
    case(flush("a@3:MERGE(rm) a@2:MERGE(y) a@1:PUT(x)")).gives("a@2:PUT(x,y)");
    case(flush("a@3:MERGE(rm) a@1:PUT(x)")).gives("a@1:PUT(x)");
    case(flush("a@3:MERGE(up) a@1:PUT(x)")).gives("a@3:PUT(x,UP)");
    case(flush("a@3:MERGE(rm) a@1:PUT(x)")).snapshots(&[3]).gives("a@3:PUT(x,rm)");
    case(flush("a@3:MERGE(skip) a@1:PUT(x) c@2:PUT(z) d@5:PUT(y)")).gives("d@5:PUT(y)");
}

#[test]
fn no_snapshot_sees_all_of_time_as_one_stripe() {
    let settings = StreamSettings::new(Comparator::Bytewise);
    assert_eq!(settings.stripe(0), MAX_SEQUENCE_NUMBER);
    let settings = StreamSettings { snapshots: vec![3, 5], ..settings };
    assert_eq!(
        [0, 3, 4, 5, 6].map(|sequence| settings.stripe(sequence)),
        [3, 3, 5, 5, MAX_SEQUENCE_NUMBER]
    );
}
