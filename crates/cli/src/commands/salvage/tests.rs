use flagstone::base::Error;

use super::*;

fn fault(offset: u64) -> Fault {
    Fault { error: Error::corruption("x").at_offset(offset), key_range: None }
}

/// A database that had lost every other block had as many lines.
#[test]
fn of_many_places_the_first_are_told_and_how_many_more_there_are() {
    let mut report = SalvageReport::default();
    report.losses = (0..3000).map(fault).collect();
    report.losses_unlisted = 5;
    report.harmless = vec![Error::corruption("y"); 1001];
    let lines = words(&report);
    let told = lines.iter().filter(|line| line.starts_with("LOST")).count();
    assert_eq!(told, PLACES_LISTED_MAX);
    let has = |what: &str| lines.iter().any(|line| line.contains(what));
    let more = "... and 2005 more places where something is lost; --json has 2000 of them";
    assert!(has(more), "{:?}", &lines[PLACES_LISTED_MAX..]);
    let one = "... and 1 more place where nothing is lost; --json has all of them";
    assert!(has(one) && has("lost in 3005 places"), "{:?}", &lines[PLACES_LISTED_MAX..]);
    let json = report_json(&report);
    assert_eq!(
        (json["losses"].as_array().unwrap().len(), &json["losses_unlisted"]),
        (3000, &json!(5))
    );
}

/// A WAL that is missing was found after the damaged blocks, and never told where there were many.
#[test]
fn what_concerns_whole_files_is_always_told_and_first() {
    let mut report = SalvageReport::default();
    let missing = |number| Fault {
        error: Error::corruption(format!("{number}.log is missing")),
        key_range: None,
    };
    report.losses = (0..1500).map(missing).chain((0..2000).map(fault)).collect();
    report.whole_losses = 1500;
    let lines = words(&report);
    assert!(
        lines[..1500].iter().all(|line| line.contains(".log is missing")),
        "{:?}",
        &lines[..1500]
    );
    assert!(lines[1500..2500].iter().all(|line| line.contains("offset")), "{:?}", &lines[1500..]);
    assert_eq!(
        lines[2500],
        "... and 1000 more places where something is lost; --json has all of them"
    );
}

/// All that JSON lists had been told, and the reader was sent there for more.
#[test]
fn nobody_is_sent_to_json_for_what_it_has_not() {
    let mut report = SalvageReport::default();
    report.losses = vec![fault(7)];
    (report.losses_unlisted, report.lost_values_unlisted) = (1, 2);
    let lines = words(&report);
    assert_eq!(
        lines[1..3],
        ["... and 1 more place where something is lost", "... and 2 more values lost"]
    );
}
