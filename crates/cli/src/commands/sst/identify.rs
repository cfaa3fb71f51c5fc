//! What kind of table a file is.

use std::path::Path;

use flagstone::env::Env;
use flagstone::sst::TableKind;
use serde_json::json;

use super::open::{Sight, claimed_kind, open_listed, open_named};
use crate::arguments::Common;
use crate::failure::{Failure, Verdict};
use crate::json;
use crate::output::Output;
use crate::text;

/// Says of a file what it is, in one line.
pub(super) fn one(
    env: &Env,
    path: &Path,
    is_listed: bool,
    common: &Common,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let found = look(env, path, is_listed)?;
    output.line(if common.json {
        let mut facts = json!({ "kind": found.kind, "sound": found.verdict == Verdict::Sound });
        json::tell_path(&mut facts, "file", Some(path));
        if let Some(version) = found.format_version {
            facts["format_version"] = json!(version);
        }
        if let Some(fault) = &found.fault {
            facts["fault"] = json!(fault);
        }
        facts.to_string()
    } else {
        let kind = match (found.kind, &found.fault) {
            (Some(kind), _) => format!("{kind} table"),
            (None, None) => "not a table".to_string(),
            (None, Some(_)) => "unknown".to_string(),
        };
        let version =
            found.format_version.map_or(String::new(), |known| format!(", format_version {known}"));
        let fault = found.fault.map_or(String::new(), |fault| format!(": {fault}"));
        format!("{}: {kind}{version}{fault}", text::path(path))
    })?;
    Ok(found.verdict)
}

/// What a file is.
struct Found {
    /// None for one that is no table.
    kind: Option<&'static str>,
    format_version: Option<u32>,
    fault: Option<String>,
    verdict: Verdict,
}

fn look(env: &Env, path: &Path, is_listed: bool) -> Result<Found, Failure> {
    // What cannot be read is told as that.
    let kind = claimed_kind(env, path)?;
    let name = match kind {
        None => None,
        Some(TableKind::BlockBased) => Some("block-based"),
        Some(TableKind::Plain) => Some("plain"),
        Some(TableKind::Cuckoo) => Some("cuckoo"),
    };
    let is = |format_version, fault: Option<String>, verdict| Found {
        kind: name,
        format_version,
        fault,
        verdict,
    };
    Ok(match kind {
        Some(TableKind::BlockBased) => {
            let opened = if is_listed {
                open_listed(env, path)
            } else {
                open_named(env, path).map(Sight::Table)
            };
            match opened {
                Ok(Sight::Table(opened)) => {
                    is(Some(opened.table.footer().format_version), None, Verdict::Sound)
                }
                Ok(Sight::Nothing(why)) => is(None, Some(why.to_string()), Verdict::Sound),
                Err(error) => is(None, Some(error.to_string()), Verdict::Faulty),
            }
        }
        // Flagstone does not read it, so nothing is known of what it holds.
        Some(_) => is(None, Some("only RocksDB reads it".to_string()), Verdict::Sound),
        None => is(None, None, Verdict::Faulty),
    })
}
