//! `laboratory expiring`: random lives of a database whose values expire.

use testkit::expiring::live;

use crate::campaign::{Seeds, for_each_seed};

/// Lives random lives of a database whose values expire, with a clock in hand, and compares every
/// answer with what should live.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seeds: Seeds,
    /// Steps a life.
    #[arg(long, default_value_t = 400)]
    steps: usize,
}

/// How many lives showed a fault.
pub fn run(arguments: &Arguments) -> usize {
    for_each_seed("expiring", &arguments.seeds, |seed| {
        live(seed, arguments.steps);
        Ok(())
    })
}
