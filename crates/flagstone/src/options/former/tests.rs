use super::*;

#[test]
fn a_former_name_is_no_present_one() {
    for (at, former) in FORMER.iter().enumerate() {
        assert!(super::super::known::find(former.name).is_none(), "{}", former.name);
        assert!(!super::super::known::is_row(former.name), "{}", former.name);
        assert!(!former.defaults.is_empty() && !former.became.ends_with('.'), "{}", former.name);
        assert!(
            FORMER[..at].iter().all(|other| other.name != former.name),
            "{} twice",
            former.name
        );
    }
}
