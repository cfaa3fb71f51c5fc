//! Operations as lines of text.
//!
//! ```text
//! line    := kind { " " word }                      see `Operation::kind`
//! words   := of write:          durability edit { ";" edit }
//!            of put-stream:     durability family key number { value }
//!            of get:            ("any" | "cached") family snapshot key { key }
//!            of prefix-scan:    family snapshot key
//!            of open-iterator, open-scan: family snapshot lower upper
//!            of next-batch:     number begin number
//!            of move-iterator:  number { "first" | "last" | "seek" key | "back" key | "next" | "prev" }
//!            of compact-range:  family begin end { name "=" value }
//!            of compact-files:  family level number { number } { name "=" value }
//!            of suggest-compaction: family begin end
//!            of delete-files:   family key ("before" | "to") key
//!            of set-options:    (family | "-") { name "=" value }
//!            of reopen:         { [ family "/" ] name "=" value }
//!            of crash:          ("kept" | "lost" | seed) number
//!            of drop-snapshot, drop-iterator, refresh-iterator, background, pass: number
//!            of flush:          family { name "=" value }
//!            of create-families: { family }
//!            of drop-family:    family
//!            of begin, go-on, commit, abandon: see `transactions`
//! edit    := family ("put" key value | "delete" key | "single-delete" key | "merge" key value
//!            | "delete-range" key key)
//! snapshot, lower, upper, begin, end := "-" for none, or a number, or a key
//! key, value, family := { byte | "\" two hexadecimal digits | "{" number "*" byte "}" }, at least one
//!            character; "\e" alone is empty
//! ```

mod transactions;

use std::fmt::{self, Write};
use std::str::FromStr;

use flagstone::base::compression::CompressionType;
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactFilesOptions,
    CompactRangeOptions, FlushOptions, Temperature,
};

use super::operation::{Durability, Move, Operation, Power};
use crate::model::Edit;

/// Runs of one byte are abbreviated from this length on.
const RUN: usize = 8;

const DURABILITIES: [(&str, Durability); 4] = [
    ("logged", Durability::Logged),
    ("synced", Durability::Synced),
    ("unlogged", Durability::Unlogged),
    ("ingested", Durability::Ingested),
];

const REWRITES: [(&str, BottommostLevelCompaction); 4] = [
    ("skip", BottommostLevelCompaction::Skip),
    ("filter", BottommostLevelCompaction::IfHaveCompactionFilter),
    ("force", BottommostLevelCompaction::Force),
    ("optimized", BottommostLevelCompaction::ForceOptimized),
];

const COLLECTIONS: [(&str, BlobGarbageCollectionPolicy); 3] = [
    ("force", BlobGarbageCollectionPolicy::Force),
    ("disable", BlobGarbageCollectionPolicy::Disable),
    ("default", BlobGarbageCollectionPolicy::UseDefault),
];

const COMPRESSIONS: [(&str, CompressionType); 7] = [
    ("none", CompressionType::None),
    ("snappy", CompressionType::Snappy),
    ("zlib", CompressionType::Zlib),
    ("bzip2", CompressionType::Bzip2),
    ("lz4", CompressionType::Lz4),
    ("lz4hc", CompressionType::Lz4hc),
    ("zstd", CompressionType::Zstd),
];

/// Whether a range's end belongs to it.
const ENDS: [(&str, bool); 2] = [("before", false), ("to", true)];

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, named)| named == value).expect("all are named").0
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Result<T, String> {
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| format!("'{name}' is not known here"))
}

/// Bytes as one word.
pub fn word(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "\\e".to_string();
    }
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'{');
    let only_a_mark = matches!(bytes, b"-" | b";");
    let mut text = String::new();
    for run in bytes.chunk_by(|a, b| a == b) {
        let byte = match run[0] {
            byte if is_plain(byte) && !only_a_mark => char::from(byte).to_string(),
            byte => format!("\\{byte:02x}"),
        };
        if run.len() >= RUN {
            let _ = write!(text, "{{{}*{byte}}}", run.len());
        } else {
            text.extend(std::iter::repeat_n(byte, run.len()));
        }
    }
    text
}

/// The bytes of a word.
fn bytes(word: &str) -> Result<Vec<u8>, String> {
    if word == "\\e" {
        return Ok(Vec::new());
    }
    let wrong = || format!("'{word}' is no word of bytes");
    let mut found = Vec::new();
    let mut rest = word.as_bytes();
    while let Some(&first) = rest.first() {
        let count = if first == b'{' {
            let star = rest.iter().position(|&byte| byte == b'*').ok_or_else(wrong)?;
            let count =
                std::str::from_utf8(&rest[1..star]).ok().and_then(|count| count.parse().ok());
            rest = &rest[star + 1..];
            Some(count.filter(|count| *count <= 1 << 20).ok_or_else(wrong)?)
        } else {
            None
        };
        let byte = match rest {
            [b'\\', high, low, ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
                rest = &rest[3..];
                u8::from_str_radix(digits, 16).map_err(|_| wrong())?
            }
            [byte, ..] if !matches!(byte, b'\\' | b'{') => {
                rest = &rest[1..];
                *byte
            }
            _ => return Err(wrong()),
        };
        if count.is_some() {
            rest = rest.strip_prefix(b"}").ok_or_else(wrong)?;
        }
        found.extend(std::iter::repeat_n(byte, count.unwrap_or(1)));
    }
    Ok(found)
}

fn optional<T>(value: &Option<T>, print: impl Fn(&T) -> String) -> String {
    value.as_ref().map_or_else(|| "-".to_string(), print)
}

fn optional_key(key: &Option<Vec<u8>>) -> String {
    optional(key, |key| word(key))
}

fn print_edit((family, edit): &(String, Edit)) -> String {
    let family = word(family.as_bytes());
    match edit {
        Edit::Put { key, value } => format!("{family} put {} {}", word(key), word(value)),
        Edit::PutEntity { key, value } => format!("{family} entity {} {}", word(key), word(value)),
        Edit::Delete { key } => format!("{family} delete {}", word(key)),
        Edit::SingleDelete { key } => format!("{family} single-delete {}", word(key)),
        Edit::Merge { key, operand } => format!("{family} merge {} {}", word(key), word(operand)),
        Edit::DeleteRange { begin, end } => {
            format!("{family} delete-range {} {}", word(begin), word(end))
        }
    }
}

fn print_move(step: &Move) -> String {
    match step {
        Move::First => " first".to_string(),
        Move::Last => " last".to_string(),
        Move::Seek(key) => format!(" seek {}", word(key)),
        Move::Back(key) => format!(" back {}", word(key)),
        Move::Next => " next".to_string(),
        Move::Prev => " prev".to_string(),
    }
}

fn print_compaction(options: &CompactRangeOptions) -> String {
    let default = CompactRangeOptions::default();
    let mut text = String::new();
    let mut add = |differs: bool, name: &str, value: &dyn fmt::Display| {
        if differs {
            let _ = write!(text, " {name}={value}");
        }
    };
    add(options.exclusive_manual_compaction, "exclusive", &true);
    add(options.allow_write_stall, "stall", &true);
    let rewrite = options.bottommost_level_compaction;
    add(rewrite != default.bottommost_level_compaction, "rewrite", &name_of(&REWRITES, &rewrite));
    let collect = options.blob_garbage_collection_policy;
    add(
        collect != default.blob_garbage_collection_policy,
        "collect",
        &name_of(&COLLECTIONS, &collect),
    );
    let cutoff = options.blob_garbage_collection_age_cutoff;
    add(cutoff != default.blob_garbage_collection_age_cutoff, "cutoff", &cutoff);
    add(options.change_level, "change", &true);
    add(options.target_level != default.target_level, "level", &options.target_level);
    add(options.target_path_id > 0, "path", &options.target_path_id);
    add(options.max_subcompactions > 0, "parts", &options.max_subcompactions);
    text
}

fn print_compact_files(options: &CompactFilesOptions) -> String {
    let compression =
        options.compression.map(|kind| format!(" compression={}", name_of(&COMPRESSIONS, &kind)));
    let path = options.output_path_id.map(|path| format!(" path={path}"));
    let number = |name, number: u64| (number > 0).then(|| format!(" {name}={number}"));
    let limit = number("limit", options.output_file_size_limit);
    let parts = number("parts", options.max_subcompactions.into());
    let warmth = Some(options.output_temperature_override).filter(|warmth| warmth.is_known());
    let warmth = warmth.map(|it| format!(" temperature={}", name_of(Temperature::NAMES, &it)));
    [compression, limit, path, warmth, parts].into_iter().flatten().collect()
}

impl Operation {
    /// Of those that read a family, as of now or of a snapshot.
    fn fmt_of_reading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family_word = |family: &String| word(family.as_bytes());
        match self {
            Self::Get { family, snapshot, only_cached, keys } => {
                let from = if *only_cached { "cached" } else { "any" };
                let snapshot = optional(snapshot, usize::to_string);
                write!(f, " {from} {} {snapshot}", family_word(family))?;
                keys.iter().try_for_each(|key| write!(f, " {}", word(key)))
            }
            Self::PrefixScan { family, snapshot, key } => {
                let snapshot = optional(snapshot, usize::to_string);
                write!(f, " {} {snapshot} {}", family_word(family), word(key))
            }
            Self::OpenIterator { family, snapshot, lower, upper }
            | Self::OpenScan { family, snapshot, lower, upper } => {
                let snapshot = optional(snapshot, usize::to_string);
                let (lower, upper) = (optional_key(lower), optional_key(upper));
                write!(f, " {} {snapshot} {lower} {upper}", family_word(family))
            }
            other => unreachable!("{} reads no family", other.kind()),
        }
    }

    /// Of those that change a family's tables.
    fn fmt_of_tree(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family_word = |family: &String| word(family.as_bytes());
        match self {
            Self::Flush { family, options } => {
                let default = FlushOptions::default();
                let no_wait = if options.wait == default.wait { "" } else { " wait=false" };
                let stall = if options.allow_write_stall { " stall=true" } else { "" };
                write!(f, " {}{no_wait}{stall}", family_word(family))
            }
            Self::CompactRange { family, begin, end, options } => {
                let (begin, end) = (optional_key(begin), optional_key(end));
                write!(f, " {} {begin} {end}{}", family_word(family), print_compaction(options))
            }
            Self::CompactFiles { family, level, tables, options } => {
                write!(f, " {} {level}", family_word(family))?;
                tables.iter().try_for_each(|table| write!(f, " {table}"))?;
                f.write_str(&print_compact_files(options))
            }
            Self::SuggestCompaction { family, begin, end } => {
                write!(f, " {} {} {}", family_word(family), optional_key(begin), optional_key(end))
            }
            Self::DeleteFiles { family, begin, end, include_end } => {
                let (begin, end) = (word(begin), word(end));
                write!(f, " {} {begin} {} {end}", family_word(family), name_of(&ENDS, include_end))
            }
            other => unreachable!("{} changes no tables of a family", other.kind()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        let family_word = |family: &String| word(family.as_bytes());
        match self {
            Self::Write { durability, edits } => {
                let edits: Vec<_> = edits.iter().map(print_edit).collect();
                write!(f, " {} {}", name_of(&DURABILITIES, durability), edits.join(" ; "))
            }
            Self::PutStream { durability, family, key, buffer, pieces } => {
                let (durability, family) =
                    (name_of(&DURABILITIES, durability), family_word(family));
                write!(f, " {durability} {family} {} {buffer}", word(key))?;
                pieces.iter().try_for_each(|piece| write!(f, " {}", word(piece)))
            }
            Self::Get { .. }
            | Self::PrefixScan { .. }
            | Self::OpenIterator { .. }
            | Self::OpenScan { .. } => self.fmt_of_reading(f),
            Self::NextBatch { index, from, max_entries } => {
                write!(f, " {index} {} {max_entries}", optional_key(from))
            }
            Self::MoveIterator { index, moves } => {
                write!(f, " {index}")?;
                moves.iter().try_for_each(|step| f.write_str(&print_move(step)))
            }
            Self::SetOptions { family, changes } => {
                write!(f, " {}", optional(family, family_word))?;
                changes.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
            }
            Self::Reopen(settings) => {
                settings.iter().try_for_each(|setting| write!(f, " {setting}"))
            }
            Self::Crash { power, back } => match power {
                Power::Kept => write!(f, " kept {back}"),
                Power::Lost => write!(f, " lost {back}"),
                Power::Random(seed) => write!(f, " {seed} {back}"),
            },
            Self::DropSnapshot(number)
            | Self::DropIterator(number)
            | Self::RefreshIterator(number)
            | Self::Background(number) => write!(f, " {number}"),
            Self::Pass(seconds) => write!(f, " {seconds}"),
            Self::CreateFamilies(families) => {
                families.iter().try_for_each(|family| write!(f, " {}", family_word(family)))
            }
            Self::DropFamily(family) => write!(f, " {}", family_word(family)),
            Self::Flush { .. }
            | Self::CompactRange { .. }
            | Self::CompactFiles { .. }
            | Self::SuggestCompaction { .. }
            | Self::DeleteFiles { .. } => self.fmt_of_tree(f),
            Self::Begin { .. }
            | Self::GoOn { .. }
            | Self::Commit { .. }
            | Self::Abandon(_)
            | Self::Prepare { .. }
            | Self::Decide { .. } => self.fmt_of_transaction(f),
            Self::TakeSnapshot
            | Self::FlushAll
            | Self::Checkpoint
            | Self::Idle
            | Self::ReadOnly
            | Self::SyncWal
            | Self::FlushWal
            | Self::Check => Ok(()),
        }
    }
}

/// The words of a line that have not been read yet.
struct Words<'a> {
    rest: std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>,
}

impl<'a> Words<'a> {
    fn text(&mut self) -> Result<&'a str, String> {
        self.rest.next().ok_or_else(|| "the line ends too early".to_string())
    }

    fn key(&mut self) -> Result<Vec<u8>, String> {
        bytes(self.text()?)
    }

    fn name(&mut self) -> Result<String, String> {
        String::from_utf8(self.key()?).map_err(|_| "a name that is not text".to_string())
    }

    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        let text = self.text()?;
        text.parse().map_err(|_| format!("'{text}' is no number"))
    }

    /// `None` for a lone minus.
    fn optional<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        if self.rest.next_if_eq(&"-").is_some() { Ok(None) } else { read(self).map(Some) }
    }

    /// As many as there are.
    fn all<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut found = Vec::new();
        while self.rest.peek().is_some() {
            found.push(read(self)?);
        }
        Ok(found)
    }

    fn edit(&mut self) -> Result<(String, Edit), String> {
        self.rest.next_if_eq(&";");
        let family = self.name()?;
        let edit = match self.text()? {
            "put" => Edit::Put { key: self.key()?, value: self.key()? },
            "entity" => Edit::PutEntity { key: self.key()?, value: self.key()? },
            "delete" => Edit::Delete { key: self.key()? },
            "single-delete" => Edit::SingleDelete { key: self.key()? },
            "merge" => Edit::Merge { key: self.key()?, operand: self.key()? },
            "delete-range" => Edit::DeleteRange { begin: self.key()?, end: self.key()? },
            unknown => return Err(format!("'{unknown}' is no kind of edit")),
        };
        Ok((family, edit))
    }

    fn step(&mut self) -> Result<Move, String> {
        Ok(match self.text()? {
            "first" => Move::First,
            "last" => Move::Last,
            "seek" => Move::Seek(self.key()?),
            "back" => Move::Back(self.key()?),
            "next" => Move::Next,
            "prev" => Move::Prev,
            unknown => return Err(format!("'{unknown}' is no move")),
        })
    }

    fn change(&mut self) -> Result<(String, String), String> {
        let text = self.text()?;
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("'{text}' is not name=value"))?;
        Ok((name.to_string(), value.to_string()))
    }

    fn compaction(&mut self) -> Result<CompactRangeOptions, String> {
        let mut options = CompactRangeOptions::default();
        for (name, value) in self.all(Self::change)? {
            let wrong = || format!("'{value}' is no number");
            match name.as_str() {
                "exclusive" => options.exclusive_manual_compaction = value == "true",
                "stall" => options.allow_write_stall = value == "true",
                "rewrite" => options.bottommost_level_compaction = named(&REWRITES, &value)?,
                "collect" => options.blob_garbage_collection_policy = named(&COLLECTIONS, &value)?,
                "cutoff" => {
                    options.blob_garbage_collection_age_cutoff =
                        value.parse().map_err(|_| wrong())?;
                }
                "change" => options.change_level = value == "true",
                "level" => options.target_level = value.parse().map_err(|_| wrong())?,
                "path" => options.target_path_id = value.parse().map_err(|_| wrong())?,
                "parts" => options.max_subcompactions = value.parse().map_err(|_| wrong())?,
                _ => return Err(format!("'{name}' is no option of a compaction")),
            }
        }
        Ok(options)
    }

    fn get(&mut self) -> Result<Operation, String> {
        Ok(Operation::Get {
            only_cached: named(&[("any", false), ("cached", true)], self.text()?)?,
            family: self.name()?,
            snapshot: self.optional(Self::number)?,
            keys: self.all(Self::key)?,
        })
    }

    fn compact_range(&mut self) -> Result<Operation, String> {
        let family = self.name()?;
        let (begin, end) = (self.optional(Self::key)?, self.optional(Self::key)?);
        Ok(Operation::CompactRange { family, begin, end, options: self.compaction()? })
    }

    fn put_stream(&mut self) -> Result<Operation, String> {
        Ok(Operation::PutStream {
            durability: named(&DURABILITIES, self.text()?)?,
            family: self.name()?,
            key: self.key()?,
            buffer: self.number()?,
            pieces: self.all(Self::key)?,
        })
    }

    fn compact_files(&mut self) -> Result<Operation, String> {
        let (family, level, mut tables) = (self.name()?, self.number()?, Vec::new());
        while self.rest.peek().is_some_and(|word| !word.contains('=')) {
            tables.push(self.number()?);
        }
        let mut options = CompactFilesOptions::default();
        for (name, value) in self.all(Self::change)? {
            let wrong = || format!("'{value}' is no number");
            match name.as_str() {
                "compression" => options.compression = Some(named(&COMPRESSIONS, &value)?),
                "limit" => options.output_file_size_limit = value.parse().map_err(|_| wrong())?,
                "path" => options.output_path_id = Some(value.parse().map_err(|_| wrong())?),
                "temperature" => {
                    options.output_temperature_override = named(Temperature::NAMES, &value)?;
                }
                "parts" => options.max_subcompactions = value.parse().map_err(|_| wrong())?,
                _ => return Err(format!("'{name}' is no option of a compaction of chosen tables")),
            }
        }
        Ok(Operation::CompactFiles { family, level, tables, options })
    }

    fn delete_files(&mut self) -> Result<Operation, String> {
        let (family, begin) = (self.name()?, self.key()?);
        let include_end = named(&ENDS, self.text()?)?;
        Ok(Operation::DeleteFiles { family, begin, end: self.key()?, include_end })
    }

    fn next_batch(&mut self) -> Result<Operation, String> {
        let (index, from) = (self.number()?, self.optional(Self::key)?);
        Ok(Operation::NextBatch { index, from, max_entries: self.number()? })
    }

    fn flush(&mut self) -> Result<Operation, String> {
        let family = self.name()?;
        let mut options = FlushOptions::default();
        for (name, value) in self.all(Self::change)? {
            match name.as_str() {
                "wait" => options.wait = value == "true",
                "stall" => options.allow_write_stall = value == "true",
                _ => return Err(format!("'{name}' is no option of a flush")),
            }
        }
        Ok(Operation::Flush { family, options })
    }

    fn crash(&mut self) -> Result<Operation, String> {
        let power = match self.text()? {
            "kept" => Power::Kept,
            "lost" => Power::Lost,
            seed => Power::Random(seed.parse().map_err(|_| format!("'{seed}' is no seed"))?),
        };
        Ok(Operation::Crash { power, back: self.number()? })
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = Words { rest: line.split_ascii_whitespace().peekable() };
        let read = match words.text()? {
            "write" => Self::Write {
                durability: named(&DURABILITIES, words.text()?)?,
                edits: words.all(Words::edit)?,
            },
            "put-stream" => words.put_stream()?,
            "get" => words.get()?,
            "prefix-scan" => Self::PrefixScan {
                family: words.name()?,
                snapshot: words.optional(Words::number)?,
                key: words.key()?,
            },
            "take-snapshot" => Self::TakeSnapshot,
            "drop-snapshot" => Self::DropSnapshot(words.number()?),
            "open-iterator" => Self::OpenIterator {
                family: words.name()?,
                snapshot: words.optional(Words::number)?,
                lower: words.optional(Words::key)?,
                upper: words.optional(Words::key)?,
            },
            "open-scan" => Self::OpenScan {
                family: words.name()?,
                snapshot: words.optional(Words::number)?,
                lower: words.optional(Words::key)?,
                upper: words.optional(Words::key)?,
            },
            "next-batch" => words.next_batch()?,
            "move-iterator" => {
                Self::MoveIterator { index: words.number()?, moves: words.all(Words::step)? }
            }
            "drop-iterator" => Self::DropIterator(words.number()?),
            "refresh-iterator" => Self::RefreshIterator(words.number()?),
            "flush" => words.flush()?,
            "flush-all" => Self::FlushAll,
            "compact-range" => words.compact_range()?,
            "compact-files" => words.compact_files()?,
            "suggest-compaction" => Self::SuggestCompaction {
                family: words.name()?,
                begin: words.optional(Words::key)?,
                end: words.optional(Words::key)?,
            },
            "delete-files" => words.delete_files()?,
            "set-options" => Self::SetOptions {
                family: words.optional(Words::name)?,
                changes: words.all(Words::change)?,
            },
            "create-families" => Self::CreateFamilies(words.all(Words::name)?),
            "drop-family" => Self::DropFamily(words.name()?),
            "checkpoint" => Self::Checkpoint,
            "reopen" => Self::Reopen(words.all(|words| words.text()?.parse())?),
            "read-only" => Self::ReadOnly,
            "background" => Self::Background(words.number()?),
            "idle" => Self::Idle,
            "pass" => Self::Pass(words.number()?),
            "sync-wal" => Self::SyncWal,
            "flush-wal" => Self::FlushWal,
            "crash" => words.crash()?,
            "check" => Self::Check,
            other => words.of_transaction(other)?,
        };
        match words.rest.next() {
            None => Ok(read),
            Some(more) => Err(format!("'{more}' is too much")),
        }
    }
}

#[cfg(test)]
mod tests;
