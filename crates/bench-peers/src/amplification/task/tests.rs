use super::*;

pub fn task(contender: Contender, exercise: Exercise) -> Task {
    Task {
        contender,
        exercise,
        value_size: 4096,
        live_bytes: 1 << 20,
        times: 5,
        round: 0,
        options: Vec::new(),
    }
}

#[test]
fn the_warm_up_is_one_of_the_times() {
    let steady = task(Contender::RocksdbLeveled, Exercise::Steady);
    let puts = |activity| steady.puts(activity) / steady.keys();
    assert_eq!([Activity::Load, Activity::WarmUp, Activity::Overwrite].map(puts), [1, 1, 4]);
    let space = task(Contender::RocksdbLeveled, Exercise::Space);
    assert_eq!(space.puts(Activity::Overwrite), 5 * space.keys());
    assert_eq!(space.puts(Activity::Scan), 0);
}
