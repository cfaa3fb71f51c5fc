//! What every part of a database is handed: where it is, how the world is reached, what its options say.

use std::path::PathBuf;
use std::sync::Arc;

use super::events::Events;
use super::poison::Poison;
use super::statistics::Statistics;
use crate::base::sync::{ArcSwap, AtomicBool};
use crate::env::{Env, Names};
use crate::options::Options;

/// One for each open database, shared by its parts.
pub(super) struct Context {
    pub(super) path: PathBuf,
    pub(super) wal_directory: PathBuf,
    pub(super) env: Env,
    pub(super) names: Arc<Names>,
    pub(super) read_only: bool,
    pub(super) opened_at_us: u64,
    pub(super) settings: ArcSwap<Options>,
    /// Identity of the database and of this session, for table properties.
    pub(super) identity: String,
    pub(super) session: String,
    pub(super) events: Arc<Events>,
    pub(super) statistics: Arc<Statistics>,
    /// What ended writing, if anything did.
    pub(super) poison: Poison,
    /// Somebody closes the database.
    pub(super) closing: AtomicBool,
}
