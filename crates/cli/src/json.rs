//! Bytes in JSON: text as it is, because JSON can carry all of it; bytes that are not UTF-8 in
//! base64, under a name that says so.

use std::path::Path;

use serde_json::{Value, json};

use crate::text::{Notation, hex};

/// What marks the name of a member in base64.
const MARK: &str = "_base64";

/// How bytes stand in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As they are: they are UTF-8.
    Text,
    /// In base64: they are not.
    Base64,
    /// In hexadecimal, as `--hex` asks.
    Hex,
}

impl Form {
    /// The form of these bytes.
    pub fn of(bytes: &[u8], notation: Notation) -> Self {
        match notation {
            Notation::Hex => Self::Hex,
            Notation::Plain if str::from_utf8(bytes).is_ok() => Self::Text,
            Notation::Plain => Self::Base64,
        }
    }

    /// The member's name.
    pub fn name(self, name: &str) -> String {
        if self == Self::Base64 { format!("{name}{MARK}") } else { name.to_string() }
    }

    /// The bytes as a text for JSON.
    pub fn text(self, bytes: &[u8]) -> String {
        match self {
            Self::Text => String::from_utf8_lossy(bytes).into_owned(),
            Self::Base64 => base64(bytes),
            Self::Hex => hex(bytes),
        }
    }
}

/// Adds bytes to an object.
///
/// # Panics
/// If `object` is none.
pub fn tell(object: &mut Value, name: &str, bytes: &[u8], notation: Notation) {
    let form = Form::of(bytes, notation);
    object[form.name(name)] = json!(form.text(bytes));
}

/// Adds a path to an object; null where there is none.
pub fn tell_path(object: &mut Value, name: &str, path: Option<&Path>) {
    match path {
        Some(path) => tell(object, name, path.as_os_str().as_encoded_bytes(), Notation::Plain),
        None => object[name] = Value::Null,
    }
}

/// A path in a list: a text, or an object with its base64.
pub fn path(path: &Path) -> Value {
    value(path.as_os_str().as_encoded_bytes())
}

/// Bytes that have no name of their own: a text, or an object with their base64.
pub fn value(bytes: &[u8]) -> Value {
    match Form::of(bytes, Notation::Plain) {
        Form::Text => json!(Form::Text.text(bytes)),
        _ => json!({ "base64": base64(bytes) }),
    }
}

/// Base64 with the usual alphabet and padding (RFC 4648, section 4).
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let is_there = digit <= three.len();
            let index = (bits >> (18 - 6 * digit) & 0x3f) as usize;
            text.push(if is_there { DIGITS[index] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests;
