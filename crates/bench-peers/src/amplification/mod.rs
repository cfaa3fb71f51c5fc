//! What data costs beside what it is: bytes written over bytes flushed, and bytes on the disk over
//! live ones.
//!
//! These are counts, so it hardly matters to `peers space` how busy the machine is. `peers steady`
//! sets throughput beside write amplification, and wants a quiet one.
//!
//! - [`task`]: what is done and found; [`contender`]: who does it; [`play`]: one task, start to end
//! - [`meter`]: counts and samples; [`tables`]: what is shown; [`command`]: the command line, runs
//!   in turns

pub mod command;
mod contender;
mod meter;
mod play;
mod tables;
mod task;

pub use meter::Written;
pub use task::{Exercise, Outcome};
