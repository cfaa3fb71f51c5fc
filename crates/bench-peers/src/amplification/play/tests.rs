use super::super::contender::Contender;
use super::super::task::Exercise;
use super::super::task::tests::task;
use super::*;

#[test]
fn a_loaded_database_takes_what_it_holds() {
    for exercise in [Exercise::Space, Exercise::Steady] {
        let directory = tempfile::tempdir().unwrap();
        let task = Task { live_bytes: 4 << 20, times: 1, ..task(Contender::Flagstone, exercise) };
        let outcome = play(&task, directory.path()).unwrap();
        let done: Vec<Activity> = outcome.phases.iter().map(|phase| phase.activity).collect();
        assert_eq!(done, exercise.activities());
        let load = &outcome.phases[0];
        let live = task.keys() * task.entry_bytes();
        let ratio = load.written.flushed as f64 / live as f64;
        // Half of each value can be compressed away.
        let least = if exercise == Exercise::Steady { 0.4 } else { 1.0 };
        assert!((least..1.1).contains(&ratio), "{load:?}");
        assert!((least..1.1).contains(&load.space_idle), "{load:?}");
        assert_eq!(load.space_peak, None, "nothing was collected");
    }
}
