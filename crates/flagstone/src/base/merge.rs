//! Merge operators: how a base value and the operands written onto it become one value.
//!
//! Operands are always passed oldest first. An operator must be deterministic, and a partial merge
//! must not change what a later full merge returns: readers, flushes and compactions group the
//! operands differently.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::error::{Error, Result, SubCode};
use super::hex::from_hex;
use super::key::key_in_words;
use super::perf::{self, PerfMetric};
use super::wide_columns::WideColumns;

/// How a failed full merge in a flush or compaction is treated. In either case the operands and the
/// value below them stay unmerged, and only a reader of the key gets the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeFailureScope {
    /// As a fault of the key, listed in `Db::key_faults`.
    #[default]
    TryMerge,
    /// As expected, and not listed.
    MustMerge,
}

/// What operands are merged into.
#[derive(Debug, Clone, Copy)]
pub enum MergeBase<'a> {
    /// The key does not exist.
    Nothing,
    /// A plain value.
    Value(&'a [u8]),
    /// An entity's columns.
    Columns(&'a WideColumns),
}

/// What a merge of columns comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// A plain value.
    Value(Vec<u8>),
    /// An entity: names and values, in any order, no name twice.
    Columns(Vec<(Vec<u8>, Vec<u8>)>),
}

/// Combines the merge operands of a key.
pub trait MergeOperator: Any + Send + Sync {
    /// Name stored in tables and in the OPTIONS file.
    fn name(&self) -> &str;

    /// Option text that recreates the operator; by default its name.
    fn option_text(&self) -> String {
        self.name().to_owned()
    }

    /// Combines all `operands` with the existing value, if any; `None` if the operands are invalid.
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>>;

    /// Whether [`MergeOperator::full_merge_columns`] is called. Otherwise operands are merged into
    /// an entity's default column, which counts as empty if there is none; other columns stay.
    fn merges_columns(&self) -> bool {
        false
    }

    /// Combines all `operands` with the existing value or entity, if any; `None` if the operands
    /// are invalid, or the result has a column twice. Called in place of
    /// [`MergeOperator::full_merge`] if [`MergeOperator::merges_columns`] says so. All columns of
    /// an entity are read for it, also from blob files.
    #[doc(alias = "FullMergeV3")]
    fn full_merge_columns(
        &self,
        key: &[u8],
        existing: MergeBase<'_>,
        operands: &[&[u8]],
    ) -> Option<Merged> {
        let existing = match existing {
            MergeBase::Nothing => None,
            MergeBase::Value(value) => Some(value),
            MergeBase::Columns(columns) => Some(columns.get("").unwrap_or_default()),
        };
        self.full_merge(key, existing, operands).map(Merged::Value)
    }

    /// Combines adjacent operands into one; `None` if they cannot be combined.
    fn partial_merge(&self, _key: &[u8], _operands: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }

    /// Whether [`MergeOperator::partial_merge`] is useful for a single operand.
    fn allows_single_operand(&self) -> bool {
        false
    }

    /// How a failed [`MergeOperator::full_merge`] in a flush or compaction is treated.
    fn failure_scope(&self) -> MergeFailureScope {
        MergeFailureScope::TryMerge
    }

    /// The error if [`MergeOperator::full_merge`] returns `None` for `operand_count` operands of
    /// `key`.
    fn refusal(&self, key: &[u8], operand_count: usize) -> Error {
        Error::corruption(format!(
            "merge operator '{}' refused the {operand_count} operands of key '{}'",
            self.name(),
            key_in_words(key)
        ))
    }
}

impl fmt::Debug for dyn MergeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.option_text())
    }
}

/// Runs a full merge; `None` becomes an error.
///
/// # Errors
/// [`MergeOperator::refusal`], usually `Corruption`, with [`SubCode::MergeOperatorFailed`] if the
/// operator refuses its operands.
pub fn full_merge(
    operator: &dyn MergeOperator,
    key: &[u8],
    existing: Option<&[u8]>,
    operands: &[&[u8]],
) -> Result<Vec<u8>> {
    let time = perf::time(PerfMetric::MergeOperatorTimeNanos);
    let merged = operator.full_merge(key, existing, operands);
    drop(time);
    merged.ok_or_else(|| refused(operator, key, operands.len()))
}

/// The error for operands that an operator refuses.
pub(crate) fn refused(operator: &dyn MergeOperator, key: &[u8], operand_count: usize) -> Error {
    operator.refusal(key, operand_count).with_subcode(SubCode::MergeOperatorFailed)
}

/// Creates the operator that an option text names. The text is a nickname (`uint64add`), a name
/// (`UInt64AddOperator`), a name with its delimiter (`StringAppendOperator:,`), or a name with
/// properties (`{id=StringAppendOperator;delimiter=,;}`). `nullptr` means none.
///
/// # Errors
/// `NotSupported` for an operator that is not built in; `InvalidArgument` for an unknown property.
pub fn merge_operator_from_option_text(text: &str) -> Result<Option<Arc<dyn MergeOperator>>> {
    let parsed = OperatorText::parse(text);
    let no_delimiter = || match &parsed.delimiter {
        None => Ok(()),
        Some(_) => Err(Error::invalid_argument(format!(
            "merge operator '{}' has no delimiter",
            parsed.name
        ))),
    };
    let delimiter = || parsed.delimiter.clone().unwrap_or_else(|| b",".to_vec());
    let operator: Arc<dyn MergeOperator> = match parsed.name {
        "" | "nullptr" => return no_delimiter().map(|()| None),
        "stringappend" | StringAppendOperator::NAME => {
            Arc::new(StringAppendOperator::new(delimiter()))
        }
        "stringappendtest" | StringAppendOperator::TEST_NAME => {
            Arc::new(StringAppendOperator::without_partial_merge(delimiter()))
        }
        "uint64add" | UInt64AddOperator::NAME => {
            no_delimiter().map(|()| Arc::new(UInt64AddOperator))?
        }
        "max" | MaxOperator::NAME => no_delimiter().map(|()| Arc::new(MaxOperator))?,
        "put" | "put_v1" | PutOperator::NAME => no_delimiter().map(|()| Arc::new(PutOperator))?,
        "bytesxor" | BytesXor::NAME => no_delimiter().map(|()| Arc::new(BytesXor))?,
        unknown => {
            return Err(Error::not_supported(format!(
                "merge operator '{unknown}' is not built in; supply it from the program that opens the database"
            )));
        }
    };
    match parsed.other_property {
        None => Ok(Some(operator)),
        Some(property) => Err(Error::invalid_argument(format!(
            "merge operators have no property '{property}' (in '{text}')"
        ))),
    }
}

/// The name of the operator that an option text is about, built in or not.
pub(crate) fn merge_operator_name(text: &str) -> &str {
    OperatorText::parse(text).name
}

/// An option text taken apart.
struct OperatorText<'a> {
    name: &'a str,
    delimiter: Option<Vec<u8>>,
    /// The first property that no built-in operator has.
    other_property: Option<&'a str>,
}

impl<'a> OperatorText<'a> {
    fn parse(text: &'a str) -> Self {
        let text = text.trim();
        let mut parsed = Self { name: text, delimiter: None, other_property: None };
        let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            if let Some((name, delimiter)) = text.split_once(':') {
                (parsed.name, parsed.delimiter) = (name, Some(unescape(delimiter)));
            }
            return parsed;
        };
        parsed.name = "";
        for property in split_properties(inner) {
            match property.split_once('=') {
                Some(("id", name)) => parsed.name = name.trim(),
                Some(("delimiter" | "delim", delimiter)) => {
                    parsed.delimiter = Some(unescape(delimiter))
                }
                Some(("delimiter_hex", digits)) if from_hex(digits).is_some() => {
                    parsed.delimiter = from_hex(digits);
                }
                _ => parsed.other_property = parsed.other_property.or(Some(property)),
            }
        }
        parsed
    }
}

/// Splits `a=1;b={x;y};` at the semicolons outside braces; blank parts are left out.
fn split_properties(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts.into_iter().map(str::trim_start).collect()
}

/// Undoes the braces and backslashes that protect special characters in option texts.
fn unescape(text: &str) -> Vec<u8> {
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match (byte, if byte == b'\\' { bytes.next() } else { None }) {
            (_, Some(b'n')) => b'\n',
            (_, Some(b'r')) => b'\r',
            (_, Some(escaped)) => escaped,
            (plain, None) => plain,
        });
    }
    out
}

/// Puts backslashes before what ends or divides an option text.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '#' | ':' => out.extend(['\\', character]),
            plain => out.push(plain),
        }
    }
    if out.contains(';') { format!("{{{out}}}") } else { out }
}

/// Joins the value and the operands with a delimiter between them.
#[derive(Debug, Clone)]
pub struct StringAppendOperator {
    delimiter: Vec<u8>,
    name: &'static str,
}

impl StringAppendOperator {
    const NAME: &'static str = "StringAppendOperator";
    const TEST_NAME: &'static str = "StringAppendTESTOperator";

    /// An operator that puts `delimiter` between the parts.
    pub fn new(delimiter: impl Into<Vec<u8>>) -> Self {
        Self { delimiter: delimiter.into(), name: Self::NAME }
    }

    /// `StringAppendTESTOperator`: the same results, but operands are never merged among
    /// themselves.
    pub fn without_partial_merge(delimiter: impl Into<Vec<u8>>) -> Self {
        Self { delimiter: delimiter.into(), name: Self::TEST_NAME }
    }

    fn join<'a>(&self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
        let size = parts.clone().map(|part| part.len() + self.delimiter.len()).sum();
        let mut joined = Vec::with_capacity(size);
        for (index, part) in parts.enumerate() {
            if index > 0 {
                joined.extend_from_slice(&self.delimiter);
            }
            joined.extend_from_slice(part);
        }
        joined
    }
}

impl MergeOperator for StringAppendOperator {
    fn name(&self) -> &str {
        self.name
    }

    fn option_text(&self) -> String {
        // RocksDB refuses a property that it does not know: better than that it reads another
        // delimiter, and merges with it.
        let hex = || self.delimiter.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let delimiter = match std::str::from_utf8(&self.delimiter) {
            Ok(text) if !text.contains(['{', '}']) => format!("delimiter={}", escape(text)),
            _ => format!("delimiter_hex={}", hex()),
        };
        format!("{{id={};{delimiter};}}", self.name)
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        Some(self.join(existing.into_iter().chain(operands.iter().copied())))
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        (self.name == Self::NAME).then(|| self.join(operands.iter().copied()))
    }
}

/// Adds fixed64 numbers modulo 2^64; anything that is not eight bytes long counts as 0.
#[derive(Debug, Clone, Copy)]
pub struct UInt64AddOperator;

impl UInt64AddOperator {
    const NAME: &'static str = "UInt64AddOperator";
}

impl MergeOperator for UInt64AddOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let parts = existing.into_iter().chain(operands.iter().copied());
        Some(parts.map(number).fold(0, u64::wrapping_add).to_le_bytes().to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

/// Keeps the bytewise largest.
#[derive(Debug, Clone, Copy)]
pub struct MaxOperator;

impl MaxOperator {
    const NAME: &'static str = "MaxOperator";
}

impl MergeOperator for MaxOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let largest = existing.into_iter().chain(operands.iter().copied()).max();
        Some(largest.unwrap_or_default().to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

/// Keeps the newest operand.
#[derive(Debug, Clone, Copy)]
pub struct PutOperator;

impl PutOperator {
    const NAME: &'static str = "PutOperator";
}

impl MergeOperator for PutOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        Some(operands.last().copied().or(existing).unwrap_or_default().to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

/// Exclusive-or of all; what the longer one has beyond the shorter one is kept.
#[derive(Debug, Clone, Copy)]
pub struct BytesXor;

impl BytesXor {
    const NAME: &'static str = "BytesXOR";
}

impl MergeOperator for BytesXor {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let mut result = existing.unwrap_or_default().to_vec();
        for operand in operands {
            let shared = result.len().min(operand.len());
            result.iter_mut().zip(*operand).for_each(|(byte, with)| *byte ^= with);
            result.extend_from_slice(&operand[shared..]);
        }
        Some(result)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

#[cfg(test)]
mod tests;
