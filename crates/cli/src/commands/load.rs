//! `flagstone load`

use std::io::{BufRead, ErrorKind, StdinLock, stdin};

use clap::Args;
use flagstone::base::Comparator;
use flagstone::batch::WriteBatch;
use flagstone::db::ColumnFamily;
use flagstone::options::{ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, WriteOptions};
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, say, tell_if_typed};
use crate::output::Output;
use crate::progress::{Progress, TOLD_EVERY};
use crate::stamped::{Opened, Ttl};
use crate::text::{self, DumpLine};

/// Bytes of lines that one batch holds.
const BATCH_SIZE: usize = 1 << 20;

/// Read what `dump` printed from standard input and store it.
///
/// Makes the database and column families that do not exist, with the comparators that the dump names, unless --set says
/// another. Everything is on the device when the command ends. A line that cannot be read, or has lost its end, ends it; what
/// stands before that line may be stored already, and if it is the first, or there is none, no database is made. With --ttl
/// values get the time of the loading: for a dump that was made with --ttl, too.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone load --db /data/copy < photos.dump")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    ttl: Ttl,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    tell_if_typed("a dump");
    let mut lines = Lines { input: stdin().lock(), line: String::new(), count: 0, bytes: 0 };
    let is_order_set = common.settings.iter().any(|(name, _)| name == "comparator");
    // Before there is a database: what is no dump leaves none behind. One of an empty database names its families.
    let Some(first) = lines.next()? else {
        return Err(Failure::Other(
            "standard input is empty, which no dump is: see whether what should have written it failed"
                .to_string(),
        ));
    };
    let order = order_of_default(first, is_order_set).map_err(|failure| at_line(failure, lines.count))?;
    let path = &arguments.database.db;
    let is_new = !database::is_there(path)?;
    let mut opened_with = database::options(common, path, Access::Create)?;
    if let (true, Some(order)) = (is_new, order) {
        let (options, families) = &mut opened_with;
        options.cf.comparator = order.clone();
        families.iter_mut().for_each(|(_, family)| family.comparator = order.clone());
    }
    let db = arguments.ttl.open_with(opened_with, path, Access::Create);
    let db = db.map_err(|failure| database::of_setting(common, failure))?;
    let progress = Progress::of_stream(stdin());
    let model = model(common)?;
    let mut loader =
        Loader { db: &db, family: None, model, is_order_set, batch: WriteBatch::new(), bytes: 0 };
    let mut keys = 0u64;
    while let Some(text) = lines.text() {
        let is_entry = loader.line(text).map_err(|failure| at_line(failure, lines.count))?;
        if is_entry {
            keys += 1;
        }
        if lines.count.is_multiple_of(TOLD_EVERY) {
            progress.set(lines.bytes);
        }
        lines.next()?;
    }
    loader.write()?;
    db.db().sync_wal()?;
    db.db().close()?;
    drop(progress);
    let mut output = Output::new();
    output.line(if common.json {
        json!({ "keys": keys }).to_string()
    } else {
        format!("{} loaded", text::count(keys, "key"))
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}

/// Standard input, but for its empty lines.
struct Lines {
    input: StdinLock<'static>,
    line: String,
    /// How many were read.
    count: u64,
    /// Their bytes.
    bytes: u64,
}

impl Lines {
    /// Reads on.
    fn next(&mut self) -> Result<Option<&str>, Failure> {
        loop {
            self.line.clear();
            self.count += 1;
            match self.input.read_line(&mut self.line) {
                Ok(0) => return Ok(None),
                // What is left of a value is hexadecimal, too.
                Ok(_) if !self.line.ends_with('\n') => {
                    let cut =
                        "it does not end, as where a dump was cut off; if it is whole, end it".to_string();
                    return Err(at_line(Failure::Other(cut), self.count));
                }
                Ok(length) => self.bytes += length as u64,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Err(at_line(not_a_dump(""), self.count));
                }
                Err(error) => return Err(Failure::Stream("read standard input", error)),
            }
            if !text_of(&self.line).is_empty() {
                return Ok(self.text());
            }
        }
    }

    /// The line that was read last; `None` at the end.
    fn text(&self) -> Option<&str> {
        Some(text_of(&self.line)).filter(|text| !text.is_empty())
    }
}

fn text_of(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

fn parse(line: &str) -> Result<DumpLine<'_>, Failure> {
    DumpLine::parse(line).ok_or_else(|| not_a_dump(line))
}

/// What a dump's first line says of the default family, which is made with the database, if nothing else does.
fn order_of_default(line: &str, is_order_set: bool) -> Result<Option<Comparator>, Failure> {
    Ok(match parse(line)? {
        DumpLine::Order(DEFAULT_COLUMN_FAMILY_NAME, comparator) if !is_order_set => {
            Some(Comparator::from_name(comparator)?)
        }
        _ => None,
    })
}

fn not_a_dump(line: &str) -> Failure {
    // Between key and value of ldb's.
    let helps = match line.contains(" ==> ") {
        true => "; this is a dump of ldb's, which ldb loads: a database of RocksDB's is opened here as it is",
        false => "",
    };
    Failure::Other(format!("expected COLUMN_FAMILY HEXKEY HEXVALUE{helps}"))
}

fn at_line(failure: Failure, line: u64) -> Failure {
    Failure::Other(format!("line {line} of standard input: {failure}"))
}

/// What `--set` says for families that are made on the way.
fn model(common: &Common) -> Result<ColumnFamilyOptions, Failure> {
    let mut options = flagstone::options::Options::default();
    for (name, value) in &common.settings {
        options.set(name, value)?;
    }
    Ok(options.cf)
}

struct Loader<'a> {
    db: &'a Opened,
    family: Option<ColumnFamily>,
    model: ColumnFamilyOptions,
    /// Whether it says which order new families have.
    is_order_set: bool,
    batch: WriteBatch,
    bytes: usize,
}

impl Loader<'_> {
    /// Takes a line; whether it is an entry.
    fn line(&mut self, line: &str) -> Result<bool, Failure> {
        let (name, key, value) = match parse(line)? {
            DumpLine::Entry(name, key, value) => (name, key, value),
            DumpLine::Order(name, comparator) => {
                self.family = Some(self.family_in_order(name, comparator)?);
                return Ok(false);
            }
        };
        let family = match self.family.take().filter(|family| family.name() == name) {
            Some(family) => family,
            None => match self.db.db().column_family(name) {
                Some(family) => family,
                None => self.db.create_family(name, &self.model)?,
            },
        };
        self.batch.put_cf(&family, &key, &value)?;
        self.family = Some(family);
        self.bytes += key.len() + value.len();
        if self.bytes >= BATCH_SIZE {
            self.write()?;
        }
        Ok(true)
    }

    /// The family of that name, made with that comparator if there is none and `--set` says nothing else.
    fn family_in_order(&self, name: &str, comparator: &str) -> Result<ColumnFamily, Failure> {
        let family = match self.db.db().column_family(name) {
            Some(family) => family,
            None if self.is_order_set => self.db.create_family(name, &self.model)?,
            None => {
                let comparator = Comparator::from_name(comparator)?;
                let options = ColumnFamilyOptions { comparator, ..self.model.clone() };
                self.db.create_family(name, &options)?
            }
        };
        let present = family.comparator().name();
        if present != comparator {
            say(format_args!(
                "warning: column family '{name}' is there, with the comparator {present}; that of the dump is {comparator}"
            ));
        }
        Ok(family)
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.db.write(&WriteOptions::default(), &mut self.batch)?;
        self.batch.clear();
        self.bytes = 0;
        Ok(())
    }
}
