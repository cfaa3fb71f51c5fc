use super::*;

#[test]
fn half_of_what_was_read_since_the_last_question_decides() {
    let answers = |runs: [&str; 8]| {
        let read_cache_hits = ReadCacheHits::default();
        let note = |read| match read {
            '1' => read_cache_hits.note(Some(Tier::First)),
            '2' => read_cache_hits.note(Some(Tier::Second)),
            _ => read_cache_hits.note(None),
        };
        let answer = |run: &str| {
            run.chars().for_each(note);
            read_cache_hits.ask()
        };
        runs.map(answer).map(|tier| tier.map_or(0, |tier| tier as u32 + 1))
    };
    assert_eq!(answers(["", "1", "", "1-", "--1", "", "-111", ""]), [0, 1, 1, 1, 0, 0, 1, 1]);
    assert_eq!(answers(["2", "12", "122", "12-", "2--", "", "22-", ""]), [2, 1, 2, 2, 0, 0, 2, 2]);
}
