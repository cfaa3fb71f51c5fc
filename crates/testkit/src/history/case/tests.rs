use super::*;

#[test]
fn cases_read_back_as_they_were_written() {
    for seed in 0..50 {
        for case in Case::draw(seed, 300, 2) {
            let text = case.to_string();
            assert!(text.is_ascii(), "it can be printed");
            let read: Case = text.parse().expect("its own text");
            assert!(read == case, "seed {seed}: something else is read");
        }
    }
    let with_comment = format!("{}check\n", commented("found\nby chance"));
    assert_eq!(with_comment.parse::<Case>().expect("a case").operations, [Operation::Check]);
}
