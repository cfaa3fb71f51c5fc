use super::*;

#[test]
fn shares_cover_everything_once() {
    let all: Vec<u64> = (0..3).flat_map(|index| share(10, index, 3)).collect();
    assert!(all.into_iter().eq(0..10));
}

#[test]
fn what_threads_did_is_added_up() {
    let body = |index: u32, recorder: &mut Recorder| {
        (0..=index).for_each(|_| recorder.finished(1));
        Ok(())
    };
    assert_eq!(on_threads(3, body).unwrap().part("x").operations, 6);
    assert!(on_threads(2, |_, _| Err("no".into())).is_err());
}

/// Those that had been started waited at a barrier for one that could not be, and who had started
/// them waited for them.
#[test]
fn where_a_thread_cannot_be_started_none_is_waited_for() {
    // No address space has room for that stack.
    let build = |index| Builder::new().stack_size(if index == 2 { 1 << 60 } else { 1 << 16 });
    let outcome = on_built(4, build, |_, _| panic!("nobody begins"));
    assert!(outcome.err().unwrap().to_string().contains("thread 2 of 4"));
}
