use super::super::meter::Written;
use super::super::task::tests::task;
use super::*;

fn outcome(contender: Contender, exercise: Exercise, round: u32, seconds: f64) -> Line {
    let written = Written { flushed: 1000, compacted: 250, collected: 1 };
    let phases = exercise.activities().iter().map(|activity| Phase {
        activity: *activity,
        puts: 1000,
        seconds,
        written,
        space_peak: (*activity != Activity::Load).then_some(1.5),
        space_idle: 1.25,
    });
    let task = Task { round, ..task(contender, exercise) };
    Line::Amplification(Box::new(Outcome { task, phases: phases.collect() }))
}

#[test]
fn space_reads_like_this() {
    let lines = [
        outcome(Contender::RocksdbBlob, Exercise::Space, 0, 1.0),
        outcome(Contender::Flagstone, Exercise::Space, 0, 1.0),
        outcome(Contender::Flagstone, Exercise::Steady, 0, 1.0),
    ];
    let text = Found::new(&lines, Exercise::Space).text(Exercise::Space);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| 4K")).collect();
    assert!(
        text.starts_with("- 1 MiB of live data, overwritten 5 times, memtables of 16 MiB.\n"),
        "{text}"
    );
    assert!(
        rows[0].starts_with("| 4K | Flagstone | **1.25** - / 1.25 | **1.25** 1.50 / 1.25 |"),
        "{text}"
    );
    assert!(rows[1].starts_with("| 4K | RocksDB, BlobDB |") && rows.len() == 2, "{text}");
}

#[test]
fn steady_compares_rounds() {
    let of = |contender, round, seconds| outcome(contender, Exercise::Steady, round, seconds);
    let lines = [
        of(Contender::Flagstone, 0, 1.0),
        of(Contender::RocksdbLeveled, 0, 2.0),
        of(Contender::RocksdbLeveled, 1, 4.0),
        of(Contender::Flagstone, 1, 1.0),
        of(Contender::FlagstoneUniversal, 0, 1.0),
    ];
    let text = Found::new(&lines, Exercise::Steady).text(Exercise::Steady);
    let row = text.lines().last().unwrap();
    assert_eq!(row, "| 4K | leveled | 1,000 | 375 | **3.00** (2.00 - 4.00) | 1.25 | 1.25 | 1.00 |");
}
