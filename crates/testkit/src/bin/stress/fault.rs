//! What a round found wrong, and what merely stood in its way.

use std::fmt;
use std::io;

use flagstone::base::{Code, Error, SubCode};
use serde_json::{Value, json};

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// During what, and where.
    pub place: String,
    /// What had to be so; empty where that goes without saying.
    pub expected: String,
    /// What was so.
    pub found: String,
}

impl Fault {
    /// A difference.
    pub fn new(
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { place: place.into(), expected: expected.into(), found: found.into() }
    }

    /// An error where there should be none.
    pub fn error(place: impl Into<String>, error: impl fmt::Display) -> Self {
        Self::new(place, "", error.to_string())
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({ "place": self.place, "expected": self.expected, "found": self.found })
    }

    /// From JSON.
    pub fn from_json(json: &Value) -> Option<Self> {
        let text = |name: &str| json[name].as_str();
        Some(Self::new(text("place")?, text("expected")?, text("found")?))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  where:    {}", self.place)?;
        if !self.expected.is_empty() {
            writeln!(f, "  expected: {}", self.expected)?;
        }
        write!(f, "  found:    {}", self.found)
    }
}

/// Why an operation did not do what it was to.
#[derive(Debug)]
pub enum Trouble {
    /// The disk is full, which a database must survive.
    Full,
    /// The database was closed meanwhile.
    Closed,
    /// The engine is at fault.
    Fault(Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Fault(Fault::error("the stress test's own notes", error))
    }
}

/// The outcome of something that takes space.
pub fn written<T>(place: &str, outcome: Result<T, Error>) -> Result<T, Trouble> {
    outcome.map_err(|error| match (error.code(), error.subcode()) {
        (Code::ShutdownInProgress, _) => Trouble::Closed,
        (_, SubCode::NoSpace) => Trouble::Full,
        _ => Trouble::Fault(Fault::error(place, error)),
    })
}

/// The outcome of something that takes none: a full disk is no excuse.
pub fn read<T>(place: impl fmt::Display, outcome: Result<T, Error>) -> Result<T, Fault> {
    outcome.map_err(|error| Fault::error(place.to_string(), error))
}
