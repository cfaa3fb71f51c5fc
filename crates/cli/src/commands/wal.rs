//! `flagstone wal`

use std::path::{Path, PathBuf};

use clap::Args;
use flagstone::base::file_name::FileKind;
use flagstone::base::{ColumnFamilyId, FileNumber};
use flagstone::batch::{BatchView, Operation};
use flagstone::env::{Env, File, OpenMode};
use flagstone::wal::{Damage, DamageKind, Event, Reader};
use serde_json::json;

use crate::arguments::Common;
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::output::Output;
use crate::text::Notation;

/// Print the write batches of a WAL file, in order, and what is damaged in it.
///
/// Damage gives exit code 1; an end that was cut off in a crash, or the remains of an earlier use of the file, do
/// not.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone wal /data/photos/000011.log --operations")]
pub struct Arguments {
    /// The file
    file: PathBuf,
    /// Its number, if its name does not tell
    #[arg(long)]
    number: Option<u64>,
    /// List each operation: family, key, value
    #[arg(long)]
    operations: bool,
    /// Keys and values are shown in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let file = Env::os().fs.open(&arguments.file, OpenMode::Read)?;
    let number =
        arguments.number.map(FileNumber).or_else(|| number_of(&arguments.file)).ok_or_else(|| {
            Failure::Usage(format!("{} is not named like a WAL; give its --number", arguments.file.display()))
        })?;
    let mut reader = Reader::new(file.clone(), number);
    let mut printer = Printer {
        common,
        notation: Notation::new(arguments.hex),
        operations: arguments.operations,
        output: Output::of_a_search(),
        verdict: Verdict::Sound,
    };
    let printed = printer.file(&mut reader, file.as_ref(), &arguments.file);
    let verdict = printer.verdict;
    reported(verdict, printed.and_then(|()| printer.output.finish()))
}

fn number_of(path: &Path) -> Option<FileNumber> {
    match FileKind::parse(path.file_name()?.to_str()?) {
        Some(FileKind::Wal(number)) => Some(number),
        _ => None,
    }
}

/// Whether a log may end so.
fn is_end(damage: &Damage) -> bool {
    matches!(
        damage.kind,
        DamageKind::TruncatedHeader
            | DamageKind::TruncatedBody
            | DamageKind::TruncatedRecord
            | DamageKind::OldRecord { .. }
            | DamageKind::Zeros { .. }
    )
}

struct Printer<'a> {
    common: &'a Common,
    notation: Notation,
    operations: bool,
    output: Output,
    verdict: Verdict,
}

impl Printer<'_> {
    fn file(&mut self, reader: &mut Reader, file: &dyn File, path: &Path) -> Result<(), Failure> {
        let mut events = 0u64;
        loop {
            // A record's offset is known only once it has been read, and the record borrows the reader.
            let event = reader.next_event()?;
            events += 1;
            let record = match event {
                Event::End if events == 1 => {
                    return self.output.finding(self.common.json, "end:", "there is no record in this file");
                }
                Event::End => return Ok(()),
                Event::Record(record) => record.to_vec(),
                Event::Damage(damage) => {
                    let error = damage.to_error(file).to_string();
                    if is_end(&damage) {
                        return self.output.finding(self.common.json, "end:", &error);
                    }
                    self.fault(&error)?;
                    continue;
                }
            };
            let offset = reader.record_offset();
            if let Err(error) = self.batch(offset, &record)? {
                self.fault(&error.at(path).at_offset(offset).to_string())?;
            }
        }
    }

    fn fault(&mut self, message: &str) -> Result<(), Failure> {
        self.verdict = Verdict::Faulty;
        self.output.finding(self.common.json, "FAULT", message)
    }

    /// Prints a batch; the inner error is what is wrong with it.
    fn batch(&mut self, offset: u64, record: &[u8]) -> Result<flagstone::base::Result<()>, Failure> {
        let batch = match BatchView::parse(record) {
            Ok(batch) => batch,
            Err(error) => return Ok(Err(error)),
        };
        let (sequence, count, bytes) = (batch.sequence(), batch.count(), record.len());
        let mut operations = Vec::new();
        for operation in batch.iter() {
            match operation {
                Ok(operation) => operations.push(self.describe(&operation)),
                Err(error) => return Ok(Err(error)),
            }
        }
        if !self.operations {
            operations.clear();
        }
        self.output.line(match self.common.json {
            true => json!({
                "offset": offset, "sequence": sequence, "count": count, "bytes": bytes, "operations": operations,
            })
            .to_string(),
            false => format!("{offset}: sequence {sequence}, {count} operations, {bytes} bytes"),
        })?;
        if !self.common.json {
            operations.iter().try_for_each(|operation| self.output.line(format!("  {operation}")))?;
        }
        Ok(Ok(()))
    }

    fn describe(&self, operation: &Operation<'_>) -> String {
        let line = |name: &str, cf: &ColumnFamilyId, key: &[u8], value: Option<&[u8]>| {
            let value = value.map_or_else(String::new, |value| format!("\t{}", self.notation.show(value)));
            format!("{name}\t{}\t{}{value}", cf.0, self.notation.show(key))
        };
        match operation {
            Operation::Put { cf, key, value } => line("Put", cf, key, Some(value)),
            Operation::Delete { cf, key } => line("Delete", cf, key, None),
            Operation::SingleDelete { cf, key } => line("SingleDelete", cf, key, None),
            Operation::Merge { cf, key, operand } => line("Merge", cf, key, Some(operand)),
            Operation::DeleteRange { cf, begin, end } => line("DeleteRange", cf, begin, Some(end)),
            Operation::BlobIndex { cf, key, index } => line("BlobIndex", cf, key, Some(index)),
            Operation::PutEntity { cf, key, entity } => line("PutEntity", cf, key, Some(entity)),
            Operation::TimedPut { cf, key, value, .. } => line("TimedPut", cf, key, Some(value)),
            Operation::LogData(data) => format!("LogData\t{}", self.notation.show(data)),
            other => format!("{other:?}"),
        }
    }
}
