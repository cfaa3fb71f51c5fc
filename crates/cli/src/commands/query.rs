//! `flagstone query`

use std::io::{self, BufRead, IsTerminal, Write};

use clap::{Args, Parser, Subcommand};
use flagstone::batch::WriteBatch;
use flagstone::db::ColumnFamily;
use flagstone::options::WriteOptions;
use serde_json::json;

use crate::arguments::{Common, Place, Range, not_ascending};
use crate::commands::write::{delete_into, put_into};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, say};
use crate::json;
use crate::marks::{Marks, ReadAsOf, WriteAsOf};
use crate::output::Output;
use crate::pieces::{Pieces, print_json};
use crate::stamped::{Opened, Ttl};
use crate::text::{self, Notation};

/// Read commands from standard input, one a line: get, put, delete, delete-range, scan, count.
///
/// The database is opened once. Words are separated by blanks; within a word \x20 is a blank, and
/// \\ a backslash, as scan shows them; with --hex, keys and values are hexadecimal. Empty lines and
/// those that begin with # are skipped. help lists the commands; quit, or the end of the input,
/// ends. Each command is answered before the next line is read. A line that fails is reported with
/// its number, and the next one is read; the exit code is then 1. A prompt is shown only on a
/// terminal. Writes survive a crash of the process at once, and a power loss when query has ended.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone query --db /data/photos < commands.txt")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Open the database for reading, as beside another process that writes to it; it is seen as it
    /// is when query begins
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    ttl: Ttl,
}

/// One line.
#[derive(Debug, Parser)]
#[command(multicall = true, disable_help_flag = true, name = "")]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_flag = true)]
enum Command {
    /// Print the value of a key
    Get {
        #[arg(allow_hyphen_values = true)]
        key: String,
        /// Read as of this timestamp
        #[arg(long, value_name = "TIMESTAMP", alias = "read_timestamp")]
        read_timestamp: Option<u64>,
    },
    /// Set the value of a key
    Put {
        #[arg(allow_hyphen_values = true)]
        key: String,
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Write as of this timestamp
        #[arg(long, value_name = "TIMESTAMP", alias = "write_timestamp")]
        write_timestamp: Option<u64>,
    },
    /// Delete a key
    Delete {
        #[arg(allow_hyphen_values = true)]
        key: String,
        /// Write as of this timestamp
        #[arg(long, value_name = "TIMESTAMP", alias = "write_timestamp")]
        write_timestamp: Option<u64>,
    },
    /// Delete all keys from FROM (inclusive) to TO (exclusive)
    #[command(alias = "deleterange")]
    DeleteRange {
        #[arg(allow_hyphen_values = true)]
        from: String,
        #[arg(allow_hyphen_values = true)]
        to: String,
        /// Write as of this timestamp
        #[arg(long, value_name = "TIMESTAMP", alias = "write_timestamp")]
        write_timestamp: Option<u64>,
    },
    /// Print keys and values, one line each
    Scan {
        #[command(flatten)]
        span: Span,
        /// Stop after N keys
        #[arg(long, value_name = "N", alias = "max_keys")]
        limit: Option<u64>,
    },
    /// Count keys
    Count {
        #[command(flatten)]
        span: Span,
    },
    /// End
    #[command(alias = "exit")]
    Quit,
}

/// Which keys.
#[derive(Debug, Args)]
struct Span {
    /// First key
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// Key before which to stop
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Read as of this timestamp
    #[arg(long, value_name = "TIMESTAMP", alias = "read_timestamp")]
    read_timestamp: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let access = if arguments.read_only { Access::Read } else { Access::Write };
    let db = arguments.ttl.open(common, &place.db, access)?;
    let family = database::family(db.db(), &place.cf)?;
    let mut session =
        Session { db: &db, family, arguments, as_json: common.json, output: Output::new() };
    let verdict = session.lines()?;
    session.output.finish()?;
    if !arguments.read_only {
        db.db().close()?;
    }
    Ok(verdict)
}

struct Session<'a> {
    db: &'a Opened,
    family: ColumnFamily,
    arguments: &'a Arguments,
    as_json: bool,
    output: Output,
}

/// What a line asks for beside its own work.
#[derive(PartialEq)]
enum Next {
    Line,
    End,
}

impl Session<'_> {
    fn lines(&mut self) -> Result<Verdict, Failure> {
        let is_typed = io::stdin().is_terminal();
        let mut verdict = Verdict::Sound;
        let (mut line, mut number) = (Vec::new(), 0u64);
        loop {
            if is_typed {
                let _ = write!(io::stderr(), "flagstone> ");
            }
            line.clear();
            let read = io::stdin().lock().read_until(b'\n', &mut line);
            if read.map_err(|error| Failure::Stream("read standard input", error))? == 0 {
                return Ok(verdict);
            }
            number += 1;
            let done = self.line(&line);
            self.output.flush()?;
            match done {
                Ok((_, Next::End)) => return Ok(verdict),
                Ok((found, Next::Line)) => verdict = verdict.worse(found),
                // The reader of the answers is gone.
                Err(failure @ Failure::Stream(..)) => return Err(failure),
                Err(failure) => {
                    verdict = Verdict::Faulty;
                    let message = match failure {
                        Failure::Usage(message) => message,
                        other => other.to_string(),
                    };
                    say(format_args!("line {number}: {}", message.trim_end()));
                    if self.as_json {
                        self.output
                            .line(json!({ "line": number, "error": message }).to_string())?;
                        self.output.flush()?;
                    }
                }
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(Verdict, Next), Failure> {
        let line = str::from_utf8(line).map_err(|_| {
            Failure::Usage("the line is not UTF-8; write such bytes as \\xff, or use --hex".into())
        })?;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.first().is_none_or(|first| first.starts_with('#')) {
            return Ok((Verdict::Sound, Next::Line));
        }
        let parsed = match Line::try_parse_from(words) {
            Ok(parsed) => parsed,
            Err(told) if !told.use_stderr() => {
                self.output.bytes(told.to_string().as_bytes())?;
                return Ok((Verdict::Sound, Next::Line));
            }
            Err(told) => {
                let told = told.to_string();
                let first = told.lines().next().unwrap_or_default();
                let first = first.strip_prefix("error: ").unwrap_or(first);
                return Err(Failure::Usage(format!("{first} (help lists the commands)")));
            }
        };
        let verdict = match parsed.command {
            Command::Quit => return Ok((Verdict::Sound, Next::End)),
            Command::Get { key, read_timestamp } => self.get(&key, read_timestamp)?,
            Command::Scan { span, limit } => self.scan(&span, limit.unwrap_or(u64::MAX), true)?,
            Command::Count { span } => self.scan(&span, u64::MAX, false)?,
            write => self.write(write)?,
        };
        Ok((verdict, Next::Line))
    }

    fn notation(&self) -> Notation {
        self.arguments.place.notation()
    }

    /// A word as the bytes that it stands for.
    fn bytes(&self, what: &str, word: &str) -> Result<Vec<u8>, Failure> {
        match self.notation() {
            Notation::Hex => self.notation().read(what, word.as_ref()),
            Notation::Plain => unescaped(word).ok_or_else(|| {
                Failure::Usage(format!(
                    "{what} '{word}': after a backslash expected \\, ', \", t, r, n, or x and two digits 0 to f"
                ))
            }),
        }
    }

    fn get(&mut self, key: &str, read_timestamp: Option<u64>) -> Result<Verdict, Failure> {
        let (key, notation) = (self.bytes("the key", key)?, self.notation());
        let options = ReadAsOf::new(read_timestamp).options(&self.family)?;
        let read =
            || self.db.get_in_pieces(&options, &self.family, &key).map(|read| read.map(Box::new));
        let Some(value) = read()?.map(Pieces::Reader) else {
            let (shown, family) = (notation.show(&key), text::name(self.family.name()));
            if self.as_json {
                let mut facts = json!({ "found": false });
                json::tell(&mut facts, "key", &key, notation);
                self.output.line(facts.to_string())?;
            }
            say(format_args!("key '{shown}' is not in column family '{family}'"));
            return Ok(Verdict::Faulty);
        };
        if !self.as_json {
            value.print_shown(&mut self.output, notation)?;
            self.output.bytes(b"\n")?;
            return Ok(Verdict::Sound);
        }
        let form = value.form(notation)?;
        // What is printed piece by piece is read once before, to know whether it is text.
        if let Some(value) = read()?.map(Pieces::Reader) {
            print_json(&mut self.output, (&key, &Marks::default()), notation, value, form)?;
        }
        Ok(Verdict::Sound)
    }

    /// Shows the entries of a span, or counts them.
    fn scan(&mut self, span: &Span, limit: u64, shows: bool) -> Result<Verdict, Failure> {
        let read = |what, word: &Option<String>| {
            word.as_ref().map(|word| self.bytes(what, word)).transpose()
        };
        let bounds = (read("--from", &span.from)?, read("--to", &span.to)?);
        Range::default().check_order(&self.family, &bounds)?;
        let options = ReadAsOf::new(span.read_timestamp).options(&self.family)?;
        let mut cursor = self.db.cursor(options, &self.family, bounds, false)?;
        let (mut keys, notation) = (0u64, self.notation());
        while cursor.valid() && keys < limit {
            keys += 1;
            if shows {
                let (key, marks) = (cursor.key().to_vec(), Marks::of(&mut cursor, false)?);
                if self.as_json {
                    let form = cursor.value()?.form(notation)?;
                    let entry = (&key[..], &marks);
                    print_json(&mut self.output, entry, notation, cursor.value()?, form)?;
                } else {
                    let head = format!("{}{}\t", notation.show(&key), marks.text());
                    self.output.bytes(head.as_bytes())?;
                    cursor.value()?.print_shown(&mut self.output, notation)?;
                    self.output.bytes(b"\n")?;
                }
            }
            cursor.step(false);
        }
        cursor.status()?;
        if !shows {
            self.output.line(if self.as_json {
                json!({ "keys": keys }).to_string()
            } else {
                keys.to_string()
            })?;
        }
        Ok(Verdict::Sound)
    }

    fn write(&mut self, command: Command) -> Result<Verdict, Failure> {
        if self.arguments.read_only {
            return Err(Failure::Usage(
                "the database is open for reading: leave out --read-only to write".to_string(),
            ));
        }
        let mut batch = WriteBatch::new();
        let family = &self.family;
        match command {
            Command::Put { key, value, write_timestamp } => {
                let (key, value) = (self.bytes("the key", &key)?, self.bytes("the value", &value)?);
                let stamp = WriteAsOf::new(write_timestamp).stamp(family)?;
                put_into(&mut batch, family, stamp, (&key, &value))?;
            }
            Command::Delete { key, write_timestamp } => {
                let key = self.bytes("the key", &key)?;
                let stamp = WriteAsOf::new(write_timestamp).stamp(family)?;
                delete_into(&mut batch, family, stamp, &key)?;
            }
            Command::DeleteRange { from, to, write_timestamp } => {
                let (from, to) = (self.bytes("FROM", &from)?, self.bytes("TO", &to)?);
                if family.comparator().without_timestamps().compare(&from, &to).is_gt() {
                    return Err(not_ascending(family, "FROM", "TO"));
                }
                match WriteAsOf::new(write_timestamp).stamp(family)? {
                    Some(stamp) => batch.delete_range_with_timestamp(family, &from, &to, stamp)?,
                    None => batch.delete_range_cf(family, &from, &to)?,
                }
            }
            Command::Get { .. } | Command::Scan { .. } | Command::Count { .. } | Command::Quit => {}
        }
        self.db.write(&WriteOptions::new(), &mut batch)?;
        self.output.line(if self.as_json {
            json!({ "done": true }).to_string()
        } else {
            "OK".into()
        })?;
        Ok(Verdict::Sound)
    }
}

/// The bytes that a word stands for, with what [`Notation::show`] escapes; `None` if something else
/// follows a backslash.
fn unescaped(word: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            escaped @ (b'\\' | b'\'' | b'"') => escaped,
            b't' => b'\t',
            b'r' => b'\r',
            b'n' => b'\n',
            b'x' => {
                let digit = |byte: u8| (byte as char).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                (high << 4 | low) as u8
            }
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
