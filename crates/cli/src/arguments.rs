//! Arguments that commands share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use flagstone::base::Comparator;
use flagstone::db::ColumnFamily;
use flagstone::options::{known, removed};

use crate::failure::{Failure, say};
use crate::text::{self, Notation};

/// Under what the help lists them.
const COMMON: &str = "Common options";

/// Flags of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Set a RocksDB option by name, as in write_buffer_size=128M; repeatable. Named values may be
    /// short, as in compression=zstd for kZSTD. A command that writes to the database saves the
    /// option in its OPTIONS file, so later commands use it too. Exceptions are
    /// paranoid_checks=false and wal_recovery_mode=kSkipAnyCorruptedRecords, which ignore damage
    /// and apply to this command only
    #[arg(long = "set", value_name = "NAME=VALUE", global = true, value_parser = name_and_value, help_heading = COMMON)]
    pub settings: Vec<(String, String)>,
    /// Print facts as JSON; lists print one object a line
    #[arg(long, global = true, help_heading = COMMON)]
    pub json: bool,
    /// Read as a secondary instance, as ldb does with --secondary_path; DIR is its own directory
    #[arg(long, value_name = "DIR", global = true, alias = "secondary_path", help_heading = COMMON)]
    pub secondary_path: Option<PathBuf>,
    /// Read as a follower instance, as ldb does with --leader_path: DIR is the leader's database,
    /// and --db the follower's own directory
    #[arg(long, value_name = "DIR", global = true, alias = "leader_path", help_heading = COMMON)]
    #[arg(conflicts_with = "secondary_path")]
    pub leader_path: Option<PathBuf>,
    /// The databases, and backups of them, are encrypted by AES with the key in FILE: 16, 24 or 32
    /// bytes, or 32, 48 or 64 hexadecimal digits and a line's end
    #[arg(long, value_name = "FILE", global = true, help_heading = COMMON)]
    pub encryption_key_file: Option<PathBuf>,
}

impl Common {
    /// The flags without the settings of `--set` that have no effect and that the engine does not
    /// take; says which settings have none.
    pub fn in_force(&self) -> Self {
        let mut settings = Vec::new();
        for (name, value) in &self.settings {
            if let Some(removed) = removed::find(name).filter(|removed| !removed.is_default(value))
            {
                say(format_args!("warning: --set {name}={value}: {removed}"));
            }
            let plain = name.rsplit('.').next().unwrap_or(name);
            let inert = known::find(plain).filter(|_| known::INERT.contains(&plain));
            match inert.filter(|known| known.defaults[0] != value) {
                Some(known) if !known.accepts(value) => {
                    say(format_args!("note: --set {name}={value} has no effect and is left out"));
                    continue;
                }
                Some(known) if known.kept => say(format_args!(
                    "note: --set {name}={value} has no effect; the OPTIONS file keeps it for RocksDB"
                )),
                _ => {}
            }
            settings.push((name.clone(), value.clone()));
        }
        Self { settings, ..self.clone() }
    }

    /// The flag that has the command read as a secondary or a follower instance, if any.
    pub fn following(&self) -> Option<&'static str> {
        let secondary = self.secondary_path.as_ref().map(|_| "--secondary-path");
        secondary.or(self.leader_path.as_ref().map(|_| "--leader-path"))
    }

    /// For commands that do not read entries through a secondary or a follower instance.
    pub fn refuse_following(&self) -> Result<(), Failure> {
        match self.following() {
            None => Ok(()),
            Some(flag) => Err(Failure::Usage(format!(
                "{flag} has no meaning here: get, scan, count, dump, stats and space take it"
            ))),
        }
    }

    /// For commands that open no database: what `--set` says would be in vain.
    pub fn refuse_settings(&self) -> Result<(), Failure> {
        match self.settings.first() {
            None => Ok(()),
            Some((name, _)) => Err(Failure::Usage(format!(
                "--set {name} has no meaning here: this command opens no database"
            ))),
        }
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("expected NAME=VALUE, such as write_buffer_size=128M".to_string()),
    }
}

/// Which database.
#[derive(Debug, Clone, Args)]
pub struct Database {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    pub db: PathBuf,
}

/// As `ldb` calls `--cf`.
pub const CF_ALIASES: [&str; 2] = ["column_family", "column-family"];

/// Which database and column family, and how keys are written.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    pub db: PathBuf,
    /// The column family
    #[arg(long, value_name = "NAME", default_value = "default", aliases = CF_ALIASES)]
    pub cf: String,
    /// Keys and values are hexadecimal, in arguments and in output
    #[arg(long)]
    pub hex: bool,
}

impl Place {
    /// How keys and values are written.
    pub fn notation(&self) -> Notation {
        Notation::new(self.hex)
    }
}

/// Which keys.
#[derive(Debug, Clone, Default, Args)]
pub struct Range {
    /// Only keys with this prefix
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    pub prefix: Option<OsString>,
    /// First key
    #[arg(long, value_name = "KEY")]
    pub from: Option<OsString>,
    /// Key before which to stop
    #[arg(long, value_name = "KEY")]
    pub to: Option<OsString>,
}

/// The bounds of a [`Range`], the lower one inclusive.
pub type Bounds = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Range {
    /// The keys' bounds.
    pub fn bounds(&self, notation: Notation) -> Result<Bounds, Failure> {
        let read = |what, text: &Option<OsString>| {
            text.as_ref().map(|text| notation.read(what, text)).transpose()
        };
        match read("--prefix", &self.prefix)? {
            Some(prefix) => {
                let end = after_prefix(&prefix);
                Ok((Some(prefix), end))
            }
            None => Ok((read("--from", &self.from)?, read("--to", &self.to)?)),
        }
    }

    /// Checks that the bounds mean in this family what the flags say: in another order the keys of
    /// a prefix lie elsewhere, and between bounds that do not ascend lies nothing.
    pub fn check_order(&self, family: &ColumnFamily, bounds: &Bounds) -> Result<(), Failure> {
        // Those that are given have no timestamps.
        let order = family.comparator().without_timestamps();
        if let (None, (Some(from), Some(to))) = (&self.prefix, bounds)
            && order.compare(from, to).is_gt()
        {
            return Err(not_ascending(family, "--from", "--to"));
        }
        if self.prefix.is_none() || order == Comparator::Bytewise {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--prefix needs bytewise key order, but column family '{}' has {}; use --from and --to",
            text::name(family.name()),
            text::name(family.comparator().name())
        )))
    }
}

/// The refusal of a range whose end comes before its beginning.
pub fn not_ascending(family: &ColumnFamily, from: &str, to: &str) -> Failure {
    Failure::Usage(format!(
        "{from} comes after {to} in the order of column family '{}', {}; exchange them",
        text::name(family.name()),
        text::name(family.comparator().name())
    ))
}

/// The smallest key after all that begin with `prefix`, in the order of bytes; `None` if there is
/// none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests;
