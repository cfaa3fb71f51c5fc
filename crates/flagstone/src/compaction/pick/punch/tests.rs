use super::*;

#[test]
fn large_values_leave_nearly_all_that_is_dead() {
    let free =
        |record: u64| free_bytes(record * 1000, 1000, record * 500, 4096) * 100 / (record * 1000);
    assert_eq!([16_384, 65_536, 262_144].map(free), [43, 48, 49]);
    assert_eq!(free_bytes(1000, 0, 1000, 4096), 1000, "all of it, whatever the records");
}
