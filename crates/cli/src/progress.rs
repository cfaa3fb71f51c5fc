//! Progress on stderr, if that is a terminal.

use std::fmt;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use flagstone::db::{ColumnFamily, Db};
use flagstone::options::CompactionControl;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Whoever does many small things tells of their number after every so many: each word looks at the
/// clock.
pub const TOLD_EVERY: u64 = 64;

/// A bar that shows bytes done, rate and time left; nothing at all if stderr is not a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `total` bytes.
    pub fn bytes(total: u64) -> Self {
        Self::styled(
            total,
            "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} left {msg}",
        )
    }

    /// A bar for `total` things.
    pub fn things(total: u64, unit: &str) -> Self {
        Self::styled(
            total,
            &format!("{{bar:30}} {{human_pos}}/{{human_len}} {unit} {{rate}} {{eta}} left {{msg}}"),
        )
    }

    /// A count of things whose total is not known.
    pub fn count(unit: &str) -> Self {
        let progress =
            Self::styled(0, &format!("{{spinner}} {{human_pos}} {unit} {{rate}} {{msg}}"));
        progress.0.unset_length();
        progress
    }

    /// A count of the keys of some families, of about so many as there are; within bounds nobody
    /// knows how many that is.
    pub fn keys(db: &Db, families: &[ColumnFamily], is_bounded: bool) -> Self {
        // To estimate opens all tables.
        if is_bounded || !io::stderr().is_terminal() {
            return Self::count("keys");
        }
        let keys = families
            .iter()
            .filter_map(|family| db.int_property(family, "rocksdb.estimate-num-keys"));
        match keys.fold(0, u64::saturating_add) {
            0 => Self::count("keys"),
            total => Self::things(total, "keys"),
        }
    }

    /// What is read from a stream, of all that there is if it is a file.
    pub fn of_stream(stream: impl AsFd) -> Self {
        let found = rustix::fs::fstat(stream).ok();
        let is_file =
            |found: &rustix::fs::Stat| rustix::fs::FileType::from_raw_mode(found.st_mode).is_file();
        match found.filter(is_file).and_then(|found| u64::try_from(found.st_size).ok()) {
            Some(size) => Self::bytes(size),
            None => Self::styled(0, "{spinner} {binary_bytes} {binary_bytes_per_sec} {msg}"),
        }
    }

    /// Work of which nobody can say how far it is.
    pub fn of_work(what: &str) -> Self {
        Self::styled(0, &format!("{{spinner}} {what} {{elapsed}}"))
    }

    /// One for who prints as it goes: a terminal that shows what is printed has no room for a bar.
    pub fn beside_output(make: impl FnOnce() -> Self) -> Self {
        if io::stdout().is_terminal() { Self(ProgressBar::hidden()) } else { make() }
    }

    fn styled(total: u64, template: &str) -> Self {
        // The draw target hides itself when stderr is not a terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("rate", rate));
        }
        // At once: what comes later is drawn by a thread, when that has its turn.
        bar.tick();
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// So much more is done.
    pub fn add(&self, amount: u64) {
        self.0.inc(amount);
    }

    /// Says more about what is going on.
    pub fn say(&self, message: String) {
        self.0.set_message(message);
    }

    /// So much there is to do.
    pub fn set_total(&self, amount: u64) {
        self.0.set_length(amount);
    }

    /// So much is done.
    pub fn set(&self, amount: u64) {
        self.0.set_position(amount);
    }
}

/// Things a second, without the four decimals that even thousands of them would have.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    let per_second = state.per_sec();
    let decimals = if per_second < 10.0 { 1 } else { 0 };
    // It is a terminal's line, which is drawn anew.
    let _ = write!(out, "{per_second:.decimals$}/s");
}

/// How often the bar of work that is followed is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// Does work of which a control tells how far it is, and shows that.
pub fn following<T>(work: impl FnOnce(&Arc<CompactionControl>) -> T) -> T {
    let control = CompactionControl::new();
    let progress = Progress::bytes(0);
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (control, progress) = (&control, &progress);
        scope.spawn(move || {
            while is_done.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                let reached = control.progress();
                progress.set_total(reached.bytes_total);
                progress.set(reached.bytes_done);
            }
        });
        let outcome = work(control);
        drop(done);
        outcome
    })
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
