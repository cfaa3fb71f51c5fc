use super::*;

const PLACE: Place = Place { family: 1, index: 70 };

fn join(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.join(&b","[..])
}

#[test]
fn a_value_says_what_was_written() {
    let value = join(&[base(PLACE, 5, 300), operand(PLACE, 9), operand(PLACE, 12)]);
    let state = parse(PLACE, &value).unwrap();
    assert_eq!(state, State::put(5).merged(9).merged(12));
    assert_eq!((state.version(), state.merges(), state.is_present()), (12, 2, true));
    assert_ne!(state, State::put(6).merged(9).merged(12), "the digest knows the base");
    let alone = parse(PLACE, &join(&[operand(PLACE, 9), operand(PLACE, 12)])).unwrap();
    assert_eq!(alone, State::removed(5).merged(9).merged(12));
    assert!(State::removed(7).looks_like(State::default()));
    assert!(!State::removed(7).looks_like(state));
}

#[test]
fn what_was_not_written_is_no_value() {
    let value = join(&[base(PLACE, 5, 200), operand(PLACE, 9)]);
    assert!(parse(Place { family: 0, ..PLACE }, &value).is_err());
    assert!(parse(Place { index: 71, ..PLACE }, &value).is_err());
    for cut in (0..value.len()).filter(|cut| *cut != value.len() - HEAD - 1) {
        assert!(parse(PLACE, &value[..cut]).is_err(), "{cut}");
    }
    for flip in 0..value.len() {
        let mut other = value.clone();
        other[flip] ^= 1;
        assert!(parse(PLACE, &other) != parse(PLACE, &value), "{flip}");
    }
    assert!(parse(PLACE, &join(&[operand(PLACE, 9), operand(PLACE, 9)])).is_err());
}
