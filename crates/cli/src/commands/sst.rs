//! `flagstone sst`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use flagstone::base::file_name::FileKind;
use flagstone::base::{
    Comparator, InternalIterator, InternalKeyBuf, MAX_SEQUENCE_NUMBER, PrefixExtractor, ValueType,
    WideColumns, WriteTimes, counted,
};
use flagstone::db::another_owner;
use flagstone::env::{Env, IoMode};
use flagstone::manifest;
use flagstone::sst::{
    Footer, IterSettings, Table, TableProperties, TableReadSettings, read_table_properties,
};
use serde_json::{Map, Value, json};

use crate::arguments::{Bounds, Common, Range};
use crate::commands::kind;
use crate::entities::{columns_in_json, show_columns};
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::json;
use crate::output::Output;
use crate::progress::Progress;
use crate::text::{self, Notation};
use crate::world;

/// Print the properties of table files; with --entries or --verify, look inside.
///
/// A file that is damaged or not a table gives exit code 1; the other files are still read. In a
/// database's directory, a table that is being written or disappears meanwhile is only a note. The
/// order of entries is not checked if the comparator is an application's own.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone sst /data/photos/000012.sst --entries --hex\n  flagstone sst /data/photos --verify"
)]
pub struct Arguments {
    /// Files, or directories for all tables in them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// List each entry: key, sequence number, type, value. Range deletions come first, with their
    /// ends as values
    #[arg(long)]
    entries: bool,
    #[command(flatten)]
    range: Range,
    /// With --entries, list at most N entries of each table, range deletions apart
    #[arg(long, value_name = "N", alias = "read_num", requires = "entries")]
    limit: Option<u64>,
    /// Read and check every block
    #[arg(long)]
    verify: bool,
    /// Show keys and values in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let bounds = arguments.range.bounds(Notation::new(arguments.hex))?;
    if !arguments.entries && (bounds.0.is_some() || bounds.1.is_some()) {
        return Err(Failure::Usage("--from, --to and --prefix need --entries".to_string()));
    }
    let env = world::env();
    let files = list(&env, &arguments.files)?;
    // Who lists is done when nobody reads; who verifies is not.
    let mut output = if arguments.verify { Output::of_a_search() } else { Output::new() };
    let mut verdict = Verdict::Sound;
    let printed = look_at_all(&env, &files, arguments, common, &mut output, &mut verdict);
    reported(verdict, printed.and_then(|()| output.finish()))
}

fn look_at_all(
    env: &Env,
    files: &[Found],
    arguments: &Arguments,
    common: &Common,
    output: &mut Output,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let is_one_of_several = files.len() > 1;
    let progress = Progress::beside_output(|| Progress::things(files.len() as u64, "tables"));
    for (number, Found { path, is_listed }) in files.iter().enumerate() {
        progress.set(number as u64);
        if is_one_of_several && !common.json {
            output.line(format!("{}:", path.display()))?;
        }
        let opened = if *is_listed {
            open_listed(env, path)
        } else {
            open_named(env, path).map(Sight::Table)
        };
        let looked = match opened {
            Ok(Sight::Table(opened)) => look(&opened, path, arguments, common, output),
            Ok(Sight::Nothing(why)) => {
                output.finding(common.json, "note:", &format!("{} {why}", path.display()))?;
                continue;
            }
            Err(error) => Err(error.into()),
        };
        match looked {
            Ok(Verdict::Sound) => {}
            Ok(fault) => *verdict = fault,
            Err(Failure::Engine(error)) if is_one_of_several => {
                *verdict = Verdict::Faulty;
                output.finding(common.json, "FAULT", &error.to_string())?;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// A table to look at.
struct Found {
    path: PathBuf,
    /// It was found in a directory.
    is_listed: bool,
}

/// An open table, and the bytes of its file.
struct Opened {
    table: Arc<Table>,
    size: u64,
}

/// What there is where a directory has a table's name.
enum Sight {
    Table(Opened),
    /// No table, and why that is no fault.
    Nothing(&'static str),
}

/// Opens a table that somebody named: by mistake it may be a file of another kind.
fn open_named(env: &Env, path: &Path) -> flagstone::base::Result<Opened> {
    open(env, path).map_err(|error| match kind::of(path) {
        Some(FileKind::Table(_)) => error,
        _ if error.is_corruption() && !ends_like_a_table(env, path) => {
            kind::mistaken(path, "table", "a table ends in the number 0x88e241b785f4cff7")
        }
        _ => error,
    })
}

fn ends_like_a_table(env: &Env, path: &Path) -> bool {
    let end = || {
        let file = env.fs.open_random_access(path, IoMode::Buffered)?;
        let mut end = [0; 8];
        let read = file.read_at(file.size()?.saturating_sub(8), &mut end)?;
        Ok::<_, flagstone::base::Error>(Footer::is_claimed(&end[..read]))
    };
    // What cannot be read is told as that.
    end().unwrap_or(true)
}

/// Opens a table that nobody named. A program that has the database open may be writing it, or be
/// done with it.
fn open_listed(env: &Env, path: &Path) -> flagstone::base::Result<Sight> {
    match open(env, path) {
        Ok(opened) => Ok(Sight::Table(opened)),
        Err(_) if is_gone(env, path) => Ok(Sight::Nothing("was removed meanwhile")),
        Err(error) if error.is_corruption() && is_left_out(env, path) => Ok(Sight::Nothing(
            "is incomplete and not part of the database: it is being written, or was when a program ended",
        )),
        // The database has it: it may have been finished meanwhile.
        Err(_) => open(env, path).map(Sight::Table),
    }
}

fn is_gone(env: &Env, path: &Path) -> bool {
    env.fs.metadata(path).is_err_and(|error| error.is_not_found())
}

/// Whether a database is in the directory whose MANIFEST never had this table. Of one that cannot
/// be read nobody knows.
fn is_left_out(env: &Env, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(directory), Some(FileKind::Table(number))) =
        (path.parent(), name.and_then(FileKind::parse))
    else {
        return false;
    };
    // Of db_paths and cf_paths a file OWNER says whose they are.
    let Ok(owner) = another_owner(&*env.fs, directory, directory) else { return false };
    let manifest = manifest::read_current(&*env.fs, owner.as_deref().unwrap_or(directory));
    let Ok(mut edits) = manifest.and_then(|manifest| manifest::dump(&*env.fs, &manifest)) else {
        return false;
    };
    edits.all(|(_, edit)| {
        edit.is_ok_and(|edit| edit.new_files.iter().all(|(_, file)| file.number != number))
    })
}

/// The files, and the tables of the directories among them.
fn list(env: &Env, places: &[PathBuf]) -> Result<Vec<Found>, Failure> {
    let mut files = Vec::new();
    for place in places {
        // What is not there is told when its turn comes.
        if !env.fs.metadata(place).is_ok_and(|found| found.is_directory) {
            files.push(Found { path: place.clone(), is_listed: false });
            continue;
        }
        let names = env.fs.list(place)?;
        let mut tables: Vec<_> = names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Table(number)) => Some((number, place.join(name))),
                _ => None,
            })
            .collect();
        if tables.is_empty() {
            return Err(Failure::Other(format!(
                "there are no tables in the directory {}",
                place.display()
            )));
        }
        tables.sort();
        files.extend(tables.into_iter().map(|(_, path)| Found { path, is_listed: true }));
    }
    Ok(files)
}

fn open(env: &Env, path: &Path) -> flagstone::base::Result<Opened> {
    let file = env.fs.open_random_access(path, IoMode::Buffered)?;
    let size = file.size()?;
    let properties = read_table_properties(file.clone(), size)?;
    let settings = TableReadSettings {
        comparator: comparator_of(&properties),
        // A rule that is not built in only means that prefix filters stay unused.
        prefix_extractor: PrefixExtractor::from_option_text(&properties.prefix_extractor)
            .unwrap_or(None),
        ..TableReadSettings::default()
    };
    Ok(Opened { table: Table::open(file, size, settings)?, size })
}

fn comparator_of(properties: &TableProperties) -> Comparator {
    match properties.comparator.as_str() {
        // RocksDB's tool assumes it, too; LevelDB's tables do not say.
        "" => Comparator::Bytewise,
        // One that is not built in leaves what can be seen without comparing keys.
        name => Comparator::from_name(name).unwrap_or_else(|_| Comparator::unknown(name)),
    }
}

/// Prints what is asked of a table.
fn look(
    Opened { table, size }: &Opened,
    path: &Path,
    arguments: &Arguments,
    common: &Common,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let mut faults = Vec::new();
    if arguments.verify {
        table.verify(&mut |fault| faults.push(fault.error.to_string()));
    }
    // Before the entries, which end at the first block that cannot be read.
    faults.iter().try_for_each(|fault| output.finding(common.json, "FAULT", fault))?;
    let printed = if arguments.entries {
        let shown = Shown::new(table, arguments)?;
        print_entries(table, path, &shown, common, output)
    } else {
        let faults = arguments.verify.then_some(faults.len() as u64);
        print_properties(table, path, *size, faults, common, output)
    };
    match printed {
        // It is one of the faults.
        Err(Failure::Engine(error)) if error.is_corruption() && !faults.is_empty() => {
            Ok(Verdict::Faulty)
        }
        printed => {
            printed.map(|()| if faults.is_empty() { Verdict::Sound } else { Verdict::Faulty })
        }
    }
}

/// Which entries of a table are listed, and how.
struct Shown {
    notation: Notation,
    comparator: Comparator,
    bounds: Bounds,
    limit: u64,
}

impl Shown {
    /// What is asked of a table. Keys are only compared where its order is known.
    fn new(table: &Table, arguments: &Arguments) -> Result<Self, Failure> {
        let notation = Notation::new(arguments.hex);
        let bounds = arguments.range.bounds(notation)?;
        let limit = arguments.limit.unwrap_or(u64::MAX);
        let comparator = comparator_of(table.properties());
        let is_bounded = bounds.0.is_some() || bounds.1.is_some();
        let is_known = !comparator.is_unknown();
        let is_usable = match &arguments.range.prefix {
            Some(_) => comparator == Comparator::Bytewise,
            None => is_known && comparator.timestamp_size() == 0,
        };
        if is_bounded && !is_usable {
            return Err(Failure::Usage(format!(
                "keys of order {} cannot be limited: --prefix needs bytewise order; --from and --to \
                 need an order that is built in and keys without timestamps",
                text::name(comparator.name())
            )));
        }
        Ok(Self { notation, comparator, bounds, limit })
    }

    fn is_before_end(&self, key: &[u8]) -> bool {
        self.bounds.1.as_ref().is_none_or(|to| self.comparator.compare(key, to).is_lt())
    }

    /// Whether a range of keys has any of those that are listed.
    fn reaches(&self, start: &[u8], end: &[u8]) -> bool {
        let from = self.bounds.0.as_ref();
        self.is_before_end(start)
            && from.is_none_or(|from| self.comparator.compare(end, from).is_gt())
    }
}

fn print_entries(
    table: &Arc<Table>,
    path: &Path,
    shown: &Shown,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let notation = shown.notation;
    // First, so that no damaged block keeps them from being seen.
    for range in table.stored_range_deletions()? {
        if !shown.reaches(&range.start, &range.end) {
            continue;
        }
        let (sequence, kind) = (range.sequence, "RangeDeletion");
        output.line(if common.json {
            let mut facts = json!({ "sequence": sequence, "type": kind });
            json::tell_path(&mut facts, "file", Some(path));
            json::tell(&mut facts, "key", &range.start, notation);
            json::tell(&mut facts, "end_key", &range.end, notation);
            facts.to_string()
        } else {
            let (start, end) = (notation.show(&range.start), notation.show(&range.end));
            format!("{start}\t{sequence}\t{kind}\t{end}")
        })?;
    }
    let mut iter = table.iter(IterSettings::default());
    match &shown.bounds.0 {
        Some(from) => iter.seek(InternalKeyBuf::for_seek(from, MAX_SEQUENCE_NUMBER).as_key()),
        None => iter.seek_to_first(),
    }
    let mut listed = 0;
    while iter.valid() && listed < shown.limit && shown.is_before_end(iter.key().user_key()) {
        listed += 1;
        let key = iter.key();
        let (sequence, kind) = (
            key.sequence(),
            key.value_type().map_or_else(|| "?".to_string(), |k| format!("{k:?}")),
        );
        // One that has columns in blob files is shown as it is stored.
        let columns = match key.value_type() {
            Some(ValueType::WideColumnEntity) => WideColumns::decode(iter.value()).ok(),
            _ => None,
        };
        output.line(if common.json {
            let mut facts = json!({ "sequence": sequence, "type": kind });
            json::tell_path(&mut facts, "file", Some(path));
            json::tell(&mut facts, "key", key.user_key(), notation);
            json::tell(&mut facts, "value", iter.value(), notation);
            if let Some(columns) = &columns {
                facts["columns"] = columns_in_json(columns, notation);
            }
            facts.to_string()
        } else {
            let value = match &columns {
                Some(columns) => show_columns(columns, notation),
                None => notation.show(iter.value()),
            };
            let key = notation.show(key.user_key());
            format!("{key}\t{sequence}\t{kind}\t{value}")
        })?;
        iter.next();
    }
    Ok(iter.status()?)
}

/// The value of a property: numbers are stored as varints, names as they are, and some in forms of
/// their own.
fn property_value(name: &str, value: &[u8], as_json: bool) -> Value {
    let shown = |text: String| if as_json { json::value(value) } else { json!(text) };
    if TableProperties::is_text(name) {
        return shown(Notation::Plain.show(value));
    }
    if name.ends_with(".filtering") {
        return json!(value == b"1");
    }
    if name.ends_with("table.index.type") {
        return json!(flagstone::base::coding::fixed32_at(value, 0));
    }
    if name == "rocksdb.seqno.time.map"
        && let Ok(times) = WriteTimes::decode(value)
    {
        let words = times.samples().iter().map(|one| format!("{}@{}", one.sequence, one.time));
        return json!(words.collect::<Vec<_>>().join(" "));
    }
    let mut decoder = flagstone::base::coding::Decoder::new(value);
    if name.ends_with(".embedded.blob.stats") {
        return json!([decoder.varint64(), decoder.varint64()]);
    }
    let printable =
        value.len() > 1 && value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    match decoder.varint64() {
        Some(number) if decoder.is_empty() && !printable => json!(number),
        _ => shown(value.escape_ascii().to_string()),
    }
}

/// `faults` are how many were found, if they were looked for.
fn print_properties(
    table: &Table,
    path: &Path,
    size: u64,
    faults: Option<u64>,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let properties: Map<String, Value> = table
        .properties()
        .raw
        .iter()
        .map(|(name, value)| (name.escape_ascii().to_string(), value))
        .map(|(name, value)| (name.clone(), property_value(&name, value, common.json)))
        .collect();
    let meta_blocks: Vec<_> = table
        .meta_blocks()
        .iter()
        .map(
            |(name, handle)| json!({ "name": name, "offset": handle.offset, "bytes": handle.size }),
        )
        .collect();
    if common.json {
        let mut facts =
            json!({ "bytes": size, "properties": properties, "meta_blocks": meta_blocks });
        json::tell_path(&mut facts, "file", Some(path));
        if let Some(faults) = faults {
            facts["faults"] = json!(faults);
        }
        return output.line(facts.to_string());
    }
    let verdict = match faults {
        None => String::new(),
        Some(0) => ", every block read: sound".to_string(),
        Some(faults) => format!(", every block read: {}", counted(faults, "fault")),
    };
    output
        .line(format!("{size} bytes, format_version {}{verdict}", table.footer().format_version))?;
    for (name, value) in &properties {
        output.line(format!("  {name}: {value}"))?;
    }
    for (name, handle) in table.meta_blocks() {
        output.line(format!("  meta block {name}: {} bytes at {}", handle.size, handle.offset))?;
    }
    Ok(())
}
