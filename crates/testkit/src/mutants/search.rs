//! The search for a deliberate fault in a process of its own.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use flagstone::env::Env;

use super::{Caught, REPLAY};
use crate::laboratory::{MUTANT, PATCH};

/// A search ends by itself when its lives are lived. One that takes longer hangs: this is many
/// times what the longest takes, since a slow and busy core must not make the difference.
const LIMIT: Duration = Duration::from_secs(1800);

/// How many searches run at once.
const SEARCHES: usize = 2;

/// Searches for the mutants of these rows, or those that `FLAGSTONE_MUTANTS` names
/// (`SkipBlobSync,ForgetSnapshots`). Given a row, `command` reports a fault by the marker and then
/// its words.
///
/// # Panics
/// With those that escaped.
pub fn search_all(
    rows: impl Iterator<Item = &'static Caught<'static>>,
    marker: &str,
    command: impl Fn(&Caught<'_>) -> Command + Sync,
) {
    let asked = std::env::var("FLAGSTONE_MUTANTS").unwrap_or_default();
    let is_asked = |name: &str| asked.is_empty() || asked.split(',').any(|asked| asked == name);
    let rows: Vec<&Caught<'_>> = rows.filter(|row| is_asked(row.mutant)).collect();
    let (next, escaped) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let clock = Env::os().clock;
    let take_rows = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = clock.now_us();
            let mut command = command(row);
            let sound = command.get_program().to_owned();
            let outcome = search(row, marker, command.env(MUTANT, row.mutant), sound.as_ref());
            let seconds = (clock.now_us() - begun) as f64 / 1e6;
            println!("{} by {:?}: {seconds:.1} s", row.mutant, row.by);
            if let Err(why) = outcome {
                escaped.lock().expect("no panic").push(format!("{}: {why}", row.mutant));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..SEARCHES {
            scope.spawn(take_rows);
        }
    });
    let escaped = escaped.into_inner().expect("no panic");
    assert!(escaped.is_empty(), "{} mutants escaped:\n{}", escaped.len(), escaped.join("\n\n"));
}

/// Searches for one mutant by a command that has it; `sound` is a laboratory without it.
///
/// # Errors
/// Why it is not caught.
///
/// # Panics
/// If the command cannot be run.
pub fn search(
    row: &Caught<'_>,
    marker: &str,
    command: &mut Command,
    sound: &Path,
) -> Result<(), String> {
    // Searches write down histories under the same names.
    let directory = tempfile::tempdir().expect("a place for findings");
    let mut child = command
        .env("TMPDIR", directory.path())
        .env_remove("FLAGSTONE_SEEDS")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let mut output = child.stdout.take().expect("it is piped");
    let (sender, said) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut text = Vec::new();
            let read =
                output.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned());
            sender.send(read).expect("somebody listens");
        });
        let Ok(said) = said.recv_timeout(LIMIT) else {
            child.kill().expect("it is running");
            child.wait().expect("it ends");
            return Err(format!("nothing was found within {LIMIT:?}"));
        };
        let status = child.wait().expect("it ends");
        let said = said.expect("what it said");
        // Behind the finding stand the meanings of markers, which may contain any words.
        let said = said.split("\nrare branches reached").next().unwrap_or_default();
        match said.split_once(marker).map(|(_, finding)| finding) {
            Some(finding) if row.words.split('|').any(|words| finding.contains(words)) => finding
                .split_once(REPLAY)
                .map_or(Ok(()), |(_, file)| replay(Command::new(sound), file)),
            Some(finding) => Err(format!("what was found is not '{}': {finding}", row.words)),
            None => Err(format!("nothing was found ({status}): {said}")),
        }
    })
}

/// Lives a history without any mutant, which must find nothing: else what was found is not the
/// mutant's doing. `file` is followed by the rest of the finding.
fn replay(mut laboratory: Command, file: &str) -> Result<(), String> {
    let file = file.lines().next().unwrap_or_default();
    let lived = laboratory
        .env_remove(MUTANT)
        .env_remove(PATCH)
        .args(["histories", "--replay", file])
        .output();
    let lived = lived.expect("a child");
    if lived.status.success() {
        Ok(())
    } else {
        Err(format!("found without it, too: {}", String::from_utf8_lossy(&lived.stdout)))
    }
}
