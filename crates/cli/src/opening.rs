//! What a user sees of an opening that takes long.

use std::sync::{Arc, Mutex};

use flagstone::env::{Clock, Env};
use flagstone::options::{OpenProgress, OpenProgressCallback};

use crate::progress::Progress;

/// After so long somebody wonders.
const PATIENCE_US: u64 = 1_000_000;

/// Shows how far an opening is that begins now, from the second on that it takes.
pub fn shown(env: &Env) -> OpenProgressCallback {
    let opening = Opening::begins(env.clock.clone());
    let shown: Mutex<Option<(Stage, Progress)>> = Mutex::new(None);
    Arc::new(move |progress| {
        let Some(seen) = opening.look(progress) else { return };
        let Ok(mut shown) = shown.lock() else { return };
        if shown.as_ref().is_none_or(|(stage, _)| *stage != seen.stage) {
            *shown = Some((seen.stage, seen.stage.bar(seen.total)));
        }
        if let Some((_, bar)) = &*shown {
            bar.set(seen.done);
            bar.say(seen.message);
        }
    })
}

/// What takes the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Files,
    Wals,
}

impl Stage {
    fn bar(self, total: u64) -> Progress {
        match self {
            Self::Files => Progress::things(total, "files checked"),
            Self::Wals => Progress::bytes(total),
        }
    }
}

/// What is to be seen.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stage: Stage,
    done: u64,
    total: u64,
    message: String,
}

struct Opening {
    clock: Arc<dyn Clock>,
    began_us: u64,
}

impl Opening {
    fn begins(clock: Arc<dyn Clock>) -> Self {
        let began_us = clock.now_us();
        Self { clock, began_us }
    }

    /// Nothing, while nobody wonders.
    fn look(&self, progress: &OpenProgress) -> Option<Seen> {
        if self.clock.now_us().saturating_sub(self.began_us) < PATIENCE_US {
            return None;
        }
        if progress.wal_bytes_total == 0 {
            let (done, total) = (progress.files_checked, progress.files_total);
            return Some(Seen { stage: Stage::Files, done, total, message: String::new() });
        }
        let mut message = "replaying the WAL".to_string();
        for (count, what) in [
            (progress.tables_written, "tables written"),
            (progress.blobs_checked, "values checked"),
        ] {
            if count > 0 {
                message.push_str(&format!(", {count} {what}"));
            }
        }
        let (done, total) = (progress.wal_bytes_replayed, progress.wal_bytes_total);
        Some(Seen { stage: Stage::Wals, done, total, message })
    }
}

#[cfg(test)]
mod tests;
