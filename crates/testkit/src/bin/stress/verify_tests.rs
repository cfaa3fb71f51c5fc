//! What the judge lets pass, and what not.

use super::*;
use crate::expected::Change;

const SPACE: Space = Space { threads: 2, per_thread: 8 };

fn place(family: usize, index: usize) -> Place {
    Place { family, index }
}

fn change(family: usize, index: usize, state: State) -> Change {
    Change { place: place(family, index), state }
}

/// Notes, and a database that holds nothing.
fn nothing() -> (tempfile::TempDir, Expected, Found) {
    let directory = tempfile::tempdir().unwrap();
    let expected = Expected::open(&directory.path().join("expected"), SPACE).unwrap();
    (directory, expected, vec![vec![State::default(); SPACE.keys()]; FAMILIES.len()])
}

fn uncertain(states: &[State]) -> Slot {
    let mut slot = Slot::certain(states[0]);
    states[1..].iter().for_each(|state| slot.push(*state));
    slot
}

#[test]
fn what_was_acknowledged_must_be_there_and_nothing_else() {
    let (_directory, expected, mut found) = nothing();
    assert_eq!(judge(&expected, &SPACE, &found).unwrap(), []);
    expected.set_slot(place(0, 7), &Slot::certain(State::put(9))).unwrap();
    let lost = judge(&expected, &SPACE, &found).unwrap_err();
    assert_eq!(
        (lost.expected.as_str(), lost.found.as_str()),
        ("version 9", "nothing (never written)")
    );
    found[0][7] = State::put(8);
    assert!(judge(&expected, &SPACE, &found).is_err(), "an older version");
    found[0][7] = State::put(9);
    judge(&expected, &SPACE, &found).unwrap();
    found[1][7] = State::put(9);
    assert!(judge(&expected, &SPACE, &found).is_err(), "never written");
}

#[test]
fn an_operation_on_its_way_is_there_as_a_whole_or_not_at_all() {
    let (_directory, expected, mut found) = nothing();
    let changes = [change(0, 6, State::put(5)), change(2, 7, State::put(5))];
    expected.begin(0, &changes).unwrap();
    judge(&expected, &SPACE, &found).unwrap();
    found[0][6] = State::put(5);
    assert_eq!(judge(&expected, &SPACE, &found).unwrap_err().expected, "all of it, or nothing");
    found[2][7] = State::put(5);
    let settled = judge(&expected, &SPACE, &found).unwrap();
    assert_eq!(
        settled,
        [(place(0, 6), Slot::certain(State::put(5))), (place(2, 7), Slot::certain(State::put(5)))]
    );

    // Acknowledged, and killed before both slots said so.
    expected.acknowledge(0, &changes).unwrap();
    expected.set_slot(place(2, 7), &Slot::certain(State::default())).unwrap();
    judge(&expected, &SPACE, &found).unwrap_err();
}

#[test]
fn unlogged_writes_survive_up_to_some_moment() {
    let (_directory, expected, mut found) = nothing();
    let first = uncertain(&[State::default(), State::put(5), State::removed(9)]);
    let second = uncertain(&[State::put(2), State::put(7)]);
    expected.set_slot(place(1, 6), &first).unwrap();
    expected.set_slot(place(1, 7), &second).unwrap();
    for (survived, states) in [
        (true, [State::put(5), State::put(7)]),
        (true, [State::put(5), State::put(2)]),
        (true, [State::default(), State::put(7)]),
        (true, [State::default(), State::put(2)]),
        (false, [State::put(5), State::put(3)]),
    ] {
        (found[1][6], found[1][7]) = (states[0], states[1]);
        assert_eq!(judge(&expected, &SPACE, &found).is_ok(), survived, "{states:?}");
    }
    // What came later survived, what came earlier did not.
    expected.set_slot(place(1, 6), &uncertain(&[State::put(1), State::put(5)])).unwrap();
    (found[1][6], found[1][7]) = (State::put(1), State::put(7));
    assert!(judge(&expected, &SPACE, &found).is_err());
    (found[1][6], found[1][7]) = (State::put(5), State::put(2));
    assert_eq!(
        judge(&expected, &SPACE, &found).unwrap(),
        [(place(1, 6), Slot::certain(State::put(5))), (place(1, 7), Slot::certain(State::put(2)))]
    );
}

#[test]
fn joint_keys_agree() {
    check_joint(&SPACE, 0, &[State::put(3), State::put(3), State::put(3)]).unwrap();
    check_joint(&SPACE, 0, &[State::default(), State::removed(3), State::default()]).unwrap();
    assert!(check_joint(&SPACE, 0, &[State::put(3), State::put(3), State::put(2)]).is_err());
}
