//! An internal key apart from any file, as an error or a hexadecimal dump shows it.

use std::ffi::OsStr;

use flagstone::base::InternalKey;
use serde_json::json;

use super::entries::type_name;
use crate::arguments::Common;
use crate::failure::{Failure, Outcome, Verdict};
use crate::json;
use crate::output::Output;
use crate::text::{Notation, from_hex};

/// Prints its parts.
pub(super) fn run(text: &OsStr, hex: bool, common: &Common) -> Outcome {
    let bytes = text.to_str().and_then(from_hex);
    let key = bytes.as_deref().and_then(InternalKey::parse);
    let Some(key) = key.filter(|key| key.value_type().is_some()) else {
        let text = text.as_encoded_bytes().escape_ascii();
        return Err(Failure::Usage(format!(
            "--parse-internal-key {text}: expected the hexadecimal digits of a key, and of 8 bytes with its type and \
             sequence number"
        )));
    };
    let notation = Notation::new(hex);
    let mut output = Output::new();
    output.line(if common.json {
        let mut facts = json!({ "sequence": key.sequence(), "type": type_name(key) });
        json::tell(&mut facts, "key", key.user_key(), notation);
        facts.to_string()
    } else {
        format!("{}\t{}\t{}", notation.show(key.user_key()), key.sequence(), type_name(key))
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}
