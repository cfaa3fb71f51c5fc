//! `laboratory full-disk`: lives on a small file system that is full now and then.

use std::path::PathBuf;
use std::sync::Mutex;

use testkit::full_disk::{Figures, Room, live};

use crate::campaign::{Seeds, for_each_seed};

/// Fills a small file system at random moments of random lives of a database, and sees to it that
/// nothing is lost and that writes go on when there is space again.
///
/// Takes all space of the file system that the directory is on: make a small one for it, of 64 MiB
/// or more.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seeds: Seeds,
    /// A directory on a file system that nothing else uses; without it, memory with a limit.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Bytes of memory, where there is no directory.
    #[arg(long, default_value_t = 64 << 20)]
    memory: u64,
}

/// How many lives showed a fault.
pub fn run(arguments: &Arguments) -> usize {
    // They would fill one another's disk.
    let seeds = Seeds { threads: Some(1), ..arguments.seeds.clone() };
    let total = Mutex::new(Figures::default());
    let found = for_each_seed("full-disk", &seeds, |seed| {
        let room = match &arguments.directory {
            Some(directory) => Room::mounted(directory),
            None => Room::in_memory(arguments.memory).map_err(|error| error.to_string())?,
        };
        let figures = live(&room, seed)?;
        total.lock().expect("no thread panics with it").add(&figures);
        Ok(())
    });
    println!("{:?}", total.into_inner().expect("no thread panicked with it"));
    found
}
