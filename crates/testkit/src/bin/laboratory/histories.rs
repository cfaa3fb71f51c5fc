//! `laboratory histories`: random lives of a database against an ordered map.

use std::path::{Path, PathBuf};

use flagstone::env::{Env, read_file};
use testkit::caught::catch;
use testkit::history::{Campaign, Case, live};

use crate::campaign::{Seeds, for_each_seed};

/// No history is longer.
const BYTES_MAX: u64 = 1 << 30;

/// Lives random lives of a database, each with several choices of options, and compares every
/// answer with an ordered map. A failure is shrunk and written to `failure-SEED.history`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seeds: Seeds,
    /// Operations a history.
    #[arg(long, default_value_t = 300)]
    operations: usize,
    /// Choices of options that each history is lived with.
    #[arg(long, default_value_t = 3)]
    option_sets: usize,
    /// Seconds that a failure may be shrunk for; 0 leaves it as it is.
    #[arg(long, default_value_t = 60)]
    shrink_seconds: u64,
    /// Where failures are written.
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Lives the history in this file instead.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// How many faults there were.
pub fn run(arguments: &Arguments) -> usize {
    if let Some(path) = &arguments.replay {
        return replay(path);
    }
    let Arguments { operations, option_sets, shrink_seconds, directory, .. } = arguments;
    let campaign = Campaign::new(*operations, *option_sets, *shrink_seconds, directory.clone());
    let faults = for_each_seed("histories", &arguments.seeds, |seed| campaign.explore(seed));
    println!("{}", campaign.figures());
    faults
}

fn replay(path: &Path) -> usize {
    let text = read_file(&*Env::os().fs, path, BYTES_MAX).map_err(|error| error.to_string());
    let case = text
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not text".to_string()))
        .and_then(|text| text.parse::<Case>());
    let outcome = match case {
        Ok(case) => catch(|| live(&case)).map(drop),
        Err(error) => Err(format!("{}: {error}", path.display())),
    };
    match outcome {
        Ok(()) => {
            println!("nothing goes wrong");
            0
        }
        Err(said) => {
            println!("{said}");
            1
        }
    }
}
