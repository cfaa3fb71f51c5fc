use flagstone::options::Options;

use super::*;

#[test]
fn every_flag_has_one_meaning_and_sets_what_there_is() {
    let mut names: Vec<_> = OPTIONS.iter().map(|(flag, _)| *flag).collect();
    names.extend(INERT);
    names.extend(ABSENT.iter().map(|(flag, _)| *flag));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for (_, option) in OPTIONS {
        let refused = Options::default().set(option, "no value").unwrap_err().to_string();
        assert!(!refused.contains("there is no option"), "{refused}");
    }
}
