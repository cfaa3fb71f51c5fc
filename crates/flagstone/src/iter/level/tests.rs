use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::testing::VecIterator;
use super::*;
use crate::base::{Comparator, InternalKeyBuf, MAX_SEQUENCE_NUMBER, ValueType};

struct Files {
    files: Vec<(InternalKeyBuf, InternalKeyBuf, Option<VecIterator>)>,
    opened: Arc<AtomicUsize>,
}

impl SortedFiles for Files {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn smallest(&self, index: usize) -> InternalKey<'_> {
        self.files[index].0.as_key()
    }

    fn largest(&self, index: usize) -> InternalKey<'_> {
        self.files[index].1.as_key()
    }
}

impl FileOpener for Files {
    type Cursor = VecIterator;

    fn open(&self, index: usize) -> Result<VecIterator> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.files[index].2.clone().ok_or_else(|| Error::corruption("cannot open"))
    }
}

/// Each file as `smallest-largest` user keys and its entries; `-` for one that cannot be opened.
fn level(files: &[(&str, &str, &str)]) -> (Files, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let make = |&(smallest, largest, entries): &(&str, &str, &str)| {
        let end =
            InternalKeyBuf::new(largest.as_bytes(), MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
        let cursor = (entries != "-").then(|| VecIterator::parse(entries));
        (InternalKeyBuf::new(smallest.as_bytes(), 9, ValueType::RangeDeletion), end, cursor)
    };
    (Files { files: files.iter().map(make).collect(), opened: opened.clone() }, opened)
}

fn concat(files: Files, bounds: KeyBounds) -> ConcatIterator<Files> {
    ConcatIterator::new(InternalKeyComparator::new(Comparator::Bytewise), files, bounds)
}

fn walk(cursor: &mut ConcatIterator<Files>, step: fn(&mut ConcatIterator<Files>)) -> String {
    let mut seen = String::new();
    while cursor.valid() {
        seen.push_str(&cursor.key().user_key().escape_ascii().to_string());
        step(cursor);
    }
    cursor.status().unwrap();
    seen
}

const THREE: [(&str, &str, &str); 3] =
    [("a", "d", "a@1:PUT() b@1:PUT()"), ("d", "k", ""), ("k", "z", "m@1:PUT() n@1:PUT()")];

#[test]
fn files_without_entries_are_passed_in_both_directions() {
    let mut cursor = concat(level(&THREE).0, KeyBounds::default());
    cursor.seek_to_first();
    assert_eq!(walk(&mut cursor, ConcatIterator::next), "abmn");
    cursor.seek_to_last();
    assert_eq!(walk(&mut cursor, ConcatIterator::prev), "nmba");
    for (target, after, before) in
        [("b", "bmn", "ba"), ("c", "mn", "ba"), ("f", "mn", "ba"), ("x", "", "nmba")]
    {
        let target = InternalKeyBuf::new(target.as_bytes(), 1, ValueType::Value);
        cursor.seek(target.as_key());
        assert_eq!(walk(&mut cursor, ConcatIterator::next), after);
        cursor.seek_for_prev(target.as_key());
        assert_eq!(walk(&mut cursor, ConcatIterator::prev), before);
    }
    cursor.seek_for_prev(InternalKeyBuf::new(b"A", 1, ValueType::Value).as_key());
    assert!(!cursor.valid());
}

#[test]
fn a_file_is_opened_only_when_the_scan_gets_there() {
    let (files, opened) = level(&THREE);
    let mut cursor = concat(files, KeyBounds { lower: None, upper: Some(b"c"[..].into()) });
    assert_eq!(opened.load(Ordering::Relaxed), 0);
    cursor.seek_to_first();
    assert_eq!(walk(&mut cursor, ConcatIterator::next), "ab");
    assert_eq!(opened.load(Ordering::Relaxed), 1, "the others begin behind the upper bound");
    let (files, opened) = level(&THREE);
    let mut cursor = concat(files, KeyBounds { lower: Some(b"l"[..].into()), upper: None });
    cursor.seek_to_last();
    assert_eq!(walk(&mut cursor, ConcatIterator::prev), "nm");
    assert_eq!(opened.load(Ordering::Relaxed), 1, "the others end before the lower bound");
}

/// Files without entries stand for those whose filter rules the prefix out.
#[test]
fn a_seek_within_a_prefix_opens_no_file_beyond_it() {
    let files = [
        ("a1", "b3", "a1@1:PUT() b3@1:PUT()"),
        ("b4", "d5", ""),
        ("d6", "d9", "d6@1:PUT()"),
        ("f1", "z", "f1@1:PUT()"),
    ];
    let (files, opened) = level(&files);
    let mut cursor =
        concat(files, KeyBounds::default()).with_prefixes(Some(PrefixExtractor::FixedPrefix(1)));
    let mut check = |target: &str, after: &str, before: &str, count: usize| {
        let target = InternalKeyBuf::new(target.as_bytes(), 1, ValueType::Value);
        opened.store(0, Ordering::Relaxed);
        cursor.confine(true);
        // No file is open whose opening would not count.
        cursor.open = None;
        cursor.seek(target.as_key());
        assert_eq!(walk(&mut cursor, ConcatIterator::next), after);
        cursor.open = None;
        cursor.seek_for_prev(target.as_key());
        assert_eq!(walk(&mut cursor, ConcatIterator::prev), before);
        assert_eq!(opened.load(Ordering::Relaxed), count, "{after} {before}");
    };
    check("c5", "", "", 2);
    check("d1", "d6", "", 3);
    check("d7", "", "d6", 3);
    check("e", "", "", 0);
    check("b2", "b3", "a1", 3);
    check("b35", "", "b3a1", 2);
    // Without a prefix, or not confined to it, a scan goes on.
    check("", "a1b3d6f1", "", 4);
    cursor.confine(false);
    cursor.seek(InternalKeyBuf::new(b"c5", 1, ValueType::Value).as_key());
    assert_eq!(walk(&mut cursor, ConcatIterator::next), "d6f1");
}

#[test]
fn a_file_that_cannot_be_opened_ends_the_scan() {
    let mut cursor = concat(level(&[THREE[0], ("d", "k", "-"), THREE[2]]).0, KeyBounds::default());
    cursor.seek_to_first();
    cursor.next();
    cursor.next();
    assert!(!cursor.valid() && cursor.status().is_err());
    cursor.seek_to_last();
    assert!(cursor.valid() && cursor.status().is_ok());
}
