use super::*;
use crate::cell::EngineName;
use crate::store::Line;
use crate::testing;

const BEGIN: &str = FIGURES.begin;
const END: &str = FIGURES.end;

fn report(ours: f64) -> Report {
    let rounds = (0..5).flat_map(|round| {
        [(EngineName::Flagstone, ours), (EngineName::Rocksdb, 100.0)]
            .map(|(engine, rate)| Line::Run(Box::new(testing::run(engine, round, rate))))
    });
    Report::new(&rounds.collect::<Vec<_>>()).unwrap()
}

#[test]
fn what_people_wrote_stays() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("benchmarks.md");
    let glance = format!("{}\nold\n{}", GLANCE.begin, GLANCE.end);
    fs::write(&page, format!("# Ours\n\n{glance}\n{BEGIN}\nold\n{END}\n\nAfterword.\n")).unwrap();
    let beside_plots = directory.path().join("benchmarks/notes.md");
    fs::create_dir(directory.path().join("benchmarks")).unwrap();
    fs::write(&beside_plots, "mine").unwrap();
    for ours in [150.0, 250.0] {
        write(&report(ours), &page).unwrap();
    }
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("# Ours\n") && text.ends_with("\n\nAfterword.\n"), "{text}");
    assert!(text.contains("**2.50**") && !text.contains("**1.50**") && !text.contains("\nold\n"));
    assert!(text.contains("](benchmarks/tuned-writes.svg)"));
    assert!(directory.path().join("benchmarks/tuned-writes.svg").exists() && beside_plots.exists());
}

#[test]
fn a_page_without_marks_is_left_alone() {
    assert!(replaced("text", FIGURES, "figures").is_err());
    assert!(replaced(BEGIN, FIGURES, "figures").is_err());
}

#[test]
fn a_short_row_wants_an_explanation() {
    let page =
        |text: &str| format!("{BEGIN}\n`fillrandom/100/1t/tuned/d1/ample/lz4`\n{END}\n{text}\n");
    let report = report(150.0);
    assert_eq!(unexplained(&report, &page("")), ["fillrandom/100/1t/tuned/d1/ample/lz4"]);
    let explained = page("Because: `fillrandom/100/1t/tuned/d1/ample/lz4`");
    assert!(unexplained(&report, &explained).is_empty());
}
