use super::*;
use crate::compaction::pick::StallCause;

fn filling(room: u64, waiting: u64, is_last: bool) -> Pressure {
    Pressure {
        stall: WriteStall::Normal,
        filling: Some(Filling { room, waiting, is_last }),
        space: None,
    }
}

fn stalled(stall: WriteStall) -> Pressure {
    Pressure { stall, filling: None, space: None }
}

#[test]
fn what_is_asked_is_the_most_that_any_asks() {
    let mut all = Pressures::default();
    let id = ColumnFamilyId;
    let delay = |severity| stalled(WriteStall::Delay { cause: StallCause::Level0Files, severity });
    [(1, 0.25), (2, 0.75), (3, 0.5)]
        .iter()
        .for_each(|&(n, severity)| all.note(id(n), &delay(severity), 0));
    assert_eq!((all.asked().is_stopped, all.asked().severity), (false, Some(0.75)));
    all.note(id(4), &stalled(WriteStall::Stop { cause: StallCause::Memtables }), 0);
    assert_eq!((all.asked().is_stopped, all.asked().severity), (true, None));
    all.note(id(4), &stalled(WriteStall::Normal), 0);
    all.remove(id(2));
    assert_eq!((all.asked().is_stopped, all.asked().severity), (false, Some(0.5)));

    // Twice as much waits for half of the room.
    all.note(id(1), &filling(1000, 500, false), 0);
    all.note(id(3), &filling(500, 1000, true), 100);
    all.note(id(5), &filling(1000, 900, true), 700);
    let asked = all.asked();
    let slowest = asked.slowest.map(|filling| (filling.room, filling.waiting));
    assert_eq!(
        (asked.severity, slowest, asked.last_room),
        (None, Some((500, 1000)), Some((300, 1000)))
    );
    [1, 3, 5].iter().for_each(|n| all.note(id(*n), &stalled(WriteStall::Normal), 0));
    assert!(all.asked().slowest.is_none() && all.asked().last_room.is_none());
    assert!([1, 2, 3, 4, 5].iter().all(|n| !all.is_felt(id(*n))));
}
