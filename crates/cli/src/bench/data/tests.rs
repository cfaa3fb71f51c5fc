use super::*;

#[test]
fn keys_look_like_db_bench_s() {
    let mut key = [0; 16];
    fill_key(0x3aa6, &mut key);
    assert_eq!(&key, b"\0\0\0\0\0\0\x3a\xa600000000");
    let mut short = [0; 4];
    fill_key(0x0102_0304_0506, &mut short);
    assert_eq!(short, [3, 4, 5, 6]);
}

#[test]
fn a_seed_gives_the_keys_and_values_that_db_bench_wrote() {
    // db_bench 7.8.3 --benchmarks=fillrandom --num=1000000 --writes=20 --seed=42, its smallest and
    // largest keys.
    let mut random = MersenneTwister::new(43);
    let mut numbers = KeyNumbers::new(KeyOrder::Random, 1_000_000, 43);
    let mut values = Values::new(0.5, 100);
    let mut written: Vec<_> =
        (0..20).map(|_| (numbers.next(&mut random), values.next(100).to_vec())).collect();
    written.sort();
    let numbers: Vec<_> = written.iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers[0], numbers[1], numbers[19]), (0x3aa6, 0x150c6, 0xeda97));
    assert!(written[0].1.starts_with(b"axew qG "), "{}", written[0].1.escape_ascii());
    assert_eq!(written[0].1[..50], written[0].1[50..]);
}

#[test]
fn unique_numbers_are_each_drawn_once() {
    let mut random = MersenneTwister::new(1);
    let mut numbers = KeyNumbers::new(KeyOrder::UniqueRandom, 1000, 7);
    let mut drawn: Vec<_> = (0..1000).map(|_| numbers.next(&mut random)).collect();
    assert!(!drawn.is_sorted());
    drawn.sort_unstable();
    assert!(drawn.into_iter().eq(0..1000));
}
