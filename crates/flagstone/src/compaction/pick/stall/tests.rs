use super::*;

fn stall(settings: &StallSettings, memtables: usize, files: usize, gib: u64) -> WriteStall {
    let input = StallInput {
        unflushed_memtables: memtables,
        level0_files: files,
        pending_compaction_bytes: gib << 30,
        blob_waste: BlobWaste::default(),
    };
    write_stall(settings, &input)
}

#[test]
fn the_limits_apply_in_their_order() {
    use StallCause::{Level0Files, Memtables, PendingCompactionBytes};
    let settings = StallSettings::default();
    assert_eq!(stall(&settings, 1, 19, 63), WriteStall::Normal);
    assert_eq!(stall(&settings, 2, 99, 999), WriteStall::Stop { cause: Memtables });
    assert_eq!(stall(&settings, 1, 36, 999), WriteStall::Stop { cause: Level0Files });
    assert_eq!(stall(&settings, 1, 20, 256), WriteStall::Stop { cause: PendingCompactionBytes });
    assert_eq!(
        stall(&settings, 1, 24, 0),
        WriteStall::Delay { cause: Level0Files, severity: 0.25 }
    );
    assert_eq!(
        stall(&settings, 1, 24, 160),
        WriteStall::Delay { cause: Level0Files, severity: 0.5 }
    );
    let bytes = WriteStall::Delay { cause: PendingCompactionBytes, severity: 0.0 };
    assert_eq!(stall(&settings, 1, 0, 64), bytes);
}

#[test]
fn memtables_delay_only_where_there_are_many() {
    let settings = StallSettings { max_write_buffer_number: 4, ..StallSettings::default() };
    assert_eq!(stall(&settings, 2, 0, 0), WriteStall::Normal);
    assert!(matches!(
        stall(&settings, 3, 0, 0),
        WriteStall::Delay { cause: StallCause::Memtables, .. }
    ));
    let merging = StallSettings { min_write_buffer_number_to_merge: 3, ..settings };
    assert_eq!(stall(&merging, 3, 0, 0), WriteStall::Normal);
    let few = StallSettings { max_write_buffer_number: 3, ..settings };
    assert_eq!(stall(&few, 2, 0, 0), WriteStall::Normal);
}

#[test]
fn garbage_delays_and_never_stops() {
    let stall = |bytes, settings: &StallSettings| {
        let blob_waste = BlobWaste { bytes, delays_at: 100, worst_at: 200 };
        write_stall(settings, &StallInput { blob_waste, ..StallInput::default() })
    };
    let settings = StallSettings::default();
    let delay = |severity| WriteStall::Delay { cause: StallCause::BlobSpace, severity };
    assert_eq!(stall(99, &settings), WriteStall::Normal);
    assert_eq!(stall(150, &settings), delay(0.5));
    assert_eq!(stall(5000, &settings), delay(1.0));
    let off = StallSettings { disable_auto_compactions: true, ..settings };
    assert_eq!(stall(5000, &off), WriteStall::Normal);
}

#[test]
fn nobody_waits_for_compactions_that_do_not_come() {
    let off = StallSettings { disable_auto_compactions: true, ..StallSettings::default() };
    assert_eq!(stall(&off, 1, 1000, 1000), WriteStall::Normal);
    let fifo = StallSettings {
        level0_slowdown_writes_trigger: None,
        level0_stop_writes_trigger: None,
        ..StallSettings::default()
    };
    assert_eq!(stall(&fifo, 1, 1000, 0), WriteStall::Normal);
    let unlimited = StallSettings {
        soft_pending_compaction_bytes_limit: 0,
        hard_pending_compaction_bytes_limit: 0,
        ..StallSettings::default()
    };
    assert_eq!(stall(&unlimited, 1, 0, 1 << 20), WriteStall::Normal);
}
