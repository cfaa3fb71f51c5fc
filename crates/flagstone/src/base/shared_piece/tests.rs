use std::sync::{Arc, OnceLock};

use super::*;

#[test]
fn the_bytes_are_those_that_were_copied() {
    for length in [1100, 4096, 30_000] {
        let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let shared = SharedPiece::copy_of(&bytes).expect("the slab has such pieces");
        assert_eq!(&shared[..], &bytes[..]);
        assert!((length..length + length / 16 + 64).contains(&shared.capacity()));
    }
    for length in [0, 10, 33_000] {
        assert!(
            SharedPiece::copy_of(&vec![0; length]).is_none(),
            "{length} bytes are the allocator's"
        );
    }
}

/// Large ones were filled with zeros first, which took a seventh of a lookup.
#[test]
fn what_is_written_at_once_needs_no_zeros_and_all_else_finds_some() {
    for length in [1000, 4000, 40_000, 100_000] {
        let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
        let room = || SharedRoom::<u32>::with_margin(length, 24);
        let mut copied = room();
        copied.unwritten().copy_from(&bytes);
        assert!(copied[..] == bytes);
        let shared = copied.share(7);
        assert!(shared[..] == bytes && *shared.known() == 7);
        let filled = shared.fill_margin(|margin| {
            margin.fill(3);
            true
        });
        assert_eq!(filled, Some(&[3; 24][..]));
        let mut in_part = room();
        // SAFETY: bytes are written there, and it does not say that these were all.
        let all = unsafe {
            in_part.unwritten().fill(|room| {
                room[0].write(1);
                false
            })
        };
        assert!(!all);
        // To write over what is there is to find zeros there.
        let found: &mut [u8] = &mut in_part;
        found[length - 1] = 5;
        let found = in_part.share(0);
        assert_eq!(found[length - 1], 5);
        assert!(length < 32_000 || found[1..length - 1].iter().all(|byte| *byte == 0));
        let mut whole = room();
        // SAFETY: all are written.
        let all = unsafe {
            whole.unwritten().fill(|room| {
                room.fill(MaybeUninit::new(9));
                true
            })
        };
        assert!(all && whole.share(0).iter().all(|byte| *byte == 9));
    }
}

#[test]
#[should_panic(expected = "has written them")]
fn what_was_not_written_is_not_shared() {
    let _ = SharedRoom::<()>::new(100_000).share(());
}

#[test]
fn the_last_of_several_owners_gives_it_back() {
    let shared = SharedPiece::copy_of(&[7; 2000]).expect("the slab has such pieces");
    assert!(shared.is_unique());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let share = shared.clone();
            assert!(!shared.is_unique());
            scope.spawn(move || assert!(share.clone()[..] == [7; 2000]));
        }
    });
    assert!(shared.is_unique());
    drop(shared);
    // Its memory, as likely as not: nothing of the old head may be left in use.
    let other = SharedPiece::copy_of(&[8; 2000]).expect("the slab has such pieces");
    assert!(other.is_unique() && other.iter().all(|&byte| byte == 8));
}

#[test]
fn a_share_that_knows_less_is_one_of_the_same() {
    let mut room: SharedRoom<[u32; 9]> = SharedRoom::new(1500);
    room.fill(5);
    let shared = room.share([6; 9]);
    let other = shared.clone().without_known();
    assert!(!shared.is_unique() && !other.is_unique());
    assert_eq!((shared.known(), &shared[..]), (&[6; 9], &other[..]));
    drop(shared);
    assert!(other.clone().iter().all(|&byte| byte == 5) && other.len() == 1500);
}

#[test]
fn one_fills_the_margin_and_all_find_what_he_put_there() {
    for (length, margin) in [(1500, 16), (33_000, 176), (1, 4)] {
        let mut room: SharedRoom<u8> = SharedRoom::with_margin(length, margin);
        room.fill(5);
        let shared = room.share(7);
        assert!(shared.margin().is_none() && shared.is_margin_blank());
        let filled: Vec<_> = std::thread::scope(|scope| {
            let fill = |by: u8| {
                let share = shared.clone();
                move || {
                    let mut is_first = false;
                    let found = share.fill_margin(|place| {
                        is_first = true;
                        place.fill(by);
                        true
                    });
                    // Who comes meanwhile finds nothing.
                    assert!(found.is_none_or(|found| found == vec![found[0]; margin.into()]));
                    is_first
                }
            };
            let all = [8, 9].map(|by| scope.spawn(fill(by)));
            all.map(|thread| thread.join().expect("no panic")).into()
        });
        assert_eq!(filled.iter().filter(|&&is_first| is_first).count(), 1);
        let by = if filled[0] { 8 } else { 9 };
        assert_eq!(shared.margin(), Some(&vec![by; margin.into()][..]));
        assert_eq!((*shared.known(), &shared[..]), (7, &vec![5; length][..]));
        let other = shared.clone().without_known();
        assert_eq!((other.margin(), other.len()), (shared.margin(), length));
        drop(other);
        // The next has it blank, of another size.
        let mut room = shared.into_room().expect("the only share");
        assert_eq!(room.resize(length, margin - 4), room.is_of_slab());
        let shared = room.share(7);
        assert!(shared.margin().is_none() && shared.fill_margin(|_| false).is_none());
        assert!(
            !shared.is_margin_blank() && shared.fill_margin(|_| panic!("it was refused")).is_none()
        );
    }
    let none: SharedPiece = SharedRoom::new(1500).share(());
    assert!(none.fill_margin(|_| panic!("there is none")).is_none() && !none.is_margin_blank());
}

#[test]
fn a_companion_goes_with_the_last_share() {
    let [first, second] = [(); 2].map(Arc::new);
    let shared = SharedPiece::copy_of(&[9; 1500]).expect("the slab has such pieces");
    let other = shared.clone();
    shared.accompany(|| Box::new(first.clone()));
    std::thread::scope(|scope| {
        scope.spawn(|| other.accompany(|| Box::new(second.clone())));
        scope.spawn(|| shared.accompany(|| Box::new(second.clone())));
    });
    assert_eq!([&first, &second].map(Arc::strong_count), [2, 1], "there is one already");
    drop(shared);
    assert_eq!(Arc::strong_count(&first), 2);
    assert!(other.into_room().is_some() && Arc::strong_count(&first) == 1);
}

/// What is known is made by whoever looks first, shared with all, and dropped once with the last;
/// of any size.
#[test]
fn what_is_known_of_the_bytes_lives_as_long_as_they() {
    type Known = OnceLock<Arc<u64>>;
    let lengths = [0, 1, 900, 4096, 40_000, 200_000];
    for (length, is_passing) in
        lengths.into_iter().flat_map(|length| [(length, false), (length, true)])
    {
        let mut room: SharedRoom<Known> =
            if is_passing { SharedRoom::passing(length) } else { SharedRoom::new(length) };
        room.fill(3);
        let shared = room.share(Known::new());
        let made = Arc::new(7);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let (share, made) = (shared.clone(), made.clone());
                scope.spawn(move || assert_eq!(**share.known().get_or_init(|| made), 7));
            }
        });
        assert_eq!((shared.len(), shared[..] == vec![3; length]), (length, true));
        assert_eq!(Arc::strong_count(&made), 2);
        let other = shared.clone();
        assert!(shared.into_room().is_none(), "another has it");
        let mut room = other.into_room().expect("the last one");
        assert_eq!(Arc::strong_count(&made), 1);
        room.fill(4);
        assert!(room.share(Known::new())[..] == vec![4; length]);
    }
}
