use super::*;

#[test]
fn permilles_are_exact() {
    let mut latencies = Latencies::new();
    assert_eq!(latencies.permille(990), 0);
    for tenths in 1..=1000 {
        latencies.add(Duration::from_nanos(tenths * 100 + 99));
    }
    assert_eq!((latencies.permille(500), latencies.permille(990)), (500, 990));
    latencies.add(Duration::from_millis(50));
    assert_eq!(latencies.permille(1000), 500_000, "all of 6.55 ms and more counted as that");
    latencies.add(Duration::MAX);
    assert_eq!(latencies.permille(1000), LONGEST - 1);
}
