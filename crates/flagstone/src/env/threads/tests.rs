//! The line as plain data, and threads that serve members of a few lines each.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::base::sync::{AtomicUsize, Ordering};

const WAIT: Duration = Duration::from_secs(30);

/// A member of the line, which never works.
struct Waiting {
    most: Mutex<JobLimits>,
    seats: Seats,
}

impl Waiting {
    fn new(most: JobLimits) -> Arc<Self> {
        Arc::new(Self { most: Mutex::new(most), seats: Seats::default() })
    }
}

impl Member for Waiting {
    fn work(&self, _: Role) -> Next {
        unreachable!("nobody asks")
    }

    fn jobs_at_most(&self) -> JobLimits {
        *self.most.lock()
    }

    fn seats(&self) -> &Seats {
        &self.seats
    }
}

/// A line of members that have at most so many jobs.
fn line<const N: usize>(most: [usize; N]) -> (Line, [MemberId; N]) {
    let mut line = Line::default();
    let ids = most.map(|most| line.enter(Waiting::new(JobLimits::together(most))));
    (line, ids)
}

fn take(line: &mut Line, role: Role) -> Option<(MemberId, Role)> {
    line.take(role, 0).map(|job| (job.id, job.role))
}

#[test]
fn who_has_much_to_do_lets_others_go_first() {
    use Role::Compaction;
    let (mut line, [busy, other, third]) = line([8, 8, 8]);
    assert!(line.announce(busy, Compaction) && !line.announce(busy, Compaction));
    assert_eq!(take(&mut line, Compaction), Some((busy, Compaction)));
    assert_eq!([busy, other, third].map(|id| line.announce(id, Compaction)), [true; 3]);
    assert_eq!(line.put_back(busy, Compaction, Next::Again, 0), [None, None], "it is there");
    let turns: Vec<_> =
        std::iter::from_fn(|| take(&mut line, Compaction)).map(|(id, _)| id).collect();
    assert_eq!(turns, [busy, other, third]);
    // It goes behind those that came while it was served.
    line.announce(other, Compaction);
    line.put_back(busy, Compaction, Next::Again, 0);
    assert_eq!(take(&mut line, Compaction), Some((other, Compaction)));
    assert_eq!(take(&mut line, Compaction), Some((busy, Compaction)));
}

#[test]
fn flushes_and_compactions_may_have_limits_of_their_own() {
    use Role::{Compaction, Flush};
    let mut line = Line::default();
    let id = line.enter(Waiting::new(JobLimits::apart(1, 2)));
    let mut taken = Vec::new();
    for role in [Compaction, Compaction, Compaction, Flush, Flush] {
        line.announce(id, role);
        taken.push(take(&mut line, role).is_some());
    }
    assert_eq!(taken, [true, true, false, true, false]);
    // Who ends makes room for its own kind, and only for that.
    assert_eq!(line.put_back(id, Flush, Next::After(WAIT), 0), [Some(Flush), Some(Compaction)]);
    assert_eq!(
        take(&mut line, Compaction).map(|(_, role)| role),
        Some(Flush),
        "a thread for either helps"
    );
    assert_eq!(take(&mut line, Compaction), None);
    line.put_back(id, Compaction, Next::After(WAIT), 0);
    assert_eq!(take(&mut line, Compaction).map(|(_, role)| role), Some(Compaction));
}

/// Whoever was given more jobs while it had all of them got none of these before one of the former
/// had ended: a compaction may take an hour.
#[test]
fn who_may_have_more_jobs_has_them_at_once() {
    use Role::Compaction;
    let mut line = Line::default();
    let member = Waiting::new(JobLimits::together(1));
    let id = line.enter(member.clone());
    assert!(line.announce(id, Compaction) && take(&mut line, Compaction).is_some());
    assert!(
        line.announce(id, Compaction) && take(&mut line, Compaction).is_none(),
        "it has its job"
    );
    assert!(!line.announce(id, Compaction));
    *member.most.lock() = JobLimits::together(2);
    assert!(line.announce(id, Compaction) && !line.announce(id, Compaction), "once");
    assert_eq!(take(&mut line, Compaction), Some((id, Compaction)));
    assert_eq!(line.put_back(id, Compaction, Next::After(WAIT), 0), [None, None]);
}

#[test]
fn flushes_come_before_compactions_and_never_wait_for_them() {
    use Role::{Compaction, Flush};
    let mut line = Line::default();
    let first = Waiting::new(JobLimits::together(2));
    let (one, two) = (line.enter(first.clone()), line.enter(Waiting::new(JobLimits::together(8))));
    for id in [one, two] {
        assert_eq!(Role::ALL.map(|role| line.announce(id, role)), [true; 2]);
    }
    // An idle thread for flushes has one of them; a thread for compactions helps with the other.
    assert_eq!(line.take(Compaction, 1).map(|job| (job.id, job.role)), Some((one, Flush)));
    assert_eq!(line.take(Compaction, 1).map(|job| (job.id, job.role)), Some((one, Compaction)));
    // All of two jobs may be compactions; what flushes have is theirs.
    line.put_back(one, Flush, Next::After(Duration::ZERO), 0);
    line.announce(one, Compaction);
    assert_eq!(line.take(Compaction, 1).map(|job| (job.id, job.role)), Some((two, Compaction)));
    assert_eq!(line.take(Compaction, 1).map(|job| (job.id, job.role)), Some((one, Compaction)));
    line.announce(one, Compaction);
    assert!(line.take(Compaction, 1).is_none(), "it has its jobs");
    assert_eq!(first.seats.owed(), 0);
    line.announce(one, Flush);
    assert_eq!(take(&mut line, Flush), Some((two, Flush)));
    assert_eq!(take(&mut line, Flush), Some((one, Flush)));
    assert_eq!(take(&mut line, Flush), None, "a thread for flushes does nothing else");
    let flush = first.seats.flush();
    assert_eq!(first.seats.owed(), 1, "of three jobs one is to pause");
    // Whichever ends, that one goes on.
    assert_eq!(line.put_back(one, Compaction, Next::Again, 0), [None, Some(Compaction)]);
    assert_eq!((first.seats.owed(), take(&mut line, Compaction)), (0, None));
    drop(flush);
    assert_eq!(line.put_back(one, Flush, Next::After(Duration::ZERO), 0), [None, Some(Compaction)]);
    assert_eq!(take(&mut line, Compaction), Some((one, Compaction)));
}

/// It counted as a job: a compaction paused though no more worked than may.
#[test]
fn a_flush_that_waits_for_another_keeps_no_compaction_waiting() {
    use Role::{Compaction, Flush};
    let (mut line, member) = (Line::default(), Waiting::new(JobLimits::together(4)));
    let id = line.enter(member.clone());
    for role in [Compaction, Compaction, Compaction, Flush, Flush] {
        line.announce(id, role);
        assert_eq!(take(&mut line, role), Some((id, role)));
    }
    let older = member.seats.flush();
    assert_eq!(member.seats.owed(), 0, "three compactions and a flush work");
    let newer = member.seats.flush();
    assert_eq!(member.seats.owed(), 1);
    drop(newer);
    assert_eq!(member.seats.owed(), 0);
    drop(older);
}

#[test]
fn a_single_job_may_be_a_compaction_beside_a_flush() {
    use Role::{Compaction, Flush};
    let (mut line, [id]) = line([1]);
    let mut taken = Vec::new();
    for role in [Compaction, Compaction, Flush] {
        line.announce(id, role);
        taken.push(take(&mut line, role).is_some());
    }
    assert_eq!(taken, [true, false, true]);
}

#[test]
fn who_has_nothing_to_do_is_asked_after_a_while() {
    use Role::Flush;
    let (mut line, [one, two]) = line([2, 2]);
    for (id, rest) in [(one, 2000), (two, 1000)] {
        line.announce(id, Flush);
        take(&mut line, Flush).unwrap();
        line.put_back(id, Flush, Next::After(Duration::from_micros(rest)), 10);
    }
    assert_eq!(
        (line.next_ring(Flush), line.ring(Flush, 1009), line.len(Flush)),
        (Some(1010), 0, 0)
    );
    assert_eq!((line.ring(Flush, 1010), line.next_ring(Flush)), (1, Some(2010)));
    assert_eq!(take(&mut line, Flush), Some((two, Flush)));
    // What is announced meanwhile counts, and at once.
    assert!(line.announce(one, Flush) && line.announce(two, Flush));
    assert_eq!(line.next_ring(Flush), None);
    line.put_back(two, Flush, Next::After(Duration::from_secs(1)), 10);
    assert_eq!((line.next_ring(Flush), line.len(Flush)), (None, 2));
    // Who leaves is in no line and no timetable; what runs for it is known.
    assert_eq!(take(&mut line, Flush), Some((one, Flush)));
    line.forbid(one);
    line.forbid(two);
    assert!(line.is_served(one) && !line.is_served(two) && !line.announce(one, Flush));
    line.put_back(one, Flush, Next::Again, 10);
    assert_eq!((line.is_served(one), line.len(Flush), line.next_ring(Flush)), (false, 0, None));
    assert!(line.remove(one).is_some() && line.remove(one).is_none());
}

/// Of three compactions as many pause as are to, and go on when they may.
#[test]
fn compactions_pause_for_flushes() {
    let seats = Arc::new(Seats::default());
    seats.set_running(3, 3);
    // No flush works yet.
    seats.make_room();
    let [first, second] = [seats.flush(), seats.flush()];
    let (went_on, seen) = channel();
    let threads = [0; 3].map(|_| pausing(&seats, &went_on));
    // One of them goes on.
    seen.recv_timeout(WAIT).unwrap();
    wait_for_paused(&seats, 2);
    assert!(seen.try_recv().is_err());
    seats.make_room();
    drop(first);
    seen.recv_timeout(WAIT).unwrap();
    assert!(seen.try_recv().is_err());
    assert_eq!(seats.paused(), 1);
    drop(second);
    seen.recv_timeout(WAIT).unwrap();
    assert_eq!(threads.map(|thread| thread.join()), [false; 3], "none panicked");
    assert_eq!(seats.paused(), 0);
}

/// Went wrong: who had paused for one flush, and had not woken when the next came, slept on.
#[test]
fn who_has_paused_for_a_flush_goes_on_before_the_next() {
    let seats = Arc::new(Seats::default());
    seats.set_running(1, 1);
    let (went_on, seen) = channel();
    for _ in 0..100 {
        let flush = seats.flush();
        let thread = pausing(&seats, &went_on);
        wait_for_paused(&seats, 1);
        drop(flush);
        let next = seats.flush();
        seen.recv_timeout(WAIT).unwrap();
        assert!(!thread.join());
        drop(next);
    }
}

fn pausing(seats: &Arc<Seats>, went_on: &Sender<()>) -> Box<dyn Join> {
    let (seats, went_on) = (seats.clone(), went_on.clone());
    let work = Box::new(move || {
        seats.make_room();
        went_on.send(()).unwrap();
    });
    Env::os().spawner.spawn("pausing", work).unwrap()
}

fn wait_for_paused(seats: &Seats, count: usize) {
    while seats.paused() < count {
        std::thread::yield_now();
    }
}

/// Tells of each look, and does as it is told.
struct Told {
    name: usize,
    looks: Mutex<Sender<(usize, Role)>>,
    answers: Mutex<Receiver<Option<Next>>>,
    running: AtomicUsize,
    seats: Seats,
}

impl Member for Told {
    fn work(&self, role: Role) -> Next {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.looks.lock().send((self.name, role)).unwrap();
        let answer = self.answers.lock().recv_timeout(WAIT).unwrap();
        self.running.fetch_sub(1, Ordering::SeqCst);
        answer.expect("a panic is wanted")
    }

    fn jobs_at_most(&self) -> JobLimits {
        JobLimits::together(2)
    }

    fn seats(&self) -> &Seats {
        &self.seats
    }
}

/// A member, and the way to answer it.
type Answered = (Arc<Told>, Sender<Option<Next>>);

/// Members that tell of their looks to one.
fn told<const N: usize>() -> ([Answered; N], Receiver<(usize, Role)>) {
    let (looks, seen) = channel();
    let members = std::array::from_fn(|name| {
        let (answer, answers) = channel();
        let looks = Mutex::new(looks.clone());
        let answers = Mutex::new(answers);
        let told =
            Told { name, looks, answers, running: AtomicUsize::new(0), seats: Seats::default() };
        (Arc::new(told), answer)
    });
    (members, seen)
}

const REST: Option<Next> = Some(Next::After(Duration::from_secs(3600)));

/// While one member's job does not end, others are served, and leave.
#[test]
fn nobody_waits_for_anothers_job() {
    let ([(stuck, free_it), (other, answer), (panicking, panic)], seen) = told::<3>();
    let threads = BackgroundThreads::with_env(
        BackgroundThreadsOptions { niceness: 0, ..BackgroundThreadsOptions::default() },
        &Env::memory(),
    )
    .unwrap();
    assert_eq!(format!("{threads:?}"), "BackgroundThreads(1 for flushes, 1 for compactions)");
    let first = threads.join(stuck.clone()).unwrap();
    let mut asked = [seen.recv_timeout(WAIT).unwrap(), seen.recv_timeout(WAIT).unwrap()];
    asked.sort_by_key(|(_, role)| *role as usize);
    assert_eq!(asked, [(0, Role::Flush), (0, Role::Compaction)]);
    // One of the threads is free again.
    free_it.send(REST).unwrap();

    let second = threads.join(panicking).unwrap();
    (0..2).for_each(|_| panic.send(None).unwrap());
    seen.recv_timeout(WAIT).unwrap();
    threads.leave(second);

    let third = threads.join(other.clone()).unwrap();
    (0..2).for_each(|_| answer.send(REST).unwrap());
    while seen.recv_timeout(WAIT).unwrap().0 != 1 {}
    threads.leave(third);
    assert_eq!((Arc::strong_count(&other), stuck.running.load(Ordering::SeqCst)), (1, 1));
    threads.announce(third, Role::Flush);

    // Its own job is waited for.
    free_it.send(Some(Next::Again)).unwrap();
    let _ = [REST; 2].map(|rest| free_it.send(rest).unwrap());
    threads.leave(first);
    assert_eq!((Arc::strong_count(&stuck), stuck.running.load(Ordering::SeqCst)), (1, 0));
}

/// A clock of a simulated world may stand still; who rests is asked all the same.
#[test]
fn rests_end_also_where_no_time_passes() {
    struct Still;
    impl Clock for Still {
        fn now_us(&self) -> u64 {
            7
        }
        fn unix_seconds(&self) -> u64 {
            7
        }
        fn sleep(&self, _: Duration) {}
    }
    let ([(member, answer)], seen) = told::<1>();
    let env = Env { clock: Arc::new(Still), ..Env::memory() };
    let threads = BackgroundThreads::of([1, 1], LowPriority::NONE, &env);
    let id = threads.join(member).unwrap();
    for _ in 0..10 {
        answer.send(Some(Next::After(Duration::from_millis(1)))).unwrap();
        seen.recv_timeout(WAIT).unwrap();
    }
    let _ = [REST; 2].map(|rest| answer.send(rest).unwrap());
    threads.leave(id);
}

#[test]
fn senseless_counts_are_refused() {
    let good = BackgroundThreadsOptions::default();
    for options in [
        BackgroundThreadsOptions { flush_threads: 0, ..good },
        BackgroundThreadsOptions { compaction_threads: 0, ..good },
        BackgroundThreadsOptions { compaction_threads: 1025, ..good },
        BackgroundThreadsOptions { niceness: 20, ..good },
    ] {
        assert!(BackgroundThreads::new(options).is_err(), "{options:?}");
    }
}
