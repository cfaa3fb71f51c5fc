use super::*;

#[test]
fn the_lasting_rate_is_that_of_the_second_half() {
    let part = |per_second: Vec<u64>| Part {
        operations: 100,
        seconds: 2.0,
        per_second,
        ..Part::default()
    };
    assert_eq!(lasting_rate(&part(vec![900, 500, 100, 300])), 200.0);
    assert_eq!(lasting_rate(&part(Vec::new())), 50.0);
}
