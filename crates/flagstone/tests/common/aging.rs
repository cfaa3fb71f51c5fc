//! A database in a directory of its own, whose time passes by hand.

use std::path::PathBuf;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::Options;
use testkit::HandClock;

use crate::common::{create, temporary};

/// When it begins, in seconds since 1970.
pub const BEGIN: u64 = 1_700_000_000;

pub struct World {
    directory: tempfile::TempDir,
    pub time: Arc<HandClock>,
}

impl World {
    pub fn new() -> Self {
        Self { directory: temporary(), time: Arc::new(HandClock::at(BEGIN)) }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("db")
    }

    /// These options, for a database that is created if it is missing.
    pub fn options(&self, text: &str) -> Options {
        let mut options = create();
        options.set_all(text).expect("options");
        options.env = Env { clock: self.time.clone(), ..Env::os() };
        options
    }

    pub fn open(&self, text: &str) -> Db {
        Db::open(self.path(), &self.options(text)).expect("a database")
    }
}
