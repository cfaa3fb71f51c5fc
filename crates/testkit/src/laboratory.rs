//! The laboratory's experiments by name, and the switch for deliberate breakages.

/// A search for faults that panics when it finds one.
pub struct Experiment {
    /// As in the documentation and on the command line.
    pub name: &'static str,
    /// Runs it at the size that the tests use.
    pub run: fn(),
}

/// What the tests run.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment { name: "books", run: crate::audit::books },
    Experiment { name: "damage-cuts", run: crate::damage::cuts },
    Experiment { name: "damage-flips", run: crate::damage::flips },
    Experiment { name: "damage-losses", run: crate::damage::losses },
    Experiment { name: "failed-syncs", run: crate::unseen::failed_syncs },
    Experiment { name: "fuzz-databases", run: crate::fuzz::smoke_databases },
    Experiment { name: "fuzz-decoders", run: crate::fuzz::smoke_decoders },
];

/// Turns on the breakage that the environment variable `FLAGSTONE_MUTANT` names, if any.
///
/// # Panics
/// If it names none that exists, or if this build has no breakages.
pub fn begin() {
    let Some(name) = std::env::var_os("FLAGSTONE_MUTANT") else { return };
    turn_on(&name.to_string_lossy());
}

#[cfg(feature = "mutants")]
fn turn_on(name: &str) {
    use flagstone::base::mutant;
    let known = mutant::ALL.iter().find(|(_, known, _)| *known == name);
    mutant::turn_on(known.unwrap_or_else(|| panic!("no mutant is called {name}")).0);
}

#[cfg(not(feature = "mutants"))]
fn turn_on(name: &str) {
    panic!("mutant {name}: this build has none; build with the feature `mutants`");
}
