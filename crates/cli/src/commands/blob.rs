//! `flagstone blob`

use std::path::{Path, PathBuf};

use clap::Args;
use flagstone::base::compression::CompressionType;
use flagstone::base::file_name::FileKind;
use flagstone::base::{Error, counted};
use flagstone::blob::{BlobFileScan, MAGIC};
use flagstone::env::{IoMode, RandomAccessFile};
use serde_json::json;

use crate::arguments::Common;
use crate::commands::kind;
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::json;
use crate::output::Output;
use crate::text::{self, Notation};
use crate::world;

/// Print the contents of a blob file, and verify the checksums of every record.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone blob /data/photos/000012.blob --keys")]
pub struct Arguments {
    /// The file
    file: PathBuf,
    /// List each record: offset, key, stored bytes
    #[arg(long)]
    keys: bool,
    /// Show keys in hexadecimal
    #[arg(long)]
    hex: bool,
}

impl Arguments {
    /// All records of a file.
    pub fn of_file(file: PathBuf, hex: bool) -> Self {
        Self { file, keys: true, hex }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let file = &arguments.file;
    if world::env().fs.metadata(file).is_ok_and(|found| found.is_directory) {
        return Err(Failure::Usage(format!(
            "{} is a directory: name one of the blob files in it",
            file.display()
        )));
    }
    let mut verdict = Verdict::Sound;
    let printed = print(arguments, common, &mut verdict);
    reported(verdict, printed)
}

fn print(arguments: &Arguments, common: &Common, verdict: &mut Verdict) -> Result<(), Failure> {
    let file = world::env().fs.open_random_access(&arguments.file, IoMode::Buffered)?;
    let mut scan =
        BlobFileScan::new(file.clone()).map_err(|error| named(error, &*file, &arguments.file))?;
    let notation = Notation::new(arguments.hex);
    let mut output = Output::of_a_search();
    let (mut records, mut bytes, mut faults) = (0u64, 0u64, 0u64);
    for record in scan.by_ref() {
        match record {
            Ok(record) => {
                (records, bytes) = (records + 1, bytes + record.stored_size);
                if arguments.keys {
                    let (offset, size) = (record.offset, record.stored_size);
                    output.line(if common.json {
                        let mut facts = json!({ "offset": offset, "stored_bytes": size });
                        json::tell(&mut facts, "key", &record.key, notation);
                        facts.to_string()
                    } else {
                        format!("{offset}\t{}\t{size}", notation.show(&record.key))
                    })?;
                }
            }
            Err(error) => {
                *verdict = Verdict::Faulty;
                faults += 1;
                output.finding(common.json, "FAULT", &error.to_string())?;
            }
        }
    }
    let family = scan.header().column_family.0;
    let compression = CompressionType::from_byte(scan.header().compression).map_or_else(
        || scan.header().compression.to_string(),
        |known| known.short_name().to_string(),
    );
    let sealed = scan.footer().is_some();
    output.line(if common.json {
        json!({
            "column_family_id": family, "compression": compression, "records": records,
            "stored_bytes": bytes, "sealed": sealed, "faults": faults,
        })
        .to_string()
    } else {
        format!(
            "column family {family}, compression {compression}: {}, {} stored, {}, {}",
            counted(records, "record"),
            text::bytes(bytes),
            if sealed { "sealed" } else { "not sealed" },
            counted(faults, "fault")
        )
    })?;
    output.finish()
}

/// What is wrong with a file that somebody named: by mistake it may be of another kind.
fn named(error: Error, file: &dyn RandomAccessFile, path: &Path) -> Error {
    match kind::of(path) {
        Some(FileKind::Blob(_)) => error,
        _ if error.is_corruption() && !begins_like_one(file) => {
            kind::mistaken(path, "blob file", "a blob file begins with the number 0x00248f37")
        }
        _ => error,
    }
}

fn begins_like_one(file: &dyn RandomAccessFile) -> bool {
    let mut start = [0; 4];
    // What cannot be read is told as that.
    file.read_at(0, &mut start).is_err() || start == MAGIC.to_le_bytes()
}
