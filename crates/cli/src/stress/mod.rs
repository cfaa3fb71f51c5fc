//! `flagstone stress`: random work by many threads on a database whose process is killed again and
//! again.
//!
//! The command is a supervisor. Each round is a process of its own ([`child`]): it opens the
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

pub use flags::Flags;

use std::time::{Instant, SystemTime};

use testkit::Referee;

use self::counts::Totals;
use self::flags::RefereeUse;
use self::report::Summary;
use self::supervisor::Supervisor;
use crate::arguments::Common;
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::progress::Progress;

/// Runs the command, or one of its rounds.
pub fn run(flags: &Flags, common: &Common) -> Outcome {
    if let Some(number) = flags.child {
        return child::run(flags, common, number);
    }
    let nanoseconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    let process = std::process::id();
    let seed = flags.seed.unwrap_or(u64::from(nanoseconds) ^ u64::from(process) << 32);
    let temporary = std::env::temp_dir().join(format!("flagstone-stress-{process}-{seed}"));
    let config = flags.config(common, seed, flags.work.as_deref().unwrap_or(&temporary))?;
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
    let (totals, progress) = (Totals::default(), Progress::count("rounds"));
    let mut supervisor = Supervisor { flags, common, config, referee, totals, progress };
    let failed = match flags.repeat {
        Some(number) => supervisor.repeat(number)?,
        None => supervisor.run()?,
    };
    let Supervisor { config, totals, progress, .. } = supervisor;
    drop(progress);
    if failed.is_none() && flags.repeat.is_none() {
        let removed = files::release(&config, flags.dir.is_none(), flags.work.is_none());
        removed.map_err(|error| Failure::Stream("remove the files of the stress test", error))?;
    }
    let verdict = if failed.is_none() { Verdict::Sound } else { Verdict::Faulty };
    let again = flags.again(common, &config);
    let summary =
        Summary { config: &config, totals: &totals, time: begun.elapsed(), failed, again };
    reported(verdict, summary.print(common.json))
}
