use super::*;

fn key(shape: KeyShape, number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    shape.write(number, &mut key);
    assert_eq!(key.len(), shape.length());
    key
}

#[test]
fn keys_look_like_those_of_db_bench_and_ycsb() {
    assert_eq!(key(KeyShape::Numbers, 0x3aa6), b"\0\0\0\0\0\0\x3a\xa600000000");
    assert_eq!(key(KeyShape::Users, 0), b"user16294208416658607535");
}

#[test]
fn a_permutation_draws_every_number_once() {
    for size in [1, 2, 3, 1000, 4096, 4097] {
        let order = Permutation::new(size, 7);
        let mut drawn: Vec<u64> = (0..size).map(|position| order.at(position)).collect();
        assert!(size < 10 || !drawn.is_sorted());
        drawn.sort_unstable();
        assert!(drawn.into_iter().eq(0..size), "{size}");
    }
    let (one, other) = (Permutation::new(1000, 1), Permutation::new(1000, 2));
    assert!((0..1000).any(|position| one.at(position) != other.at(position)));
}

fn counts(skew: Skew) -> Vec<u32> {
    let mut draw = Draw::new(skew, 1000, 5);
    let mut counts = vec![0; 1000];
    for _ in 0..100_000 {
        counts[draw.next(1000) as usize] += 1;
    }
    counts
}

#[test]
fn draws_have_their_skew() {
    let uniform = counts(Skew::Uniform);
    assert!(uniform.iter().all(|count| (50..200).contains(count)));
    let zipfian = counts(Skew::Zipfian);
    // The sum of 1/k^0.99 over 1000 numbers is 7.73, so the first has 13% of all.
    let largest = *zipfian.iter().max().unwrap();
    assert!((12_000..14_000).contains(&largest), "{largest}");
    assert!(zipfian[0] < largest, "the popular key is not the first");
    let latest = counts(Skew::Latest);
    assert!((12_000..14_000).contains(&latest[999]), "{}", latest[999]);
}

#[test]
fn draws_stay_among_the_present() {
    for skew in [Skew::Uniform, Skew::Zipfian, Skew::Latest] {
        let mut draw = Draw::new(skew, 1000, 1);
        assert!((0..1000).all(|_| draw.next(3) < 3));
    }
}

#[test]
fn values_are_half_repetition() {
    let mut values = Values::new(100, 1);
    let value = values.next(100).to_vec();
    assert_eq!(value[..50], value[50..]);
    assert_ne!(values.next(100), value);
    assert_eq!(Values::new(3 << 20, 1).next(3 << 20).len(), 3 << 20);
}
