//! `flagstone completions`

use clap::Args;
use clap_complete::Shell;

use crate::arguments::Common;
use crate::command_line::CommandLine;
use crate::failure::{Outcome, Verdict};
use crate::output::Output;

/// Print what completes command lines of flagstone in a shell.
///
/// bash finds it as ~/.local/share/bash-completion/completions/flagstone, zsh as _flagstone in a
/// directory of its fpath, fish as ~/.config/fish/completions/flagstone.fish.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone completions bash > flagstone.bash")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut CommandLine::grammar(), "flagstone", &mut script);
    let mut output = Output::new();
    output.bytes(&script)?;
    output.finish()?;
    Ok(Verdict::Sound)
}
