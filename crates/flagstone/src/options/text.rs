//! Escapes and nesting in option text.
//!
//! ```text
//! escaped   '\\' before '\\', '#', ':'; line ends as "\\n" and "\\r"
//! pairs     name=value;name=value;...     a value may be a {...} that holds pairs itself
//! ```

use crate::base::{Error, Result};

/// What RocksDB writes for a component that is not there.
pub(super) fn null_text() -> String {
    "nullptr".to_string()
}

/// Escapes what would end or split a value.
pub fn escape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '\\' | '#' | ':' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ => out.push(c),
        }
    }
    out
}

/// The inverse of [`escape`].
pub fn unescape(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    let mut chars = escaped.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// The text within one pair of braces, or the text itself if it has none.
pub fn without_braces(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text).trim()
}

fn malformed(message: String) -> Error {
    Error::invalid_argument(message)
}

/// Splits `a=1;b={c=2;d=3};` into its pairs; a value that stood in braces keeps them.
///
/// # Errors
/// `InvalidArgument` saying what is malformed.
pub fn pairs(text: &str) -> Result<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(|| {
            malformed(format!("expected name=value pairs separated by ';', found '{rest}'"))
        })?;
        let name = name.trim();
        if name.is_empty() {
            return Err(malformed(format!("a name is missing before '={after}'")));
        }
        let end = element_end(after, b';')?;
        found.push((name, after[..end].trim()));
        rest = after[end..].trim_start_matches(';').trim_start();
    }
    Ok(found)
}

/// Splits `a:{b=1:2}:c` at the colons outside braces that have no backslash before them; an empty
/// text has no elements.
///
/// # Errors
/// `InvalidArgument` if the braces do not fit.
pub fn split_list(text: &str) -> Result<Vec<&str>> {
    let (mut elements, mut rest) = (Vec::new(), Some(text.trim()).filter(|text| !text.is_empty()));
    while let Some(text) = rest {
        let end = element_end(text, b':')?;
        elements.push(text[..end].trim());
        rest = text.get(end + 1..);
    }
    Ok(elements)
}

/// Where the element at the front of `text` ends: at the first `separator` outside braces.
fn element_end(text: &str, separator: u8) -> Result<usize> {
    let mut depth = 0usize;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => {
                escaped = false;
                continue;
            }
            b'\\' => escaped = true,
            b'{' => depth += 1,
            b'}' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| malformed(format!("'}}' without '{{' in '{text}'")))?;
            }
            _ if byte == separator && depth == 0 => return Ok(at),
            _ => {}
        }
    }
    if depth > 0 {
        Err(malformed(format!("'{{' without '}}' in '{text}'")))
    } else {
        Ok(text.len())
    }
}

/// The `candidate` nearest to `name` by edit distance, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance_max = (name.len() / 3).max(2);
    // No distance is smaller than the difference of the lengths.
    let near = candidates.filter(|candidate| candidate.len().abs_diff(name.len()) <= distance_max);
    let best = near.map(|candidate| (edit_distance(name, candidate), candidate)).min()?;
    (best.0 <= distance_max).then_some(best.1)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
