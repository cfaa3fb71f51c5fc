use super::*;

#[test]
fn less_space_is_paid_for_by_moving_ever_more() {
    let moved = |space| (moved_per_byte(space) * 10.0).round() / 10.0;
    let spaces = [1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 3.0];
    assert_eq!(spaces.map(moved), [4.7, 2.2, 1.4, 0.7, 0.4, 0.3, 0.1]);
    assert_eq!(moved_per_byte(1.0), f64::INFINITY);
}

#[test]
fn the_space_for_so_much_moving_is_where_that_much_is_moved() {
    for moved in [0.1, 0.4, 0.5, 1.0, 4.0] {
        assert!((moved_per_byte(space_for(moved)) - moved).abs() < 1e-6, "{moved}");
    }
    assert_eq!((space_for(0.5) * 100.0).round(), 165.0);
}
