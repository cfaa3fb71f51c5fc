//! `flagstone man`

use std::path::PathBuf;

use clap::Args;
use flagstone::base::Error;

use crate::arguments::Common;
use crate::command_line::CommandLine;
use crate::failure::{Outcome, Verdict};

/// Write manual pages, one for the program and one for each command.
///
/// Pages of an earlier version are written over. `man -l DIR/flagstone.1` shows one.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone man manual-pages")]
pub struct Arguments {
    /// The directory, which is made if it is not there
    dir: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let dir = &arguments.dir;
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(CommandLine::grammar(), dir))
        .map_err(|error| Error::io("write manual pages", dir, error))?;
    Ok(Verdict::Sound)
}
