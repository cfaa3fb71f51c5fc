use super::*;

#[test]
fn an_operation_is_on_its_way_until_its_slots_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("expected");
    let space = Space { threads: 2, per_thread: 8 };
    let place = |family, index| Place { family, index };
    let changes = [
        Change { place: place(0, 9), state: State::put(5) },
        Change { place: place(2, 10), state: State::removed(5) },
    ];
    let expected = Expected::open(&path, space).unwrap();
    assert_eq!(expected.next_epoch().unwrap(), 1);
    expected.begin(1, &changes).unwrap();
    drop(expected);

    let expected = Expected::open(&path, space).unwrap();
    assert_eq!(expected.next_epoch().unwrap(), 2);
    assert_eq!(expected.on_its_way(0).unwrap(), (Stage::Idle, vec![]));
    assert_eq!(expected.on_its_way(1).unwrap(), (Stage::Begun, changes.to_vec()));
    assert_eq!(expected.slot(place(0, 9)).unwrap(), Slot::certain(State::default()));
    expected.acknowledge(1, &changes).unwrap();
    assert_eq!(expected.on_its_way(1).unwrap().0, Stage::Idle);
    let mut slot = expected.slot(place(0, 9)).unwrap();
    assert_eq!(slot, Slot::certain(State::put(5)));
    slot.push(State::put(6));
    expected.set_slot(place(0, 9), &slot).unwrap();
    assert_eq!(expected.slot(place(0, 9)).unwrap().states(), [State::put(5), State::put(6)]);
    assert_eq!(expected.slot(place(2, 10)).unwrap().last(), State::removed(5));
}
