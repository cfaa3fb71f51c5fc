//! Reads traces from files.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use clap::ValueEnum;
use flagstone::base::{Error, Result};
use flagstone::trace::{BlockAccess, RECORD_HEADER_SIZE, RawRecord};

use crate::input::Input;
use crate::progress::Progress;

use super::trace::{Builder, Trace};

/// How a trace is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// `time,key,size[,op]`, one request a line; a first line of names is passed over.
    Csv,
    /// 24 bytes a request, little-endian: u32 time, u64 key, u32 size, i64 next use.
    Oracle,
    /// RocksDB's traces of the block cache.
    Rocksdb,
}

const RECORD_SIZE: usize = 24;
/// A trace of RocksDB's block cache begins with a record of type 1, and that with these bytes.
const ROCKSDB_MAGIC: &[u8] = b"\x10feedcafedeadbeef";
const ROCKSDB_MAGIC_AT: usize = RECORD_HEADER_SIZE;
const ROCKSDB_START: usize = ROCKSDB_MAGIC_AT + ROCKSDB_MAGIC.len();
/// Longer lines are taken for something else than CSV.
const LINE_SIZE_MAX: u64 = 64 << 10;
/// Objects are smaller, in bytes: what all of them take can be counted.
const OBJECT_SIZE_MAX: u64 = 1 << 40;
const BUFFER_SIZE: usize = 1 << 20;
const ZSTD_MAGIC: [u8; 4] = 0xfd2f_b528u32.to_le_bytes();

/// Reads a trace.
///
/// # Errors
/// `IoError`, or `Corruption` naming the file and the place in it, which counts what Zstandard has
/// decompressed.
pub fn read(path: &Path, format: Option<Format>) -> Result<Trace> {
    let mut input = Input::open(path)?;
    let progress = Progress::of_stream(&input);
    let mut first = vec![0; ZSTD_MAGIC.len()];
    let mut filled = 0;
    while filled < first.len() {
        match input.next(&mut first[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    first.truncate(filled);
    let is_compressed = first == ZSTD_MAGIC;
    let stored =
        Stored { input: io::Cursor::new(first).chain(input), read: 0, progress: &progress };
    let mut input: Box<dyn BufRead + '_> = if is_compressed {
        let decoder = zstd::Decoder::new(stored).map_err(|error| damage(&error, 0).at(path))?;
        Box::new(BufReader::with_capacity(BUFFER_SIZE, decoder))
    } else {
        Box::new(BufReader::with_capacity(BUFFER_SIZE, stored))
    };
    let (start, format) = match format {
        Some(format) => (Vec::new(), format),
        None if is_csv(path) => (Vec::new(), Format::Csv),
        None => {
            let mut start = vec![0; ROCKSDB_START];
            let filled = fill(&mut *input, &mut start, 0).map_err(|error| error.at(path))?;
            start.truncate(filled);
            let is_rocksdb = start.get(ROCKSDB_MAGIC_AT..) == Some(ROCKSDB_MAGIC);
            (start, if is_rocksdb { Format::Rocksdb } else { Format::Oracle })
        }
    };
    let input = &mut io::Cursor::new(start).chain(input);
    let trace = match format {
        Format::Csv => read_csv(input),
        Format::Oracle => read_oracle(input),
        Format::Rocksdb => read_rocksdb(input),
    };
    trace.map_err(|error| error.at(path))
}

fn is_csv(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".zst").or_else(|| name.strip_suffix(".zstd")).unwrap_or(&name);
    plain.ends_with(".csv")
}

/// A stream whose progress is shown.
struct Stored<'a, R> {
    input: R,
    read: u64,
    progress: &'a Progress,
}

impl<R: Read> Read for Stored<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read += count as u64;
        self.progress.set(self.read);
        Ok(count)
    }
}

fn damage(error: &io::Error, offset: u64) -> Error {
    Error::corruption(format!("cannot read the trace: {error}")).at_offset(offset)
}

fn too_many(offset: u64) -> Error {
    Error::not_supported("a trace of more than 2^32 - 1 requests or 2^31 objects").at_offset(offset)
}

fn read_oracle(input: &mut dyn BufRead) -> Result<Trace> {
    let mut builder = Builder::default();
    let mut offset = 0;
    loop {
        let mut record = [0; RECORD_SIZE];
        let filled = fill(input, &mut record, offset)?;
        if filled == 0 {
            return Ok(builder.finish());
        }
        if filled < RECORD_SIZE {
            let message =
                format!("the trace ends within a request: {filled} of {RECORD_SIZE} bytes");
            return Err(Error::corruption(message).at_offset(offset));
        }
        let [_, _, _, _, key @ .., s0, s1, s2, s3, _, _, _, _, _, _, _, _] = record;
        if !builder.push(
            u64::from_le_bytes(key),
            u64::from(u32::from_le_bytes([s0, s1, s2, s3])),
            false,
        ) {
            return Err(too_many(offset));
        }
        offset += RECORD_SIZE as u64;
    }
}

/// Fills a buffer as far as the input goes.
fn fill(input: &mut dyn BufRead, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(damage(&error, offset)),
        }
    }
    Ok(filled)
}

/// A lookup that found nothing and was to insert nothing is no request: no cache would have had the
/// block.
fn read_rocksdb(input: &mut dyn BufRead) -> Result<Trace> {
    let mut builder = Builder::default();
    let mut offset = 0;
    let mut record = vec![0; RECORD_HEADER_SIZE];
    loop {
        record.resize(RECORD_HEADER_SIZE, 0);
        let filled = fill(input, &mut record, offset)?;
        let at = |error: Error| error.at_offset(offset);
        if filled == 0 && offset > 0 {
            return Ok(builder.finish());
        }
        let cut_off = || at(Error::corruption("the trace ends within a record"));
        let length = record.last_chunk().filter(|_| filled == record.len());
        let length = u32::from_le_bytes(*length.ok_or_else(cut_off)?);
        // Memory is taken for bytes that are there.
        let read = input.take(length.into()).read_to_end(&mut record);
        if read.map_err(|error| damage(&error, offset))? < length as usize {
            return Err(cut_off());
        }
        let raw = RawRecord::parse(&record).map_err(at)?;
        if offset == 0 {
            BlockAccess::check_header(&raw).map_err(at)?;
        } else {
            let access = BlockAccess::decode(&raw).map_err(at)?;
            let size = access.size;
            if size > OBJECT_SIZE_MAX {
                let message = format!("a block of {size} bytes; {OBJECT_SIZE_MAX} are the most");
                return Err(at(Error::corruption(message)));
            }
            let key = flagstone::base::hash::hash64(&access.block_key);
            let is_request = access.is_hit || !access.is_not_inserted;
            if is_request && !builder.push(key, size, false) {
                return Err(too_many(offset));
            }
        }
        offset += record.len() as u64;
    }
}

fn read_csv(input: &mut dyn BufRead) -> Result<Trace> {
    let mut builder = Builder::default();
    let mut line = Vec::new();
    let mut offset = 0;
    for number in 1u64.. {
        line.clear();
        let length = input
            .take(LINE_SIZE_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|error| damage(&error, offset))?;
        if length == 0 {
            break;
        }
        let fault =
            |what: String| Error::corruption(format!("line {number}: {what}")).at_offset(offset);
        if length as u64 == LINE_SIZE_MAX {
            return Err(fault(format!("more than {LINE_SIZE_MAX} bytes")));
        }
        let text = std::str::from_utf8(&line).map_err(|_| fault("not text".to_string()))?.trim();
        match parse_line(text) {
            Ok(Some((key, size, is_deletion))) => {
                if !builder.push(key, size, is_deletion) {
                    return Err(too_many(offset));
                }
            }
            Ok(None) => {}
            Err(_) if number == 1 && is_head(text) => {}
            Err(what) => return Err(fault(what)),
        }
        offset += length as u64;
    }
    Ok(builder.finish())
}

/// Whether a line holds names and no numbers.
fn is_head(line: &str) -> bool {
    line.split(',').all(|field| field.trim().parse::<f64>().is_err())
}

/// Key, size, and whether it is a deletion; nothing in an empty line.
fn parse_line(line: &str) -> std::result::Result<Option<(u64, u64, bool)>, String> {
    if line.is_empty() {
        return Ok(None);
    }
    let mut fields = line.split(',').map(str::trim);
    let (Some(time), Some(key), Some(size)) = (fields.next(), fields.next(), fields.next()) else {
        return Err("expected time,key,size or time,key,size,op".to_string());
    };
    let operation = fields.next().unwrap_or_default();
    if fields.next().is_some() {
        return Err("more than four fields".to_string());
    }
    if time.parse::<f64>().is_err() {
        return Err(format!("the time '{time}' is not a number"));
    }
    let size = size.parse().map_err(|_| format!("the size '{size}' is not a number of bytes"))?;
    if size > OBJECT_SIZE_MAX {
        return Err(format!("an object of {size} bytes; {OBJECT_SIZE_MAX} are the most"));
    }
    let is_deletion = operation.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("del"));
    Ok(Some((number_of(key), size, is_deletion)))
}

/// A key that is a number is that number; of another, a hash.
fn number_of(key: &str) -> u64 {
    key.parse().unwrap_or_else(|_| flagstone::base::hash::hash64(key.as_bytes()))
}
