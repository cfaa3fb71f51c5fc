//! How fast writers may go while flushes and compactions are behind.
//!
//! Both rules are continuous: where a delay begins, it asks for no less than writers did of their own accord, and it grows
//! with the debt, until writers and background are equally fast. So nobody is stopped in the middle of an overload.

/// The space on the disk that writers may take before a limit, in bytes as they count them.
///
/// In its last part they are slowed down, the more the less is left. So they come to be as fast as space is given back, and
/// hardly reach the end, be it given back ever so slowly. What they write counts at once, and not only when a memtable is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteHeadroom {
    /// What is left.
    pub left: u64,
    /// What is left where they begin to brake.
    pub brakes_at: u64,
    /// What they achieve.
    pub speeds: Speeds,
    /// The option of this name, in bytes a second.
    pub delayed_write_rate: u64,
}

/// How often writers who brake look at how fast they may go, at least, before the end.
const LOOKS: u64 = 64;

impl WriteHeadroom {
    /// The rate now; [`u64::MAX`] where nobody brakes yet.
    pub fn rate(&self) -> u64 {
        if self.left >= self.brakes_at {
            return u64::MAX;
        }
        let severity = 1.0 - self.left as f64 / self.brakes_at as f64;
        self.speeds.rate_in_debt(severity, self.delayed_write_rate).max(1)
    }

    /// Whether writers sleep most of their time now.
    pub fn is_hard(&self) -> bool {
        self.speeds.is_hard(self.rate(), self.delayed_write_rate)
    }

    /// Bytes that may be written before the rate is to be looked at again.
    pub fn piece(&self) -> u64 {
        self.left.saturating_sub(self.brakes_at).max(self.brakes_at / LOOKS)
    }
}

/// How many memtables, the one being filled among them, may be full before writers stop, where so many of `most` wait for a
/// flush; `None` while writers need not heed that: of many memtables half are theirs, for a burst.
///
/// Writers are held to what keeps that room until what waits is flushed ([`Speedometer::rate_while_flushing`]): where as many
/// wait as are left, to the speed of flushes. So several flushes have something to do at the same time, and no rate falls by
/// leaps.
pub fn memtables_left(waiting: usize, most: usize) -> Option<u64> {
    let is_heeded = waiting > 0 && 2 * waiting + 2 >= most;
    is_heeded.then(|| most.saturating_sub(waiting).max(1) as u64)
}

/// What writers and flushes achieve, in bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speeds {
    /// Of writers that nobody holds up, lately; 0 if that is not known.
    pub writing: u64,
    /// Of flushes lately, in bytes as writers count them; 0 if that is not known.
    pub flushing: u64,
}

/// Who is held to this part of what they achieve, or less, is held up hard: braking by half is the rule where much is written.
const HARD: u64 = 4;

/// The same for who brakes for a flush: writers are several times as fast as flushes where nobody holds them up.
const HARD_FOR_FLUSHES: u64 = 8;

/// Flushes vary; writers that are held to a little more than their mean seldom wait in vain.
const FLUSH_SLACK: f64 = 1.1;

/// The room in the last memtable that writers have while others are flushed, in bytes as they count them.
///
/// A flush that takes longer than it was expected to would stop them in the end, for as long as it still takes. So the
/// nearer the memtable is to being full, the more gently it is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What is left.
    pub left: u64,
    /// What there was at first.
    pub whole: u64,
    /// What writers achieve, in bytes a second; 0 if that is not known.
    pub writing: u64,
}

/// The part of the room in which writers brake, and how much at most.
const BRAKE: (u64, u64) = (4, 16);

impl Room {
    /// What is left of `rate`: all of it but in the last quarter of the room, where it falls with what is left, to a sixteenth.
    pub fn brake(&self, rate: u64) -> u64 {
        let braking = (self.whole / BRAKE.0).max(1);
        let left = self.left.clamp(braking / BRAKE.1, braking);
        (u128::from(rate) * u128::from(left) / u128::from(braking)) as u64
    }

    /// Whether writers who are held to `rate`, and brake, sleep most of their time: flushes hardly get the processor.
    pub fn is_hard(&self, rate: u64) -> bool {
        self.brake(rate) < self.writing / HARD_FOR_FLUSHES
    }
}

impl Speeds {
    /// The rate at a debt of `severity`, between 0 where delays begin and 1 where writes stop: from what writers achieve, but
    /// at least `delayed_write_rate`, by equal factors down to a tenth of `delayed_write_rate`.
    pub fn rate_in_debt(&self, severity: f64, delayed_write_rate: u64) -> u64 {
        let most = self.writing.max(delayed_write_rate).max(1) as f64;
        let least = delayed_write_rate as f64 / 10.0;
        let severity = severity.clamp(0.0, 1.0);
        (most.powf(1.0 - severity) * least.max(1.0).powf(severity)) as u64
    }

    /// Whether a rate holds writers to less than a quarter of what they achieve, or could at [`Self::rate_in_debt`].
    pub fn is_hard(&self, rate: u64, delayed_write_rate: u64) -> bool {
        rate < self.writing.max(delayed_write_rate) / HARD
    }

    /// The rate at which a memtable with `room` bytes is full no sooner than `waiting` bytes of others are flushed, both in
    /// bytes of memory; `None` if nobody knows how long that takes.
    fn rate_while_flushing(&self, room: u64, waiting: u64) -> Option<u64> {
        let seconds = waiting.max(1) as f64 / (self.flushing as f64 * FLUSH_SLACK);
        (self.flushing > 0).then(|| (room as f64 / seconds) as u64)
    }
}

/// Measures [`Speeds`] as time goes by.
#[derive(Debug, Clone, Copy, Default)]
pub struct Speedometer {
    speeds: Speeds,
    /// When, in microseconds, and at how many bytes the writers' last stretch began; `None` while they are held up.
    stretch: Option<(u64, u64)>,
    flushes: Flushes,
    density: Density,
}

/// How much of memtables is what writers wrote; the rest is the index and what it keeps free.
#[derive(Debug, Clone, Copy, Default)]
struct Density {
    /// What writers had written in all when the last memtable was full.
    total: u64,
    /// Bytes as writers count them, lately.
    written: u64,
    /// The memtables' memory for these.
    memory: u64,
}

impl Density {
    fn written(&self, memory: u64) -> u64 {
        match self.memory {
            0 => memory,
            known => (u128::from(memory) * u128::from(self.written) / u128::from(known)) as u64,
        }
    }
}

/// What flushes did lately; several may run at once.
#[derive(Debug, Clone, Copy, Default)]
struct Flushes {
    bytes: u64,
    /// While at least one was running.
    us: u64,
    /// Up to when the time is counted.
    counted_us: u64,
}

/// A flush is small if so many of its size are less than what was flushed lately, which is four times the mean.
const SMALL_FLUSH: u64 = 64;

/// Nor do flushes tell how long one takes of more than so many times what was flushed lately.
const FAR_LARGER: u64 = 4;

/// Shorter stretches say little.
const STRETCH_MIN_US: u64 = 50_000;

impl Speedometer {
    /// What has been measured.
    pub fn speeds(&self) -> Speeds {
        self.speeds
    }

    /// The rate at which memtables with `room` bytes are full no sooner than `waiting` bytes of others are flushed, both in bytes
    /// of memory; `None` if nobody knows how long that takes. Until a flush of about that size has been timed it passes for half
    /// as fast as writers, who may be as fast as where delays begin: what they wrote lately may be little.
    pub fn rate_while_flushing(&self, room: u64, waiting: u64, delayed_write_rate: u64) -> Option<u64> {
        let Speeds { writing, flushing } = self.speeds;
        let is_told = self.written(waiting) <= self.flushes.bytes.saturating_mul(FAR_LARGER);
        let flushing = match is_told {
            true => flushing,
            false if writing == 0 => 0,
            false => flushing.max(writing.max(delayed_write_rate) / 2),
        };
        Speeds { writing, flushing }.rate_while_flushing(room, waiting)
    }

    /// Notes that writers have written `total` bytes up to now, and whether they go on freely.
    pub fn note_writes(&mut self, now_us: u64, total: u64, freely: bool) {
        if let Some((start_us, start_bytes)) = self.stretch {
            let us = now_us.saturating_sub(start_us);
            if freely && us < STRETCH_MIN_US {
                return;
            }
            if us >= STRETCH_MIN_US {
                follow(&mut self.speeds.writing, total.saturating_sub(start_bytes), us);
            }
        }
        self.stretch = freely.then_some((now_us, total));
    }

    /// Notes that a memtable of `memory` bytes is full, where writers have written `total` bytes up to now.
    pub fn note_full(&mut self, memory: u64, total: u64) {
        let Density { total: before, written, memory: lately } = &mut self.density;
        *written = *written / 4 * 3 + total.saturating_sub(*before);
        *lately = *lately / 4 * 3 + memory;
        *before = total;
    }

    /// Of so many bytes of memtables, those that writers count.
    pub fn written(&self, memory: u64) -> u64 {
        self.density.written(memory)
    }

    /// Notes that a flush begins while no other is running.
    pub fn begin_flushes(&mut self, now_us: u64) {
        self.flushes.counted_us = now_us;
    }

    /// Notes that `memory` bytes of memtables have been flushed.
    ///
    /// A flush of far less than others takes as long as the disk takes to answer, and does not tell how fast large ones are: it
    /// only makes what was measured before count a little less, should all be small from now on.
    pub fn note_flush(&mut self, memory: u64, now_us: u64) {
        let bytes = self.density.written(memory);
        let Flushes { bytes: lately, us, counted_us } = &mut self.flushes;
        let took_us = now_us.saturating_sub(*counted_us);
        *counted_us = now_us;
        if bytes.saturating_mul(SMALL_FLUSH) < *lately {
            (*lately, *us) = (*lately / 16 * 15, *us / 16 * 15);
            return;
        }
        *lately = *lately / 4 * 3 + bytes;
        *us = *us / 4 * 3 + took_us;
        self.speeds.flushing = per_second(*lately, *us);
    }
}

/// Moves a speed towards a new measurement.
fn follow(speed: &mut u64, bytes: u64, us: u64) {
    let measured = per_second(bytes, us);
    *speed = match *speed {
        0 => measured,
        known => known / 4 * 3 + measured / 4,
    };
}

fn per_second(bytes: u64, us: u64) -> u64 {
    (u128::from(bytes) * 1_000_000 / u128::from(us.max(1))).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn delays_begin_gently_and_grow_by_equal_factors() {
        let fast = Speeds { writing: 160 * MIB, flushing: 0 };
        let rate = |severity| fast.rate_in_debt(severity, 16 * MIB) as f64 / MIB as f64;
        let cases = [(0.0, 160.0), (0.5, 16.0), (1.0, 1.6), (7.0, 1.6)];
        for (severity, expected) in cases {
            assert!((rate(severity) - expected).abs() < 0.01, "at {severity}: {} MiB/s", rate(severity));
        }
        let unknown = Speeds::default();
        assert_eq!(unknown.rate_in_debt(0.0, 16 * MIB), 16 * MIB);
        assert_eq!(unknown.rate_in_debt(1.0, 0), 1);
    }

    #[test]
    fn less_than_a_quarter_of_what_writers_achieve_is_hard() {
        let fast = Speeds { writing: 160 * MIB, flushing: 0 };
        assert_eq!([40 * MIB, 40 * MIB - 1].map(|rate| fast.is_hard(rate, 16 * MIB)), [false, true]);
        // They may achieve as much as where delays begin.
        assert_eq!(
            [4 * MIB, 4 * MIB - 1].map(|rate| Speeds::default().is_hard(rate, 16 * MIB)),
            [false, true]
        );
    }

    #[test]
    fn a_memtable_fills_no_faster_than_others_are_flushed() {
        let speeds = Speeds { writing: 0, flushing: 100 * MIB };
        assert_eq!(speeds.rate_while_flushing(64 * MIB, 64 * MIB), Some(110 * MIB));
        assert_eq!(speeds.rate_while_flushing(64 * MIB, 128 * MIB), Some(55 * MIB));
        assert_eq!(Speeds::default().rate_while_flushing(64 * MIB, 64 * MIB), None);
    }

    /// Writers achieve `writing` bytes a second, and flushes of so many bytes took so many microseconds.
    fn meter(writing: u64, flushes: &[(u64, u64)]) -> Speedometer {
        let mut meter = Speedometer::default();
        meter.note_writes(0, 0, true);
        meter.note_writes(1_000_000, writing, true);
        let mut now_us = 1_000_000;
        for (bytes, took_us) in flushes {
            meter.begin_flushes(now_us);
            now_us += took_us;
            meter.note_flush(*bytes, now_us);
        }
        meter
    }

    /// A program wrote a little, flushed it, and then began to load: until its first full memtable was flushed it was held to
    /// kilobytes a second, as the flushes of a few bytes had been as slow as the disk was to answer. So it was where it had
    /// written a little for long, and flushed nothing.
    #[test]
    fn what_was_flushed_in_little_pieces_does_not_tell_how_long_a_memtable_takes() {
        let rate = |meter: Speedometer, bytes: u64| {
            meter.rate_while_flushing(bytes, bytes, 16 * MIB).expect("a rate") as f64 / MIB as f64
        };
        let little = vec![(1000, 50_000); 30];
        assert!(
            (rate(meter(80 * MIB, &little), 64 * MIB) - 44.0).abs() < 0.1,
            "half of what writers achieve"
        );
        assert!(rate(meter(80 * MIB, &little), 2000) < 0.1, "they tell of others as small");
        assert!((rate(meter(80 * MIB, &[]), 64 * MIB) - 44.0).abs() < 0.1, "none was timed");
        assert!((rate(meter(10_000, &[]), 64 * MIB) - 8.8).abs() < 0.1, "they may be faster than lately");
        let full = vec![(64 * MIB, 6_400_000); 5];
        assert!((rate(meter(80 * MIB, &full), 64 * MIB) - 11.0).abs() < 0.1, "a slow disk is believed");
        assert!((rate(meter(80 * MIB, &full), 192 * MIB) - 11.0).abs() < 0.1, "also for several");
        assert_eq!(
            Speedometer::default().rate_while_flushing(MIB, MIB, 16 * MIB),
            None,
            "nobody knows anything"
        );
    }

    /// With two of four waiting, writers were held to half of what one flush achieved: the second thread had nothing to do.
    #[test]
    fn as_many_memtables_may_wait_as_are_left_before_writers_are_slower_than_flushes() {
        let speeds = Speeds { writing: 0, flushing: 100 * MIB };
        let rate = |waiting: usize, most: usize| {
            let left = memtables_left(waiting, most)?;
            speeds.rate_while_flushing(left * 64 * MIB, waiting as u64 * 64 * MIB).map(|rate| rate / MIB)
        };
        let rates = |most: usize| (0..=most).map(|waiting| rate(waiting, most)).collect::<Vec<_>>();
        assert_eq!(rates(2), [None, Some(110), Some(55)]);
        assert_eq!(rates(4), [None, Some(330), Some(110), Some(36), Some(27)]);
        assert_eq!(rates(8)[..6], [None, None, None, Some(183), Some(110), Some(66)]);
        assert_eq!(memtables_left(9, 4), Some(1), "flushes that were asked for may leave more");
    }

    #[test]
    fn the_last_quarter_of_a_memtable_is_filled_ever_more_gently() {
        let rate = |left| Room { left: left * MIB, whole: 64 * MIB, writing: 0 }.brake(160);
        let cases = [(64, 160), (16, 160), (8, 80), (2, 20), (1, 10), (0, 10)];
        cases.iter().for_each(|&(left, expected)| assert_eq!(rate(left), expected, "{left} MiB left"));
        assert_eq!(
            Room { left: 0, whole: 0, writing: 0 }.brake(160),
            0,
            "nobody holds writers to less than the least rate"
        );
    }

    #[test]
    fn flushes_are_as_fast_as_what_they_free_writers_of() {
        let mut meter = Speedometer::default();
        meter.begin_flushes(0);
        meter.note_flush(64 * MIB, 1_000_000);
        assert_eq!((meter.speeds().flushing, meter.written(MIB)), (64 * MIB, MIB), "not known yet");
        meter.note_full(64 * MIB, 48 * MIB);
        assert_eq!(meter.written(64 * MIB), 48 * MIB);
        meter.note_full(32 * MIB, 72 * MIB);
        assert_eq!(meter.written(64 * MIB), 48 * MIB);
        meter.note_full(64 * MIB, 200 * MIB);
        assert!(meter.written(MIB) > MIB, "values in blob files are in no memtable");
        let mut other = Speedometer::default();
        other.note_full(64 * MIB, 48 * MIB);
        other.begin_flushes(0);
        other.note_flush(64 * MIB, 1_000_000);
        assert_eq!(other.speeds().flushing, 48 * MIB);
    }

    #[test]
    fn only_what_is_written_freely_tells_how_fast_writers_are() {
        let mut meter = Speedometer::default();
        meter.note_writes(0, 0, true);
        meter.note_writes(10_000, 9 * MIB, true);
        assert_eq!(meter.speeds().writing, 0, "too short to tell");
        meter.note_writes(100_000, 10 * MIB, true);
        assert_eq!(meter.speeds().writing, 100 * MIB);
        meter.note_writes(200_000, 20 * MIB, false);
        meter.note_writes(900_000, 21 * MIB, true);
        assert_eq!(meter.speeds().writing, 100 * MIB, "they were held up");
    }

    /// Somebody flushed a few bytes thirty times, on a slow disk: a full memtable that came next then held writers to
    /// kilobytes a second for as long as its flush took.
    #[test]
    fn flushes_of_a_few_bytes_do_not_pass_for_slow_ones() {
        let mut meter = Speedometer::default();
        let mut now = 0;
        let mut flush = |meter: &mut Speedometer, bytes, took_us| {
            meter.begin_flushes(now);
            now += took_us;
            meter.note_flush(bytes, now);
        };
        (0..4).for_each(|_| flush(&mut meter, 64 * MIB, 1_000_000));
        (0..30).for_each(|_| flush(&mut meter, 1000, 50_000));
        assert_eq!(meter.speeds().flushing / MIB, 64);
        // Were all small for good, they would count.
        (0..200).for_each(|_| flush(&mut meter, 1000, 50_000));
        assert!(meter.speeds().flushing < 21_000, "{}", meter.speeds().flushing);
    }

    #[test]
    fn flushes_that_run_at_once_are_faster_together() {
        let mut meter = Speedometer::default();
        meter.begin_flushes(1_000_000);
        meter.note_flush(50 * MIB, 1_500_000);
        assert_eq!(meter.speeds().flushing, 100 * MIB);
        meter.begin_flushes(7_000_000);
        meter.note_flush(50 * MIB, 7_400_000);
        meter.note_flush(50 * MIB, 7_500_000);
        assert!(meter.speeds().flushing > 130 * MIB, "{}", meter.speeds().flushing);
    }
}
