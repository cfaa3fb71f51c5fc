//! `flagstone load`

use std::io::stdin;

use clap::Args;
use flagstone::WideColumns;
use flagstone::base::{Code, Comparator, counted};
use flagstone::batch::WriteBatch;
use flagstone::db::ColumnFamily;
use flagstone::options::{ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, WriteOptions};
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::dump_lines::{CUT, Found, Lines, Rest, not_a_dump};
use crate::failure::{Failure, Outcome, Verdict, reported, say, tell_if_typed};
use crate::output::Output;
use crate::progress::{Progress, TOLD_EVERY};
use crate::stamped::{Opened, Ttl};
use crate::text::{DumpLine, DumpStart, HexPieces};

/// Bytes of lines that one batch holds.
const BATCH_SIZE: usize = 1 << 20;

/// Read the output of `dump` from standard input and store it.
///
/// Creates the database and column families that do not exist, with the comparators named in the
/// dump unless --set names another. Everything is on the device when the command ends. A line that
/// cannot be read or is cut off is left out, with exit code 1; up to ten are named, with --json
/// all. If no line can be read, no database is created. A comparator that is not built in ends the
/// load. A value of 8 MiB or more need not fit into memory, and gets a blob file of its own,
/// uncompressed. With --ttl, values get the time of the load; use it for a dump made with --ttl
/// too.
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
    let mut lines = Lines::new(common);
    let is_order_set = common.settings.iter().any(|(name, _)| name == "comparator");
    // Before there is a database: what is no dump leaves none behind. One of an empty database
    // names its families.
    let (found, order) = first_line(&mut lines, is_order_set)?;
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
    let mut loader = Loader {
        db: &db,
        family: None,
        model,
        is_order_set,
        batch: WriteBatch::new(),
        bytes: 0,
        keys: 0,
    };
    if let Err(failure) = loader.take_all(&mut lines, found, &progress) {
        drop(progress);
        let path = path.display();
        say(format_args!(
            "{path} has only part of the dump: load it again once the cause is fixed"
        ));
        return Err(failure);
    }
    db.db().sync_wal()?;
    db.db().close()?;
    drop(progress);
    let (keys, left_out) = (loader.keys, lines.left_out.count());
    let mut output = Output::new();
    output.line(match (common.json, left_out) {
        (true, _) => json!({ "keys": keys, "left_out": left_out }).to_string(),
        (false, 0) => format!("{} loaded", counted(keys, "key")),
        (false, _) => {
            format!("{} loaded, {} left out", counted(keys, "key"), counted(left_out, "line"))
        }
    })?;
    let verdict = if left_out == 0 { Verdict::Sound } else { Verdict::Faulty };
    reported(verdict, output.finish())
}

/// Goes to the first line of a dump; what it is, and what it says of the default family's order.
///
/// # Errors
/// There is none.
fn first_line(
    lines: &mut Lines,
    is_order_set: bool,
) -> Result<(Found, Option<Comparator>), Failure> {
    loop {
        let found = lines.next()?;
        let checked = match found {
            Found::End if lines.left_out.count() > 0 => {
                let none = "nothing was loaded: standard input has no line that can be read";
                return Err(Failure::Other(none.to_string()));
            }
            Found::End => {
                return Err(Failure::Other(
                    "standard input is empty, so it is not a dump; check whether the program that should have written it failed"
                        .to_string(),
                ));
            }
            // The first line of an entry.
            Found::Beginning => Ok(None),
            Found::Bad(why) => Err(why.to_string()),
            Found::Line => order_of_default(lines, is_order_set)?,
        };
        match checked {
            Ok(order) => return Ok((found, order)),
            Err(why) => lines.leave_out(&why)?,
        }
    }
}

/// What a line says of the default family, which is made with the database, if nothing else does;
/// or why it is no line of a dump.
fn order_of_default(
    lines: &Lines,
    is_order_set: bool,
) -> Result<Result<Option<Comparator>, String>, Failure> {
    Ok(match lines.parse() {
        Ok(DumpLine::Order(DEFAULT_COLUMN_FAMILY_NAME, comparator)) if !is_order_set => {
            let known = Comparator::from_name(comparator);
            Ok(Some(known.map_err(|error| at_line(error.into(), lines.count))?))
        }
        Ok(_) => Ok(None),
        Err(why) => Err(why),
    })
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
    keys: u64,
}

impl Loader<'_> {
    /// Takes what was found, and all lines behind it.
    fn take_all(
        &mut self,
        lines: &mut Lines,
        mut found: Found,
        progress: &Progress,
    ) -> Result<(), Failure> {
        while found != Found::End {
            if let Err(why) =
                self.take(lines, found).map_err(|failure| at_line(failure, lines.count))?
            {
                lines.leave_out(&why)?;
            }
            if lines.count.is_multiple_of(TOLD_EVERY) {
                progress.set(lines.bytes);
            }
            found = lines.next()?;
        }
        self.write()
    }

    /// Takes what was found; or why it cannot be read.
    fn take(&mut self, lines: &mut Lines, found: Found) -> Result<Result<(), String>, Failure> {
        match found {
            Found::End => Ok(Ok(())),
            Found::Bad(why) => Ok(Err(why.to_string())),
            Found::Beginning => self.take_in_pieces(lines),
            Found::Line => match lines.parse() {
                Err(why) => Ok(Err(why)),
                Ok(DumpLine::Order(name, comparator)) => {
                    self.family = Some(self.family_in_order(name, comparator)?);
                    Ok(Ok(()))
                }
                Ok(DumpLine::Entry(name, key, value)) => {
                    self.put(name, &key, &value, |batch, family| batch.put_cf(family, &key, &value))
                }
                Ok(DumpLine::Entity(name, key, entity)) => match WideColumns::decode(&entity) {
                    Ok(columns) => self.put(name, &key, &entity, |batch, family| {
                        batch.put_entity_cf(family, &key, columns.iter())
                    }),
                    Err(why) => Ok(Err(why.to_string())),
                },
            },
        }
    }

    fn put(
        &mut self,
        name: &str,
        key: &[u8],
        value: &[u8],
        add: impl FnOnce(&mut WriteBatch, &ColumnFamily) -> flagstone::base::Result<()>,
    ) -> Result<Result<(), String>, Failure> {
        let family = self.family(name)?;
        let added = add(&mut self.batch, &family);
        self.family = Some(family);
        if let Err(error) = added {
            return Ok(Err(error.to_string()));
        }
        self.keys += 1;
        self.bytes += key.len() + value.len();
        if self.bytes >= BATCH_SIZE {
            self.write()?;
        }
        Ok(Ok(()))
    }

    /// Stores an entry whose line has only begun, piece by piece.
    fn take_in_pieces(&mut self, lines: &mut Lines) -> Result<Result<(), String>, Failure> {
        let Some(DumpStart { family, key, value }) = lines.start() else {
            return Ok(Err(not_a_dump("")));
        };
        let family = self.family(family)?;
        // A line before it may be of the same key.
        self.write()?;
        let mut writer = self.db.put_stream(&family, &key, &WriteOptions::default())?;
        self.family = Some(family);
        let (mut digits, mut bytes) = (HexPieces::default(), Vec::new());
        let mut is_hex = digits.read(value.as_bytes(), &mut bytes);
        lines.release();
        loop {
            let is_over = is_hex.is_none();
            if let Err(error) = writer.append(&bytes) {
                // It is too long.
                return if error.code() == Code::InvalidArgument {
                    Ok(Err(error.to_string()))
                } else {
                    Err(error.into())
                };
            }
            bytes.clear();
            if is_over {
                return Ok(Err(not_a_dump("")));
            }
            match lines.next_digits(|piece| is_hex = digits.read(piece, &mut bytes))? {
                Rest::More => {}
                Rest::End if is_hex.is_some() && digits.is_whole() => break,
                Rest::End => return Ok(Err(not_a_dump(""))),
                Rest::Cut => return Ok(Err(CUT.to_string())),
            }
        }
        writer.append(&bytes)?;
        writer.commit()?;
        self.keys += 1;
        Ok(Ok(()))
    }

    /// The family of that name, made if there is none.
    fn family(&mut self, name: &str) -> Result<ColumnFamily, Failure> {
        if let Some(family) = self.family.take_if(|family| family.name() == name) {
            return Ok(family);
        }
        match self.db.db().column_family(name) {
            Some(family) => Ok(family),
            None => self.db.create_family(name, &self.model),
        }
    }

    /// The family of that name, made with that comparator if there is none and `--set` says nothing
    /// else.
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
                "warning: column family '{name}' exists with comparator {present}, but the dump has {comparator}"
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
