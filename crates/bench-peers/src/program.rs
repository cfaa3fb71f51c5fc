//! Builds of this program: which engines each has, and that all that measure together are of one
//! commit.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::campaign::output_of;
use crate::cell::EngineName;
use crate::engine::Result;

/// What an ordinary build has. Runs from before they said what made them count as made by such a
/// one.
pub const ALL_ENGINES: &str = "all engines";
/// What this build has.
pub const ENGINES: &str = env!("PEERS_ENGINES");
/// The commit that this build is of.
const COMMIT: &str = env!("PEERS_COMMIT");
/// What it says when it is asked for its version, behind its name.
pub const VERSION: &str = concat!(env!("PEERS_COMMIT"), "\nBuilt with ", env!("PEERS_ENGINES"));

/// A build that makes an engine's runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Whose runs.
    pub engine: EngineName,
    /// Where it is.
    pub path: PathBuf,
    /// The engines that it has, in words.
    pub engines: String,
}

/// Asks programs what they have. Refuses two for one engine, and such as may not be of this one's
/// commit.
pub fn ask(programs: &[(EngineName, PathBuf)], limit: Duration) -> Result<Vec<Program>> {
    for (index, (engine, _)) in programs.iter().enumerate() {
        if programs[..index].iter().any(|(other, _)| other == engine) {
            return Err(format!("there are two programs for {}", engine.title()).into());
        }
    }
    let mut asked = Vec::new();
    for (engine, path) in programs {
        let version = output_of(Command::new(path).arg("--version"), limit);
        let engines =
            version.map_err(|error| error.to_string()).and_then(|text| engines_of(&text, COMMIT));
        let engines = engines.map_err(|error| {
            format!("the program for {}, {}: {error}", engine.title(), path.display())
        })?;
        asked.push(Program { engine: *engine, path: path.clone(), engines });
    }
    Ok(asked)
}

/// The engines that a program's version tells, if it is certainly of this commit.
fn engines_of(version: &str, own: &str) -> std::result::Result<String, String> {
    let mut lines = version.lines();
    let commit = lines.next().unwrap_or_default();
    if commit != format!("peers {own}") {
        return Err(format!("it is {commit}, this one peers {own}"));
    }
    // As `build.rs` has it; two such builds may be of different sources.
    if own.starts_with("unknown") || own.ends_with("with local changes") {
        return Err(format!(
            "it is {commit}, like this one: whether they are the same cannot be told"
        ));
    }
    let engines = lines.next().and_then(|line| line.strip_prefix("Built with "));
    Ok(engines.ok_or("it does not say which engines it has")?.to_string())
}

#[cfg(test)]
mod tests;
