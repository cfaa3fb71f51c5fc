//! How fast writers may go while flushes and compactions are behind.
//!
//! Both rules are continuous: where a delay begins, it asks for no less than writers did of their
//! own accord, and it grows with the debt, until writers and background are equally fast. So nobody
//! is stopped in the middle of an overload.

/// The space on the disk that writers may take before a limit, in bytes as they count them.
///
/// In its last part they are slowed down, the more the less is left. So they come to be as fast as
/// space is given back, and hardly reach the end, be it given back ever so slowly. What they write
/// counts at once, and not only when a memtable is full.
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

/// How many memtables, the one being filled among them, may be full before writers stop, where so
/// many of `most` wait for a flush; `None` while writers need not heed that: of many memtables half
/// are theirs, for a burst.
///
/// Writers are held to what keeps that room until what waits is flushed
/// ([`Speedometer::rate_while_flushing`]): where as many wait as are left, to the speed of flushes.
/// So several flushes have something to do at the same time, and no rate falls by leaps.
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

/// Who is held to this part of what they achieve, or less, is held up hard: braking by half is the
/// rule where much is written.
const HARD: u64 = 4;

/// The same for who brakes for a flush: writers are several times as fast as flushes where nobody
/// holds them up.
const HARD_FOR_FLUSHES: u64 = 8;

/// Flushes vary; writers that are held to a little more than their mean seldom wait in vain.
const FLUSH_SLACK: f64 = 1.1;

/// The room in the last memtable that writers have while others are flushed, in bytes as they count
/// them.
///
/// A flush that takes longer than it was expected to would stop them in the end, for as long as it
/// still takes. So the nearer the memtable is to being full, the more gently it is filled.
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
    /// What is left of `rate`: all of it but in the last quarter of the room, where it falls with
    /// what is left, to a sixteenth.
    pub fn brake(&self, rate: u64) -> u64 {
        let braking = (self.whole / BRAKE.0).max(1);
        let left = self.left.clamp(braking / BRAKE.1, braking);
        (u128::from(rate) * u128::from(left) / u128::from(braking)) as u64
    }

    /// Whether writers who are held to `rate`, and brake, sleep most of their time: flushes hardly
    /// get the processor.
    pub fn is_hard(&self, rate: u64) -> bool {
        self.brake(rate) < self.writing / HARD_FOR_FLUSHES
    }
}

impl Speeds {
    /// The rate at a debt of `severity`, between 0 where delays begin and 1 where writes stop: from
    /// what writers achieve, but at least `delayed_write_rate`, by equal factors down to a tenth of
    /// `delayed_write_rate`.
    pub fn rate_in_debt(&self, severity: f64, delayed_write_rate: u64) -> u64 {
        let most = self.writing.max(delayed_write_rate).max(1) as f64;
        let least = delayed_write_rate as f64 / 10.0;
        let severity = severity.clamp(0.0, 1.0);
        (most.powf(1.0 - severity) * least.max(1.0).powf(severity)) as u64
    }

    /// Whether a rate holds writers to less than a quarter of what they achieve, or could at
    /// [`Self::rate_in_debt`].
    pub fn is_hard(&self, rate: u64, delayed_write_rate: u64) -> bool {
        rate < self.writing.max(delayed_write_rate) / HARD
    }

    /// The rate at which a memtable with `room` bytes is full no sooner than `waiting` bytes of
    /// others are flushed, both in bytes of memory; `None` if nobody knows how long that takes.
    fn rate_while_flushing(&self, room: u64, waiting: u64) -> Option<u64> {
        let seconds = waiting.max(1) as f64 / (self.flushing as f64 * FLUSH_SLACK);
        (self.flushing > 0).then(|| (room as f64 / seconds) as u64)
    }
}

/// Measures [`Speeds`] as time goes by.
#[derive(Debug, Clone, Copy, Default)]
pub struct Speedometer {
    speeds: Speeds,
    /// When, in microseconds, and at how many bytes the writers' last stretch began; `None` while
    /// they are held up.
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

/// A flush is small if so many of its size are less than what was flushed lately, which is four
/// times the mean.
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

    /// The rate at which memtables with `room` bytes are full no sooner than `waiting` bytes of
    /// others are flushed, both in bytes of memory; `None` if nobody knows how long that takes.
    /// Until a flush of about that size has been timed it passes for half as fast as writers, who
    /// may be as fast as where delays begin: what they wrote lately may be little.
    pub fn rate_while_flushing(
        &self,
        room: u64,
        waiting: u64,
        delayed_write_rate: u64,
    ) -> Option<u64> {
        let Speeds { writing, flushing } = self.speeds;
        let is_told = self.written(waiting) <= self.flushes.bytes.saturating_mul(FAR_LARGER);
        let flushing = if is_told {
            flushing
        } else if writing == 0 {
            0
        } else {
            flushing.max(writing.max(delayed_write_rate) / 2)
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

    /// Notes that a memtable of `memory` bytes is full, where writers have written `total` bytes up
    /// to now.
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
    /// A flush of far less than others takes as long as the disk takes to answer, and does not tell
    /// how fast large ones are: it only makes what was measured before count a little less, should
    /// all be small from now on.
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
mod tests;
