use super::*;

#[test]
fn frequencies_are_counted_up_to_fifteen_and_halved_after_a_while() {
    let mut sketch = Sketch::default();
    (0..1000).for_each(|_| sketch.make_room(1000));
    (0..20).for_each(|_| sketch.count(7, 1000));
    (0..3).for_each(|_| sketch.count(8, 1000));
    assert_eq!((sketch.frequency(7), sketch.frequency(8), sketch.frequency(9)), (15, 3, 0));
    sketch.make_room(2000);
    assert_eq!((sketch.frequency(7), sketch.frequency(8), sketch.frequency(9)), (15, 3, 0));
    // Twenty-three uses so far; the thirtieth is too many for three entries.
    (0..7).for_each(|_| sketch.count(10, 3));
    assert_eq!((sketch.frequency(7), sketch.frequency(8), sketch.frequency(10)), (7, 1, 3));
    assert_eq!(sketch.uses, 15);
}

/// It kept the size that the largest cache so far had needed.
#[test]
fn a_sketch_shrinks_and_what_it_knows_stays() {
    let mut sketch = Sketch::default();
    (0..20).for_each(|_| sketch.make_room(1 << 16));
    (0..50u64).for_each(|id| (0..id % 17).for_each(|_| sketch.count(id, 1 << 16)));
    sketch.fit(1 << 13);
    assert_eq!(sketch.words.len(), 1 << 16, "an eighth");
    sketch.fit((1 << 13) - 1);
    assert_eq!(sketch.words.len(), 1 << 15);
    sketch.fit(500);
    assert_eq!((sketch.words.len(), sketch.words.capacity()), (2048, 2048));
    let known = (0..50u64).filter(|&id| sketch.frequency(id) == (id % 17).min(15)).count();
    assert!(known >= 48, "of 50 ids {known} are as they were");
    sketch.fit(0);
    assert_eq!((sketch.words.len(), sketch.memory()), (MIN_WORDS, 0));
    (0..1000).for_each(|_| sketch.make_room(100_000));
    assert_eq!(sketch.words.len(), 1 << 17);
}

/// It went by what the cache had been used when it was large: all counters were halved with one use
/// after another.
#[test]
fn a_smaller_cache_is_forgotten_no_faster() {
    for (entries, is_folded) in [(8000, true), (20_000, false)] {
        let mut sketch = Sketch::default();
        (0..20).for_each(|_| sketch.make_room(1 << 16));
        (0..16).for_each(|_| sketch.count(7, 1 << 16));
        (0..600_000).for_each(|id| sketch.count(1000 + id, 1 << 16));
        let before = sketch.frequency(7);
        sketch.fit(entries);
        assert_eq!(sketch.words.len() < 1 << 16, is_folded);
        (0..10).for_each(|_| sketch.count(8, entries));
        let (after, other) = (sketch.frequency(7), sketch.frequency(8));
        assert!(after >= before / 2 && other >= 9, "{before}, then {after}; {other} of 10");
    }
}

#[test]
fn the_larger_of_each_two_counters_is_taken() {
    let (a, b) = (0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);
    assert_eq!(larger(a, b), 0xfedc_ba98_89ab_cdef);
    assert_eq!(
        [larger(b, a), larger(a, a), larger(0, a), larger(u64::MAX, a)],
        [larger(a, b), a, a, u64::MAX]
    );
}
