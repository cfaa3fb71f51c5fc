//! `flagstone wal`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use flagstone::WideColumns;
use flagstone::base::file_name::FileKind;
use flagstone::base::{ColumnFamilyId, Error, FileNumber, counted};
use flagstone::batch::{BatchView, Operation};
use flagstone::env::{IoMode, RandomAccessFile};
use flagstone::wal::{Damage, DamageKind, Event, Gap, Reader};
use serde_json::{Value, json};

use crate::arguments::Common;
use crate::entities::{columns_in_json, show_columns};
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::json;
use crate::output::Output;
use crate::text::{self, Notation};
use crate::world;

/// The name of an entity among the fields of an operation.
const ENTITY: &str = "entity";

/// Print the write batches of a WAL file in order, and any damage.
///
/// Damage gives exit code 1. So do zeros or remains of an earlier use of the file if records of
/// this WAL follow them, because something is lost there. At the end of the file they are its
/// unused rest and no fault, and neither is a last record cut off by a crash. With --json an
/// operation is an object with its type, column family id, key, value and other fields.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone wal /data/photos/000011.log --operations")]
pub struct Arguments {
    /// The file
    file: PathBuf,
    /// Number of the WAL, if the file name does not contain it
    #[arg(long)]
    number: Option<u64>,
    /// List each operation: family, key, value
    #[arg(long)]
    operations: bool,
    /// Show keys and values in hexadecimal
    #[arg(long)]
    hex: bool,
}

impl Arguments {
    /// All operations of a file.
    pub fn of_file(file: PathBuf, hex: bool) -> Self {
        Self { file, number: None, operations: true, hex }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let fs = world::env().fs;
    if fs.metadata(&arguments.file).is_ok_and(|found| found.is_directory) {
        return Err(Failure::Usage(format!(
            "{} is a directory: name one of the WALs in it",
            arguments.file.display()
        )));
    }
    let file = fs.open_random_access(&arguments.file, IoMode::Buffered)?;
    let number =
        arguments.number.map(FileNumber).or_else(|| number_of(&arguments.file)).ok_or_else(
            || {
                Failure::Usage(format!(
                    "{} is not named like a WAL; give its --number",
                    arguments.file.display()
                ))
            },
        )?;
    let mut reader = Reader::new(file, number);
    let mut printer = Printer {
        common,
        notation: Notation::new(arguments.hex),
        operations: arguments.operations,
        output: Output::of_a_search(),
        verdict: Verdict::Sound,
        holes: None,
    };
    let printed = printer.file(&mut reader, number, &arguments.file);
    let verdict = printer.verdict;
    reported(verdict, printed.and_then(|()| printer.output.finish()))
}

fn number_of(path: &Path) -> Option<FileNumber> {
    match FileKind::parse(path.file_name()?.to_str()?) {
        Some(FileKind::Wal(number)) => Some(number),
        _ => None,
    }
}

/// What was met since the last record.
struct Hole {
    first: Damage,
    gap: Gap,
}

impl Hole {
    /// Whether a log may end so.
    fn is_end(&self) -> bool {
        self.begins_like_an_end() || self.gap.is_end()
    }

    fn begins_like_an_end(&self) -> bool {
        matches!(
            self.first.kind,
            DamageKind::TruncatedHeader
                | DamageKind::TruncatedBody
                | DamageKind::TruncatedRecord
                | DamageKind::OldRecord { .. }
                | DamageKind::Zeros { .. }
        )
    }

    /// It as the end of the log in `file`: that a log ends so is no fault.
    fn to_end(&self, file: &dyn RandomAccessFile) -> String {
        let all = self.gap.damage().dropped;
        let rest = counted(all, "byte");
        let what = match self.first.kind {
            DamageKind::Zeros { .. } if all == self.first.dropped => {
                format!("the unused rest of the log, {rest} of zeros")
            }
            DamageKind::Zeros { .. } => format!("the unused rest of the log, {rest}"),
            DamageKind::TruncatedHeader
            | DamageKind::TruncatedBody
            | DamageKind::TruncatedRecord => {
                format!("the last record is cut off, as by a crash: {rest} of it remain")
            }
            // Also what is left of one whose beginning was written over.
            _ => format!("the unused rest of the log, {rest} of an earlier use of the file"),
        };
        format!("{what} ({}, offset {})", text::path(file.path()), self.first.offset)
    }

    /// It as a fault, with all bytes up to the next record.
    fn to_fault(&self, file: &dyn RandomAccessFile) -> Error {
        self.gap.damage().to_error(file)
    }
}

/// Where a log has holes in front of records.
fn holes(file: &Arc<dyn RandomAccessFile>, number: FileNumber) -> Result<BTreeSet<u64>, Failure> {
    let mut reader = Reader::new(file.clone(), number);
    let (mut hole, mut holes) = (None, BTreeSet::new());
    loop {
        match reader.next_event()? {
            Event::End => return Ok(holes),
            Event::Record(_) => holes.extend(hole.take()),
            Event::Damage(damage) => {
                hole.get_or_insert(damage.offset);
            }
        }
    }
}

struct Printer<'a> {
    common: &'a Common,
    notation: Notation,
    operations: bool,
    output: Output,
    verdict: Verdict,
    /// Where another look found any, once it was taken.
    holes: Option<BTreeSet<u64>>,
}

impl Printer<'_> {
    fn file(
        &mut self,
        reader: &mut Reader,
        number: FileNumber,
        path: &Path,
    ) -> Result<(), Failure> {
        let file = reader.file().clone();
        let mut events = 0u64;
        let mut hole: Option<Hole> = None;
        loop {
            // A record's offset is known only once it has been read, and the record borrows the
            // reader.
            let event = reader.next_event()?;
            events += 1;
            let record = match event {
                Event::End if events == 1 => {
                    return self.output.finding(
                        self.common.json,
                        "end:",
                        "there is no record in this file",
                    );
                }
                Event::End => return hole.map_or(Ok(()), |hole| self.end(&hole, &*file)),
                Event::Record(record) => record.to_vec(),
                Event::Damage(damage) => {
                    match &mut hole {
                        Some(hole) => hole.gap.add(&damage, number, &*file)?,
                        None => {
                            let gap = Gap::new(damage.clone(), number, &*file)?;
                            hole = Some(Hole { first: damage, gap });
                        }
                    }
                    continue;
                }
            };
            if let Some(hole) = hole.take() {
                self.in_front_of_record(&hole, &file, number)?;
            }
            let offset = reader.record_offset();
            if let Err(error) = self.batch(offset, &record)? {
                self.fault(&error.at(path).at_offset(offset).to_string())?;
            }
        }
    }

    /// A record follows, unless the log was being written, and had ended there.
    fn in_front_of_record(
        &mut self,
        hole: &Hole,
        file: &Arc<dyn RandomAccessFile>,
        number: FileNumber,
    ) -> Result<(), Failure> {
        let holes = match self.holes.take() {
            Some(holes) => holes,
            None => holes(file, number)?,
        };
        let is_there = holes.contains(&hole.first.offset);
        self.holes = Some(holes);
        if is_there {
            return self.fault(&hole.to_fault(&**file).to_string());
        }
        let message = format!(
            "the WAL grew while it was read: some records after offset {} are not listed",
            hole.first.offset
        );
        self.output.finding(self.common.json, "note:", &message)
    }

    /// No record follows.
    fn end(&mut self, hole: &Hole, file: &dyn RandomAccessFile) -> Result<(), Failure> {
        if hole.is_end() {
            self.output.finding(self.common.json, "end:", &hole.to_end(file))
        } else {
            self.fault(&hole.to_fault(file).to_string())
        }
    }

    fn fault(&mut self, message: &str) -> Result<(), Failure> {
        self.verdict = Verdict::Faulty;
        self.output.finding(self.common.json, "FAULT", message)
    }

    /// Prints a batch; the inner error is what is wrong with it.
    fn batch(
        &mut self,
        offset: u64,
        record: &[u8],
    ) -> Result<flagstone::base::Result<()>, Failure> {
        let batch = match BatchView::parse(record) {
            Ok(batch) => batch,
            Err(error) => return Ok(Err(error)),
        };
        let (sequence, count, bytes) = (batch.sequence(), batch.count(), record.len());
        // Read twice rather than kept: a compressed record may have billions.
        if let Some(error) = batch.iter().find_map(Result::err) {
            return Ok(Err(error));
        }
        let operations = self.operations.then(|| batch.iter()).into_iter().flatten();
        let listed = operations.map_while(Result::ok).map(|operation| Shown::of(&operation));
        if self.common.json {
            let listed: Vec<_> = listed.map(|shown| shown.json(self.notation)).collect();
            self.output.line(
                json!({
                    "offset": offset, "sequence": sequence, "count": count, "bytes": bytes, "operations": listed,
                })
                .to_string(),
            )?;
            return Ok(Ok(()));
        }
        self.output.line(format!(
            "{offset}: sequence {sequence}, {}, {}",
            counted(count, "operation"),
            counted(bytes, "byte")
        ))?;
        for shown in listed {
            self.output.line(format!("  {}", shown.text(self.notation)))?;
        }
        Ok(Ok(()))
    }
}

/// An operation as it is shown: its type, and what it has.
struct Shown<'a> {
    kind: &'static str,
    family: Option<ColumnFamilyId>,
    /// Names for JSON, and the bytes.
    fields: Vec<(&'static str, &'a [u8])>,
    /// What is no bytes, with its name for JSON.
    plain: Option<(&'static str, Value)>,
}

impl<'a> Shown<'a> {
    fn of(operation: &Operation<'a>) -> Self {
        let (kind, cf, key, other) = match *operation {
            Operation::Put { cf, key, value } => ("Put", cf, key, Some(("value", value))),
            Operation::Delete { cf, key } => ("Delete", cf, key, None),
            Operation::SingleDelete { cf, key } => ("SingleDelete", cf, key, None),
            Operation::Merge { cf, key, operand } => ("Merge", cf, key, Some(("operand", operand))),
            Operation::DeleteRange { cf, begin, end } => {
                ("DeleteRange", cf, begin, Some(("end_key", end)))
            }
            Operation::BlobIndex { cf, key, index } => {
                ("BlobIndex", cf, key, Some(("blob_index", index)))
            }
            Operation::PutEntity { cf, key, entity } => {
                ("PutEntity", cf, key, Some((ENTITY, entity)))
            }
            Operation::TimedPut { cf, key, timed } => {
                ("TimedPut", cf, key, Some(("value", timed.value())))
            }
            Operation::LogData(data) => return Self::of_none("LogData", vec![("data", data)]),
            Operation::Noop => return Self::of_none("Noop", Vec::new()),
            Operation::BeginPrepare(policy) => {
                let plain = Some(("policy", json!(format!("{policy:?}"))));
                return Self { plain, ..Self::of_none("BeginPrepare", Vec::new()) };
            }
            Operation::EndPrepare { xid } => {
                return Self::of_none("EndPrepare", vec![("xid", xid)]);
            }
            Operation::Commit { xid } => return Self::of_none("Commit", vec![("xid", xid)]),
            Operation::Rollback { xid } => return Self::of_none("Rollback", vec![("xid", xid)]),
            Operation::CommitWithTimestamp { timestamp, xid } => {
                let fields = vec![("timestamp", timestamp), ("xid", xid)];
                return Self::of_none("CommitWithTimestamp", fields);
            }
        };
        let plain = match *operation {
            Operation::TimedPut { timed, .. } => Some(("write_time", json!(timed.write_time()))),
            _ => None,
        };
        let fields = [("key", key)].into_iter().chain(other).collect();
        Self { kind, family: Some(cf), fields, plain }
    }

    /// What belongs to no family.
    fn of_none(kind: &'static str, fields: Vec<(&'static str, &'a [u8])>) -> Self {
        Self { kind, family: None, fields, plain: None }
    }

    fn text(&self, notation: Notation) -> String {
        let family = self.family.map(|family| family.0.to_string());
        let fields = self.fields.iter().map(|(name, bytes)| match columns(name, bytes) {
            Some(columns) => show_columns(&columns, notation),
            None => notation.show(bytes),
        });
        let plain = self
            .plain
            .iter()
            .map(|(_, value)| value.as_str().map_or_else(|| value.to_string(), String::from));
        let parts: Vec<_> =
            [self.kind.to_string()].into_iter().chain(family).chain(fields).chain(plain).collect();
        parts.join("\t")
    }

    fn json(&self, notation: Notation) -> Value {
        let mut facts = json!({ "type": self.kind });
        if let Some(family) = self.family {
            facts["column_family_id"] = json!(family.0);
        }
        for (name, bytes) in &self.fields {
            json::tell(&mut facts, name, bytes, notation);
            if let Some(columns) = columns(name, bytes) {
                facts["columns"] = columns_in_json(&columns, notation);
            }
        }
        if let Some((name, value)) = &self.plain {
            facts[*name] = value.clone();
        }
        facts
    }
}

/// The columns of an entity that has all of them inside.
fn columns(name: &str, bytes: &[u8]) -> Option<WideColumns> {
    if name == ENTITY { WideColumns::decode(bytes).ok() } else { None }
}
