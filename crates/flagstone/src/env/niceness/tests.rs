use super::*;

#[test]
fn what_gives_way_leaves_the_calling_thread_its_priority() {
    let niceness = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
    let (before, mut seen) = (niceness(), None);
    run_giving_way("test", 3, Box::new(|| seen = Some(niceness())));
    assert_eq!((seen, niceness()), (Some((before + 3).min(19)), before));
}
