//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use flagstone::options::Options;
use flagstone::options::value::SettingValue;

use crate::failure::Failure;
use crate::plan::Config;
use crate::space::Space;

/// A file system of fewer bytes than this is a small disk: it is filled, and must be survived.
const SMALL_DISK: u64 = 1 << 30;

/// When RocksDB's tools are asked for a second opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RefereeUse {
    /// Of about half of the databases, if the tools are installed
    Auto,
    /// As auto; the tools must be installed
    Always,
    /// Never
    Never,
}

/// Look for faults: work on a database with many threads, kill the process, check everything, and
/// so on
///
/// Each round is a process that opens the database with random options, compares every key with
/// what was acknowledged, and lets threads put, merge, delete, scan, take snapshots and
/// checkpoints, flush, compact, change options and create and drop families, checking every answer,
/// until it is killed (SIGKILL) or closes the database. A fault ends the run with exit code 1; it
/// is told with its seed, and the files are kept.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "stress",
    after_help = "Exit code 0: no fault was found. 1: a fault, or it failed. 2: wrong usage.\n\n\
                  Examples:\n  stress --duration 10m\n  stress --duration 10m --disk-limit 64M\n  \
                  stress --duration 10m --dir /mnt/small-disk"
)]
pub struct Flags {
    /// Set a RocksDB option by its name, as in write_buffer_size=128M; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub settings: Vec<(String, String)>,
    /// Print what was done, or found, as JSON
    #[arg(long)]
    pub json: bool,
    /// What everything random is drawn from; by default it is drawn itself, and printed
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// How long to go on, as in 90s, 10m or 8h
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1m")]
    pub duration: Duration,
    /// Stop after so many rounds instead
    #[arg(long, value_name = "COUNT", conflicts_with = "duration")]
    pub rounds: Option<u64>,
    /// How long a round works at most; most are shorter
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "4s")]
    pub round_time: Duration,
    /// Threads
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Keys of each of the three column families
    #[arg(long, value_name = "COUNT", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub keys: u32,
    /// Bytes of the largest value; most are smaller
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "8K")]
    pub value_size: u64,
    /// Where the database is: an empty directory; by default in --work. On a small disk (less than
    /// 1 GiB) a file takes up most of the space, and is removed for a while when the database has
    /// used up the rest
    #[arg(long, value_name = "DIRECTORY")]
    pub dir: Option<PathBuf>,
    /// Where notes are kept: what the database must hold, and a copy of it as the round found it;
    /// by default a new temporary directory, which stays after a fault or an interruption
    #[arg(long, value_name = "DIRECTORY")]
    pub work: Option<PathBuf>,
    /// Let the database have so many bytes at most in most rounds, often fewer; when they are used
    /// up, it must survive, and resume when the limit is lifted
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub disk_limit: Option<u64>,
    /// Let each round's process have so many bytes of address space
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory_limit: Option<u64>,
    /// Whether RocksDB's ldb and sst_dump check databases after a clean close
    #[arg(long, value_enum, default_value_t = RefereeUse::Auto)]
    pub referee: RefereeUse,
    /// Repeat only this round, from the files that were kept in --work
    #[arg(long, value_name = "ROUND", requires = "work", requires = "seed")]
    pub repeat: Option<u64>,
    /// Be the process of a round
    #[arg(long, hide = true)]
    pub child: Option<u64>,
    /// Close the database at the end of the round, whatever was drawn
    #[arg(long, hide = true)]
    pub closing: bool,
    /// Keep to what RocksDB's tools can read where that was drawn
    #[arg(long, hide = true)]
    pub with_referee: bool,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("expected NAME=VALUE, such as write_buffer_size=128M".to_string()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits
        .parse()
        .map_err(|_| "expected a number and ms, s, m or h, such as 10m".to_string())?;
    let milliseconds = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        unit => return Err(format!("there is no unit '{unit}'; use ms, s, m or h")),
    };
    number
        .checked_mul(milliseconds)
        .map(Duration::from_millis)
        .ok_or_else(|| "it is too long".to_string())
}

fn bytes(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('B').unwrap_or(text);
    let mut size = 0u64;
    size.assign(number).map_err(|_| "expected bytes, such as 64M".to_string())?;
    Ok(size)
}

impl Flags {
    /// What the command line says, with everything that it leaves open.
    pub fn config(&self, seed: u64, work: &Path) -> Result<Config, Failure> {
        for directory in [work].into_iter().chain(self.dir.as_deref()) {
            // A round's WALs may lie in it, which an option says.
            if directory.to_str().is_none() {
                let directory = directory.display();
                return Err(Failure::Usage(format!(
                    "{directory} is no text, which options are: name another"
                )));
            }
        }
        let threads = usize::from(self.threads);
        let per_thread = (self.keys as usize / threads).max(8);
        let mut check = Options::default();
        for (name, value) in &self.settings {
            let set = check.set(name, value);
            set.map_err(|error| Failure::Usage(format!("--set {name}={value}: {error}")))?;
        }
        Ok(Config {
            seed,
            space: Space { threads, per_thread },
            value_size: self.value_size.clamp(1, 1 << 30) as usize,
            round_time: self.round_time,
            disk_limit: self.disk_limit,
            small_disk: self.dir.as_deref().and_then(small_disk),
            memory_limit: self.memory_limit,
            settings: self.settings.clone(),
            root: self.dir.clone().unwrap_or_else(|| work.join("root")),
            work: work.to_path_buf(),
        })
    }

    /// The arguments that make another process do the same.
    pub fn again(&self, config: &Config) -> Vec<String> {
        let mut line = Vec::new();
        let mut add = |name: &str, value: String| line.extend([format!("--{name}"), value]);
        add("seed", config.seed.to_string());
        let referee = self.referee.to_possible_value().expect("no value is hidden");
        add("referee", referee.get_name().to_string());
        add("threads", self.threads.to_string());
        add("keys", self.keys.to_string());
        add("value-size", self.value_size.to_string());
        add("round-time", format!("{}ms", self.round_time.as_millis()));
        add("work", config.work.display().to_string());
        self.dir.iter().for_each(|dir| add("dir", dir.display().to_string()));
        self.disk_limit.iter().for_each(|limit| add("disk-limit", limit.to_string()));
        self.memory_limit.iter().for_each(|limit| add("memory-limit", limit.to_string()));
        self.settings.iter().for_each(|(name, value)| add("set", format!("{name}={value}")));
        line
    }
}

/// The size of the file system that a directory lies in, if that is small.
fn small_disk(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    Some(found.f_blocks * found.f_frsize).filter(|size| *size < SMALL_DISK)
}

#[cfg(test)]
mod tests;
