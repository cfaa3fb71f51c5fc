use super::*;

/// Whether a table is marked that has these entries, `d` for a deletion, each of 10 bytes.
fn marks(rule: CompactOnDeletionCollectorFactory, entries: &str) -> bool {
    let mut collector =
        rule.create(&CollectorContext::new(None, None)).expect("one for each table");
    for (at, entry) in entries.bytes().enumerate() {
        let kind = match entry {
            b'd' => EntryKind::Delete,
            b's' => EntryKind::SingleDelete,
            b'r' => EntryKind::RangeDelete,
            _ => EntryKind::Put,
        };
        let file_size = 10 * at as u64;
        let entry = CollectedEntry::new((b"key", b""), kind, 1, file_size);
        collector.add(&entry).expect("no error");
    }
    assert!(collector.finish().expect("no error").is_empty());
    collector.need_compact()
}

#[test]
fn deletions_that_are_dense_somewhere_mark_a_table() {
    let rule = CompactOnDeletionCollectorFactory::new(128, 3);
    assert!(marks(rule, "..d.s.d.."));
    assert!(!marks(rule, "..d.s..."));
    assert!(!marks(rule, "..d.r.r.s..."), "a range deletion counts for none");
    let apart = format!("d{}d{}d", ".".repeat(64), ".".repeat(64));
    assert!(!marks(rule, &apart), "never three within 128");
    let near = format!("{}d{}d{}d", ".".repeat(300), ".".repeat(60), ".".repeat(60));
    assert!(marks(rule, &near));
}

#[test]
fn a_window_of_many_entries_moves_in_steps() {
    let rule = CompactOnDeletionCollectorFactory::new(256, 2);
    assert!(marks(rule, &format!("d{}d", ".".repeat(254))));
    assert!(!marks(rule, &format!("d{}d", ".".repeat(256))));
}

#[test]
fn a_ratio_marks_a_table_as_a_whole() {
    let rule = CompactOnDeletionCollectorFactory {
        deletion_ratio: 0.5,
        ..CompactOnDeletionCollectorFactory::new(0, 0)
    };
    assert!(marks(rule, "d.d."));
    assert!(!marks(rule, "d.d.."));
    assert!(!marks(CompactOnDeletionCollectorFactory::new(0, 0), "dddd"), "it looks at nothing");
}

#[test]
fn small_tables_are_left_alone() {
    let rule = CompactOnDeletionCollectorFactory {
        min_file_size: 100,
        ..CompactOnDeletionCollectorFactory::new(128, 1)
    };
    assert!(!marks(rule, "d........."));
    assert!(marks(rule, "d.........."), "the table has grown since");
}
