use super::*;

#[test]
fn ranks_come_as_often_as_they_should() {
    for exponent in [0.5, 1.0, 1.2] {
        let zipf = Zipf::new(1000, exponent);
        let mut random = fastrand::Rng::with_seed(7);
        let mut drawn = [0u32; 1001];
        (0..1_000_000).for_each(|_| drawn[zipf.draw(&mut random) as usize] += 1);
        let total: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-exponent)).sum();
        for rank in [1u16, 2, 3, 10, 100, 1000] {
            let expected = 1e6 * f64::from(rank).powf(-exponent) / total;
            let off = f64::from(drawn[usize::from(rank)]) - expected;
            assert!(off.abs() < 5.0 * expected.sqrt(), "rank {rank}: {off} off {expected}");
        }
    }
}
