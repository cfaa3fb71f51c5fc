//! What belongs to an entry beside its key and its value: timestamps of keys (`--read-timestamp`,
//! `--write-timestamp`), and the times at which values of a TTL database were written.

use clap::Args;
use flagstone::base::timestamp;
use flagstone::db::ColumnFamily;
use flagstone::expiry::STAMP_ETERNAL;
use flagstone::options::ReadOptions;
use flagstone::reports::WriteTimes;
use serde_json::Value;

use crate::failure::Failure;
use crate::stamped::Cursor;
use crate::text;

/// A timestamp of 64 bits, as it is stored.
pub type Stamp = [u8; timestamp::U64_SIZE];

/// As of when keys with timestamps are read.
#[derive(Debug, Clone, Default, Args)]
pub struct ReadAsOf {
    /// Read as of this timestamp, a number; needed where keys have timestamps (a comparator
    /// ...u64ts)
    #[arg(long, value_name = "TIMESTAMP", alias = "read_timestamp")]
    read_timestamp: Option<u64>,
}

impl ReadAsOf {
    /// The same for one line of `query`.
    pub fn new(read_timestamp: Option<u64>) -> Self {
        Self { read_timestamp }
    }

    /// How a family is read.
    pub fn options(&self, family: &ColumnFamily) -> Result<ReadOptions, Failure> {
        let timestamp = stamp_of("--read-timestamp", self.read_timestamp, family)?;
        let timestamp = timestamp.map(|timestamp| timestamp.to_vec());
        Ok(ReadOptions { timestamp, ..ReadOptions::default() })
    }
}

/// As of when keys with timestamps are written.
#[derive(Debug, Clone, Default, Args)]
pub struct WriteAsOf {
    /// Write as of this timestamp, a number; needed where keys have timestamps (a comparator
    /// ...u64ts). It must not be before that of an earlier write of the key
    #[arg(long, value_name = "TIMESTAMP", alias = "write_timestamp")]
    write_timestamp: Option<u64>,
}

impl WriteAsOf {
    /// The same for one line of `query`.
    pub fn new(write_timestamp: Option<u64>) -> Self {
        Self { write_timestamp }
    }

    /// The timestamp of writes to a family; `None` where its keys have none.
    pub fn stamp(&self, family: &ColumnFamily) -> Result<Option<Stamp>, Failure> {
        stamp_of("--write-timestamp", self.write_timestamp, family)
    }
}

fn stamp_of(
    flag: &str,
    given: Option<u64>,
    family: &ColumnFamily,
) -> Result<Option<Stamp>, Failure> {
    let (name, order) = (text::name(family.name()), text::name(family.comparator().name()));
    match (given, family.comparator().timestamp_size()) {
        (None, 0) => Ok(None),
        (Some(number), timestamp::U64_SIZE) => Ok(Some(timestamp::from_u64(number))),
        (Some(_), 0) => Err(Failure::Usage(format!(
            "keys of column family '{name}' have no timestamps (its comparator is {order}): leave out {flag}"
        ))),
        (None, _) => Err(Failure::Usage(format!(
            "keys of column family '{name}' have timestamps (its comparator is {order}): give {flag} NUMBER; {} is the latest",
            u64::MAX
        ))),
        (Some(_), size) => Err(Failure::Usage(format!(
            "timestamps of column family '{name}' have {size} bytes: {flag} knows numbers of 8 bytes"
        ))),
    }
}

/// Refuses a family whose keys have timestamps, for a command that gives none; `instead` does.
pub fn refuse_stamps(family: &ColumnFamily, instead: &str) -> Result<(), Failure> {
    if family.comparator().timestamp_size() == 0 {
        return Ok(());
    }
    let (name, order) = (text::name(family.name()), text::name(family.comparator().name()));
    Err(Failure::Usage(format!(
        "keys of column family '{name}' have timestamps (its comparator is {order}), which this command has no flag for; \
         use {instead}"
    )))
}

/// Which values of a TTL database, by the times at which they were written.
#[derive(Debug, Clone, Default, Args)]
pub struct Period {
    /// With --ttl, only values written at this time or later, in seconds since 1970
    #[arg(long, value_name = "SECONDS", alias = "start_time", requires = "ttl")]
    start_time: Option<u64>,
    /// With --ttl, only values written before this time, in seconds since 1970
    #[arg(long, value_name = "SECONDS", alias = "end_time", requires = "ttl")]
    end_time: Option<u64>,
}

impl Period {
    /// Refuses one that ends before it begins.
    pub fn check(&self) -> Result<(), Failure> {
        match (self.start_time, self.end_time) {
            (Some(start), Some(end)) if start > end => Err(Failure::Usage(format!(
                "--start-time {start} comes after --end-time {end}; exchange them"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether all entries are wanted.
    pub fn is_all(&self) -> bool {
        self.start_time.is_none() && self.end_time.is_none()
    }

    /// Whether the entry at which the cursor stands is wanted. One without a time, an entity, only
    /// is where all are.
    pub fn admits(&self, cursor: &mut Cursor) -> Result<bool, Failure> {
        if self.is_all() {
            return Ok(true);
        }
        let Some(written) = cursor.write_time()? else { return Ok(false) };
        Ok(self.start_time.is_none_or(|start| written >= start)
            && self.end_time.is_none_or(|end| written < end))
    }
}

/// What is shown of an entry between its key and its value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks {
    /// The timestamp of the key's version.
    pub timestamp: Option<u64>,
    /// When the value was written, in seconds since 1970.
    pub write_time: Option<u64>,
    /// The latest time at which it was not written yet, by the times of tables: if that is asked
    /// for, and if it is known.
    pub written_after: Option<Option<u64>>,
}

impl Marks {
    /// The marks of the entry at which the cursor stands; the time of its writing if that is asked
    /// for.
    pub fn of(cursor: &mut Cursor, with_time: bool) -> Result<Self, Failure> {
        let timestamp = timestamp::to_u64(cursor.timestamp());
        let write_time = if with_time { cursor.write_time()? } else { None };
        Ok(Self { timestamp, write_time, written_after: None })
    }

    /// Adds the latest time at which the entry at which the cursor stands was not written yet, as
    /// far as the tables' samples tell.
    pub fn within(self, times: &WriteTimes, cursor: &Cursor) -> Self {
        let time = times.time_before(cursor.sequence());
        Self { written_after: Some((time > 0).then_some(time)), ..self }
    }

    /// Behind a key, each with a tab before it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(timestamp) = self.timestamp {
            text.push_str(&format!("\t{timestamp}"));
        }
        if let Some(seconds) = self.write_time {
            text.push('\t');
            text.push_str(&shown_time(seconds));
        }
        if let Some(after) = self.written_after {
            text.push('\t');
            text.push_str(&after.map_or("unknown".to_string(), utc));
        }
        text
    }

    /// Members of an object of JSON, each with a comma before it.
    pub fn json(&self) -> String {
        self.members().map(|(name, number)| format!(",\"{name}\":{number}")).collect()
    }

    /// Adds them to an object.
    pub fn tell(&self, object: &mut Value) {
        self.members().for_each(|(name, number)| object[name] = number.into());
    }

    fn members(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("timestamp", self.timestamp),
            ("write_time_seconds", self.write_time),
            ("write_unix_time", self.written_after.flatten()),
        ];
        all.into_iter().filter_map(|(name, number)| Some((name, number?)))
    }
}

/// A time at which a value was written.
fn shown_time(seconds: u64) -> String {
    if seconds == u64::from(STAMP_ETERNAL) { "for ever".to_string() } else { utc(seconds) }
}

/// A time in seconds since 1970 as `2026-11-30T18:21:41Z`.
pub fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since the first of March of the year 0 (Howard Hinnant, days_from_civil).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests;
