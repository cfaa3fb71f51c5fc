//! Signals that would end the process where an error can be told instead.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGXFSZ;

/// Has a write beyond the largest size of a file (`ulimit -f`) fail, which is told, and not end the
/// process.
pub fn outlive_limits() {
    // Whatever handles it, the write returns EFBIG. If nothing can, all is as it was.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
