use super::*;
use crate::store::Line;
use crate::testing;

#[test]
fn a_family_has_its_plots() {
    let run = |engine, round, rate| {
        let cell = testing::cell(Workload::Overload, 100);
        Line::Run(Box::new(testing::run_of(cell, engine, round, rate)))
    };
    let lines: Vec<Line> = (0..3)
        .flat_map(|round| {
            [run(EngineName::Flagstone, round, 300.0), run(EngineName::Rocksdb, round, 100.0)]
        })
        .collect();
    let report = Report::new(&lines).unwrap();
    let plots = plots(&report, Track::Tuned, Family::Mixed);
    let files: Vec<_> = plots.iter().map(|plot| plot.file.as_str()).collect();
    assert_eq!(files, ["tuned-mixed.svg", "tuned-overload-100.svg"]);
    assert!(plots[0].text.contains("class=\"won\"") && plots[0].text.contains(">3.00<"));
    assert!(plots[1].text.contains("300/s") && plots[1].text.contains("RocksDB"));
    assert!(plots.iter().all(|plot| plot.text.matches("<svg").count() == 1));
}
