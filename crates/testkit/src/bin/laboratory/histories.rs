//! `laboratory histories`: random lives of a database against an ordered map.

use crate::campaign::{Seeds, for_each_seed};

/// Lives random lives of a database and compares every answer with an ordered map.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seeds: Seeds,
    /// Operations a history.
    #[arg(long, default_value_t = 600)]
    operations: usize,
}

/// How many seeds showed a fault.
pub fn run(arguments: &Arguments) -> usize {
    for_each_seed("histories", &arguments.seeds, |seed| {
        testkit::history::live(seed, arguments.operations);
        Ok(())
    })
}
