use super::*;

#[test]
fn what_gives_way_leaves_the_calling_thread_its_priority() {
    let niceness = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
    let (before, mut seen) = (niceness(), None);
    run_giving_way("test", LowPriority::of_niceness(3), Box::new(|| seen = Some(niceness())));
    assert_eq!((seen, niceness()), (Some((before + 3).min(19)), before));
}

#[test]
fn io_is_idle_only_in_the_thread_that_gives_way() {
    let class = || io_class::get().unwrap();
    for (idle_io, niceness) in [(true, 0), (true, 3), (false, 3)] {
        let (before, mut seen) = (class(), None);
        let priority = LowPriority { niceness, idle_io };
        run_giving_way("test", priority, Box::new(|| seen = Some(class())));
        assert_eq!(seen == Some(io_class::IDLE), idle_io, "{seen:?}");
        assert_eq!(class(), before);
    }
}
