//! Stories of a few threads, told in thousands of orders by a scheduler that runs them in one
//! thread and decides at every lock and atomic who goes on.
//!
//! ```text
//! cargo test --release -p flagstone --features shuttle --test schedule
//! ```
//!
//! `.ci/run` tells a few of them. `FLAGSTONE_SCHEDULES=100000` tells each story so often, in orders
//! beyond those of an ordinary run; a failure prints the line that repeats it. What is explored is
//! stated in `docs/reliability.md`.

mod async_reads;
mod blobs;
mod cache;
mod closing;
mod commit;
mod crossing;
mod direct;
mod explore;
mod families;
mod locks;
mod memtable;
mod mutants;
mod recovery;
mod scans;
mod second_tier;
mod sharing;
mod stall;
mod subcompactions;
mod updates;
mod versions;
mod world;
