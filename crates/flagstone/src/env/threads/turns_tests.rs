//! Pieces of work, and who does them: `g` a thread that has given way, `p` one that has not.

use super::turns::*;
use super::*;
use crate::base::sync::{AtomicBool, AtomicU64, Ordering};
use crate::env::Task;

/// A world whose clock is turned by hand, and whose thread knows whether it has given way.
#[derive(Default)]
struct World {
    now_us: AtomicU64,
    gave_way: AtomicBool,
    niceness: Mutex<Vec<i32>>,
}

impl Clock for World {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }

    fn unix_seconds(&self) -> u64 {
        0
    }

    fn sleep(&self, duration: Duration) {
        self.now_us.fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
    }
}

impl Spawn for World {
    fn spawn(&self, _: &str, _: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        unreachable!("nobody starts any")
    }

    fn run_giving_way(&self, _: &str, priority: LowPriority, task: Task<'_>) {
        self.niceness.lock().push(priority.niceness);
        self.gave_way.store(true, Ordering::SeqCst);
        task();
        self.gave_way.store(false, Ordering::SeqCst);
    }
}

impl World {
    /// Does so many pieces of work, and says who did each; `before` is done before each of them.
    fn do_all(
        &self,
        sleepers: &Sleepers,
        pieces: usize,
        mut before: impl FnMut(usize) + Send,
    ) -> String {
        let mut done = String::new();
        let way = GivingWay {
            spawner: self,
            clock: self,
            priority: LowPriority::of_niceness(7),
            sleepers,
        };
        let turns = way.take_turns(|turn| {
            while done.len() < pieces {
                before(done.len());
                done.push(if self.gave_way.load(Ordering::SeqCst) { 'g' } else { 'p' });
                if turn.is_over() {
                    return Ok(false);
                }
            }
            Ok(true)
        });
        // Neighbours of the other kind begin a turn.
        let prompt = format!("g{done}").matches("gp").count();
        assert_eq!(turns.unwrap(), prompt as u64, "{done}");
        done
    }
}

#[test]
fn work_gives_way_while_nobody_sleeps_for_it() {
    let (world, sleepers) = (World::default(), Sleepers::default());
    assert_eq!(
        world.do_all(&sleepers, 100, |_| world.sleep(Duration::from_secs(1))),
        "g".repeat(100)
    );
    assert_eq!(*world.niceness.lock(), [7], "one turn");
}

/// A compaction that had given way was not to be hurried: writers who had to wait for it slept for
/// as long as others kept the processor.
#[test]
fn work_does_not_give_way_from_the_moment_on_that_somebody_sleeps() {
    let (world, sleepers) = (World::default(), Sleepers::default());
    let mut asleep = None;
    let who = world.do_all(&sleepers, 1000, |piece| {
        if piece == 3 {
            asleep = Some(sleepers.enter());
        }
        world.sleep(Duration::from_secs(1));
    });
    assert_eq!(who, "gggg".to_string() + &"p".repeat(996));
    // The next finds them asleep.
    assert_eq!(world.do_all(&sleepers, 30, |_| ()), "p".repeat(30));
    drop(asleep);
    assert_eq!(world.do_all(&sleepers, 30, |_| ()), "g".repeat(30));
}

#[test]
fn it_gives_way_again_when_nobody_has_slept_for_a_while() {
    let (world, sleepers) = (World::default(), Sleepers::default());
    let mut asleep = None;
    let who = world.do_all(&sleepers, 400, |piece| {
        asleep = match piece {
            // Who is held up wakes now and then, and writes.
            0..100 if piece % 32 < 20 => asleep.take().or_else(|| Some(sleepers.enter())),
            _ => None,
        };
        world.sleep(Duration::from_millis(1));
    });
    assert!(who.starts_with("gppp") && who.ends_with("ggg"), "{who}");
    let last = who.rfind('p').unwrap();
    assert_eq!(who[1..].find('g').unwrap() + 1, last + 1, "one turn of the prompt: {who}");
    assert!((140..170).contains(&last), "50 ms after somebody was seen asleep: {who}");
    assert_eq!(*world.niceness.lock(), [7, 7]);
}

#[test]
fn failures_and_panics_are_those_of_the_work() {
    let (world, sleepers) = (World::default(), Sleepers::default());
    let way = GivingWay {
        spawner: &world,
        clock: &world,
        priority: LowPriority::of_niceness(1),
        sleepers: &sleepers,
    };
    let failure = way.take_turns(|_| Err(Error::invalid_argument("of mine"))).unwrap_err();
    assert!(failure.to_string().contains("of mine"));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        way.take_turns(|_| std::panic::resume_unwind(Box::new("mine")))
    }));
    assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"mine"));
    assert!(!world.gave_way.load(Ordering::SeqCst), "it was caught where it was run");
}

#[test]
fn without_niceness_there_are_no_turns() {
    let (world, sleepers) = (World::default(), Sleepers::default());
    let way = GivingWay {
        spawner: &world,
        clock: &world,
        priority: LowPriority::of_niceness(0),
        sleepers: &sleepers,
    };
    let asleep = sleepers.enter();
    let mut calls = 0;
    let turns = way.take_turns(|turn| {
        calls += 1;
        Ok((0..1000).all(|_| !turn.is_over()))
    });
    drop(asleep);
    assert_eq!((turns.unwrap(), calls, world.niceness.lock().len()), (0, 1, 0));
}
