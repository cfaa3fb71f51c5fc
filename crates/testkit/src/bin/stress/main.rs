//! `stress`: random work by many threads on a database whose process is killed again and
//! again.
//!
//! The program is a supervisor. Each round is a process of its own ([`child`]): it opens the
//! database with random options, checks everything ([`verify`]) against notes kept outside of the
//! database ([`expected`]), and works ([`worker`]) until the supervisor kills it, or until it
//! closes the database. All choices follow from the seed ([`plan`]); what the threads make of them
//! depends on the moment, too.

#![expect(
    clippy::disallowed_methods,
    reason = "it stands outside of the engine: it starts and kills processes, keeps time and notes of its own"
)]

mod bank;
mod child;
mod contents;
mod counts;
mod expected;
mod failure;
mod fault;
mod files;
mod flags;
mod held;
mod keeper;
mod passing;
mod plan;
mod reads;
mod report;
mod room;
mod settings;
mod space;
mod supervisor;
mod value;
mod verify;
mod whole;
mod worker;
mod writes;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use testkit::Referee;

use self::counts::Totals;
use self::failure::Failure;
use self::flags::{Flags, RefereeUse};
use self::report::Summary;
use self::supervisor::Supervisor;

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("stress: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Runs the supervisor, or one of its rounds; whether no fault was found.
fn run(flags: &Flags) -> Result<bool, Failure> {
    if let Some(number) = flags.child {
        return child::run(flags, number).map(|()| true);
    }
    let nanoseconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    let process = std::process::id();
    let seed = flags.seed.unwrap_or(u64::from(nanoseconds) ^ u64::from(process) << 32);
    let temporary = std::env::temp_dir().join(format!("flagstone-stress-{process}-{seed}"));
    let config = flags.config(seed, flags.work.as_deref().unwrap_or(&temporary))?;
    files::claim(&config.work)?;
    files::claim(&config.root)?;
    let referee = match flags.referee {
        RefereeUse::Never => None,
        RefereeUse::Auto => Referee::find(),
        RefereeUse::Always => Some(Referee::find().ok_or_else(|| {
            Failure::Usage(
                "--referee always: ldb and sst_dump are not installed (rocksdb-tools)".to_string(),
            )
        })?),
    };
    let begun = Instant::now();
    let (totals, progress) = (Totals::default(), progress());
    let mut supervisor = Supervisor { flags, config, referee, totals, progress };
    let failed = match flags.repeat {
        Some(number) => supervisor.repeat(number)?,
        None => supervisor.run()?,
    };
    let Supervisor { config, totals, progress, .. } = supervisor;
    progress.finish_and_clear();
    if failed.is_none() && flags.repeat.is_none() {
        let removed = files::release(&config, flags.dir.is_none(), flags.work.is_none());
        removed.map_err(|error| Failure::io("remove the files of the stress test", error))?;
    }
    let is_sound = failed.is_none();
    let again = flags.again(&config);
    let summary =
        Summary { config: &config, totals: &totals, time: begun.elapsed(), failed, again };
    summary.print(flags.json)?;
    Ok(is_sound)
}

/// How far it is, on a terminal.
fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} rounds {elapsed} {msg}");
    let bar = ProgressBar::new_spinner();
    bar.set_style(style.expect("a template without mistakes"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
