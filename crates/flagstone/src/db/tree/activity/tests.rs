use super::*;

#[test]
fn what_holds_writers_up_is_counted_each_time_that_it_begins() {
    use StallCause::{Level0Files, Memtables};
    let delay = |cause, severity| WriteStall::Delay { cause, severity };
    let mut activity = Activity::default();
    let told = [
        (delay(Level0Files, 0.1), false),
        (delay(Level0Files, 0.7), true),
        (WriteStall::Stop { cause: Level0Files }, true),
        (WriteStall::Normal, true),
        (WriteStall::Stop { cause: Memtables }, false),
        (WriteStall::Stop { cause: Memtables }, false),
        (delay(Level0Files, 0.1), true),
    ];
    told.into_iter().for_each(|(stall, is_busy)| activity.note_stall(stall, || is_busy));
    assert_eq!(activity.by_level0, Stalls { delays: 2, stops: 1 });
    assert_eq!(activity.by_busy_level0, Stalls { delays: 1, stops: 1 });
    assert_eq!(activity.by_memtables, Stalls { delays: 0, stops: 1 });
    assert_eq!(activity.by_pending_bytes, Stalls::default());
}
