use super::*;

#[test]
fn slots_lie_one_behind_the_other() {
    let last = [u32::MAX - (1 << FIRST_BITS), u32::MAX / 2, 1 << 20];
    for slot in (0..if cfg!(miri) { 1_000 } else { 100_000 }).chain(last.map(|slot| slot - 1)) {
        let (array, at) = place_of(slot);
        assert_eq!(first_of(array) + at as u64, slot.into());
        assert!(u64::from(slot) < first_of(array + 1) && array < ARRAYS, "slot {slot}");
    }
}
