//! Progress on stderr, if that is a terminal.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use flagstone::options::CompactionControl;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
            &format!("{{bar:30}} {{human_pos}}/{{human_len}} {unit} {{per_sec}} {{eta}} left"),
        )
    }

    /// A count of things whose total is not known.
    pub fn count(unit: &str) -> Self {
        let progress = Self::styled(0, &format!("{{spinner}} {{human_pos}} {unit} {{per_sec}} {{msg}}"));
        progress.0.unset_length();
        progress
    }

    fn styled(total: u64, template: &str) -> Self {
        // The draw target hides itself when stderr is not a terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
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
