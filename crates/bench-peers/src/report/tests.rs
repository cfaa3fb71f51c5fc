use super::*;
use crate::testing;
use EngineName::{Flagstone, Rocksdb};

fn lines(runs: &[(EngineName, u32, f64)]) -> Vec<Line> {
    let run = |(engine, round, rate): &(EngineName, u32, f64)| {
        Line::Run(Box::new(testing::run(*engine, *round, *rate)))
    };
    runs.iter().map(run).collect()
}

#[test]
fn rounds_are_paired() {
    let lines = lines(&[
        (Flagstone, 0, 200.0),
        (Rocksdb, 0, 100.0),
        (Rocksdb, 1, 10.0),
        (Flagstone, 1, 30.0),
        (Flagstone, 2, 100.0),
        (Rocksdb, 2, 40.0),
        (Rocksdb, 3, 1000.0),
    ]);
    let report = Report::new(&lines).unwrap();
    let (rival, ratio) = report.rows[0].ratio().unwrap();
    assert_eq!((rival, ratio.median, ratio.low, ratio.high), (Rocksdb, 2.5, 2.0, 3.0));
    assert!(!report.rows[0].is_short());
    assert_eq!(report.rows[0].rate(Rocksdb), Some(70.0));
}

#[test]
fn a_row_below_its_target_is_short() {
    let runs: Vec<_> =
        (0..5).flat_map(|round| [(Flagstone, round, 190.0), (Rocksdb, round, 100.0)]).collect();
    assert!(Report::new(&lines(&runs)).unwrap().rows[0].is_short());
}

#[test]
fn a_run_made_again_replaces_the_first_and_its_failure() {
    let run = testing::run(Flagstone, 0, 7.0);
    let mut all = lines(&[(Flagstone, 0, 5.0)]);
    all.push(Line::Failure { assignment: run.assignment.clone(), message: "no".to_string() });
    assert_eq!(Report::new(&all).unwrap().failures.len(), 1);
    all.push(Line::Run(Box::new(run)));
    let report = Report::new(&all).unwrap();
    assert!(report.failures.is_empty());
    assert_eq!(report.rows[0].rate(Flagstone), Some(7.0));
}

/// What is said of a run that is changed so, beside one that is not.
fn refused(change: impl Fn(&mut Assignment)) -> String {
    let mut other = testing::run(Flagstone, 1, 5.0);
    change(&mut other.assignment);
    let mut all = lines(&[(Flagstone, 0, 5.0)]);
    all.push(Line::Run(Box::new(other)));
    Report::new(&all).err().unwrap().to_string()
}

#[test]
fn what_is_not_alike_is_not_mixed() {
    assert!(refused(|told| told.effort.scale = 0.5).contains("several scales"));
    assert!(refused(|told| told.database_of = Some(Rocksdb)).contains("the same database"));
    assert!(refused(|told| told.look = Look::Ends).contains("looked at more"));
    let set = ("write_buffer_size".to_string(), "1000000".to_string());
    assert!(refused(|told| told.options.push(set.clone())).contains("other options"));
    assert!(refused(|told| told.maker_options.push(set.clone())).contains("other options"));
    assert_eq!(
        refused(|told| told.program = "flagstone alone".to_string()),
        "some runs of Flagstone were made by a program with all engines, others with flagstone alone"
    );
}

/// Each engine may have a program of its own.
#[test]
fn what_is_beyond_the_tracks_is_named() {
    let mut all = Vec::new();
    for round in 0..2 {
        for (engine, program) in [(Flagstone, "flagstone alone"), (Rocksdb, ALL_ENGINES)] {
            let mut run = testing::run(engine, round, 5.0);
            run.assignment.program = program.to_string();
            run.assignment.look = Look::Ends;
            all.push(Line::Run(Box::new(run)));
        }
    }
    let options = Report::new(&all).unwrap().options;
    assert!(
        options.iter().eq(["--look ends", "flagstone in a program with flagstone alone"]),
        "{options:?}"
    );
}
