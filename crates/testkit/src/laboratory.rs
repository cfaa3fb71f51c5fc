//! The laboratory's experiments by name, and what turns a deliberate fault on.

use crate::transactions::{self, Kind};
use crate::{crash, fakes, narrow};

/// A search for faults that panics when it finds one.
pub struct Experiment {
    /// As in the documentation and on the command line.
    pub name: &'static str,
    /// Runs it at the size that the tests use.
    pub run: fn(),
}

/// What the tests run.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment { name: "books", run: narrow::books },
    Experiment { name: "conflicts", run: narrow::conflicts },
    Experiment { name: "copies", run: narrow::copies },
    Experiment { name: "crashes-blob-streams", run: || crash::experiment("blob-streams") },
    Experiment { name: "crashes-blobs-at-commit", run: || crash::experiment("blobs-at-commit") },
    Experiment { name: "crashes-blobs", run: || crash::experiment("blobs") },
    Experiment { name: "crashes-checkpoint", run: || crash::experiment("checkpoint") },
    Experiment { name: "crashes-compaction", run: || crash::experiment("compaction") },
    Experiment { name: "crashes-compressed", run: || crash::experiment("compressed") },
    Experiment { name: "crashes-creation", run: || crash::experiment("creation") },
    Experiment { name: "crashes-direct", run: || crash::experiment("direct") },
    Experiment { name: "crashes-families", run: || crash::experiment("families") },
    Experiment { name: "crashes-flush", run: || crash::experiment("flush") },
    Experiment { name: "crashes-flush-together", run: || crash::experiment("flush-together") },
    Experiment {
        name: "crashes-flush-together-blobs",
        run: || crash::experiment("flush-together-blobs"),
    },
    Experiment { name: "crashes-free-writers", run: || crash::experiment("free-writers") },
    Experiment { name: "crashes-encrypted", run: || crash::experiment("encrypted") },
    Experiment { name: "crashes-encrypted-holes", run: || crash::experiment("encrypted-holes") },
    Experiment { name: "crashes-encrypted-long", run: || crash::experiment("encrypted-long") },
    Experiment { name: "crashes-holes", run: || crash::experiment("holes") },
    Experiment { name: "crashes-log", run: || crash::experiment("log") },
    Experiment { name: "crashes-log-by-hand", run: || crash::experiment("log-by-hand") },
    Experiment {
        name: "crashes-log-by-hand-plain",
        run: || crash::experiment("log-by-hand-plain"),
    },
    Experiment { name: "crashes-log-plain", run: || crash::experiment("log-plain") },
    Experiment { name: "crashes-long", run: || crash::experiment("long") },
    Experiment { name: "crashes-options", run: || crash::experiment("options") },
    Experiment { name: "crashes-remote", run: || crash::experiment("remote") },
    Experiment { name: "crashes-paths", run: || crash::experiment("paths") },
    Experiment { name: "crashes-recycled", run: || crash::experiment("recycled") },
    Experiment { name: "crashes-recycled-plain", run: || crash::experiment("recycled-plain") },
    Experiment {
        name: "crashes-recycled-unlogged",
        run: || crash::experiment("recycled-unlogged"),
    },
    Experiment { name: "crashes-reopen", run: || crash::experiment("reopen") },
    Experiment { name: "crashes-reopen-kept", run: || crash::experiment("reopen-kept") },
    Experiment { name: "crashes-rollover", run: || crash::experiment("rollover") },
    Experiment { name: "crashes-subcompactions", run: || crash::experiment("subcompactions") },
    Experiment { name: "crashes-three-writers", run: || crash::experiment("three-writers") },
    Experiment {
        name: "crashes-three-writers-blobs",
        run: || crash::experiment("three-writers-blobs"),
    },
    Experiment {
        name: "crashes-three-writers-plain",
        run: || crash::experiment("three-writers-plain"),
    },
    Experiment { name: "crashes-transactions", run: || crash::experiment("transactions") },
    Experiment { name: "crashes-ingestion", run: || crash::experiment("ingestion") },
    Experiment { name: "crashes-ingestion-blobs", run: || crash::experiment("ingestion-blobs") },
    Experiment { name: "crashes-two-phase", run: || crash::experiment("two-phase") },
    Experiment { name: "crashes-two-writers", run: || crash::experiment("two-writers") },
    Experiment {
        name: "crashes-two-writers-plain",
        run: || crash::experiment("two-writers-plain"),
    },
    Experiment { name: "crashes-updates", run: || crash::experiment("updates") },
    Experiment { name: "crashes-updates-recycled", run: || crash::experiment("updates-recycled") },
    Experiment { name: "crashes-wal-dir", run: || crash::experiment("wal-dir") },
    Experiment { name: "crashes-wal-limit", run: || crash::experiment("wal-limit") },
    Experiment { name: "damage-cuts", run: crate::damage::cuts },
    Experiment { name: "damage-flips", run: crate::damage::flips },
    Experiment { name: "damage-losses", run: crate::damage::losses },
    Experiment { name: "doubtful-drops", run: narrow::doubtful_drops },
    Experiment { name: "failed-syncs", run: narrow::failed_syncs },
    Experiment { name: "faults-administration", run: crate::faults::administering },
    Experiment { name: "faults-by-hand", run: crate::faults::by_hand },
    Experiment { name: "faults-compactions", run: crate::faults::compacting },
    Experiment { name: "faults-recovery", run: crate::faults::recovering },
    Experiment { name: "faults-writing", run: crate::faults::writing },
    Experiment { name: "fuzz-databases", run: crate::fuzz::smoke_databases },
    Experiment { name: "fuzz-decoders", run: crate::fuzz::smoke_decoders },
    Experiment { name: "histories", run: || crate::history::experiment(0..40) },
    Experiment { name: "interruptions", run: narrow::interruptions },
    Experiment { name: "lost-names", run: narrow::lost_names },
    Experiment { name: "moved-levels", run: narrow::moved_levels },
    Experiment { name: "queues", run: narrow::queues },
    Experiment {
        name: "transactions-optimistic",
        run: || transactions::experiment(Kind::Optimistic, 0..4),
    },
    Experiment {
        name: "transactions-pessimistic",
        run: || transactions::experiment(Kind::Pessimistic, 0..4),
    },
    Experiment { name: "versions", run: narrow::straddling_versions },
];

/// The environment variable that names a switch of the engine or a [fake](crate::fakes).
pub const MUTANT: &str = "FLAGSTONE_MUTANT";

/// The environment variable that names the patch with which this program was built.
pub const PATCH: &str = "FLAGSTONE_PATCH";

/// Whether this process is to find a deliberate fault.
pub fn is_broken() -> bool {
    [MUTANT, PATCH].iter().any(|name| std::env::var_os(name).is_some())
}

/// Turns on the fault that the environment variable `FLAGSTONE_MUTANT` names, if any.
///
/// # Panics
/// If it names none that exists, or a switch of the engine and this build has none.
pub fn begin() {
    let Some(name) = std::env::var_os(MUTANT) else { return };
    let name = name.to_string_lossy();
    match fakes::ALL.iter().find(|(_, known, _)| *known == name) {
        Some((fake, ..)) => fakes::turn_on(*fake),
        None => turn_on(&name),
    }
}

#[cfg(feature = "mutants")]
fn turn_on(name: &str) {
    use flagstone::base::mutant;
    let known = mutant::ALL.iter().find(|(_, known, _)| *known == name);
    mutant::turn_on(known.unwrap_or_else(|| panic!("no mutant is called {name}")).0);
}

#[cfg(not(feature = "mutants"))]
fn turn_on(name: &str) {
    panic!("mutant {name}: this build has no switches; build with the feature `mutants`");
}
