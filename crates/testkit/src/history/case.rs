//! A history with everything else that a life depends on, as a file.

use std::fmt::{self, Write};
use std::str::FromStr;

use super::generator;
use super::operation::Operation;
use crate::settings::{self, Setting};

/// The families that every database begins with.
pub const FAMILIES: [&str; 3] = ["default", "first", "second"];

/// Families that come and go.
pub const PASSING: [&str; 3] = ["extra0", "extra1", "extra2"];

/// All that may have options of their own.
pub const ALL: [&str; 6] =
    [FAMILIES[0], FAMILIES[1], FAMILIES[2], PASSING[0], PASSING[1], PASSING[2]];

/// Who does the background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Whoever waits for it, in an order from this seed; besides, after an operation, so many times
    /// in sixteen.
    Steps {
        /// The seed.
        seed: u64,
        /// How often.
        eagerness: u8,
    },
    /// Real threads, as they come.
    Threads,
}

/// All that a life depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Who does the background work.
    pub world: World,
    /// The options at first.
    pub settings: Vec<Setting>,
    /// What happens.
    pub operations: Vec<Operation>,
}

impl Case {
    /// The cases of a seed: one history with several choices of options.
    pub fn draw(seed: u64, operations: usize, option_sets: usize) -> impl Iterator<Item = Self> {
        let operations = generator::generate(seed, operations);
        (0..option_sets).map(move |set| {
            let mut random =
                fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ set as u64);
            let world = match random.u8(..16) {
                0 => World::Threads,
                _ => World::Steps { seed: random.u64(..1 << 32), eagerness: random.u8(0..=16) },
            };
            let mut settings = settings::draw(&mut random, &ALL);
            if generator::prepares(seed) {
                settings.push("allow_2pc=true".parse().expect("a setting"));
            }
            Self { world, settings, operations: operations.clone() }
        })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.world {
            World::Steps { seed, eagerness } => writeln!(f, "world steps {seed} {eagerness}")?,
            World::Threads => writeln!(f, "world threads")?,
        }
        self.settings.iter().try_for_each(|setting| writeln!(f, "set {setting}"))?;
        self.operations.iter().try_for_each(|operation| writeln!(f, "{operation}"))
    }
}

impl FromStr for Case {
    type Err = String;

    /// Lines that begin with `#` are passed over.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut case = Self { world: World::Threads, settings: Vec::new(), operations: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            let read = match line.split_once(' ') {
                _ if line.is_empty() || line.starts_with('#') => Ok(()),
                Some(("world", world)) => world_from(world).map(|world| case.world = world),
                Some(("set", setting)) => {
                    setting.parse().map(|setting| case.settings.push(setting))
                }
                _ => line.parse().map(|operation| case.operations.push(operation)),
            };
            read.map_err(|error: String| format!("line {}: {error}", number + 1))?;
        }
        Ok(case)
    }
}

fn world_from(text: &str) -> Result<World, String> {
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let steps = |seed: &str, eagerness: &str| Some((seed.parse().ok()?, eagerness.parse().ok()?));
    match words[..] {
        ["threads"] => Ok(World::Threads),
        ["steps", seed, eagerness] => {
            let read =
                steps(seed, eagerness).ok_or_else(|| format!("'{text}' are no two numbers"))?;
            Ok(World::Steps { seed: read.0, eagerness: read.1 })
        }
        _ => Err(format!("'{text}' is no world")),
    }
}

/// As comment lines.
pub fn commented(text: &str) -> String {
    text.lines().fold(String::new(), |mut lines, line| {
        let _ = writeln!(lines, "# {line}");
        lines
    })
}

#[cfg(test)]
mod tests;
