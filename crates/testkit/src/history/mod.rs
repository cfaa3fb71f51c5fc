//! Histories: lives of a database as plain text, lived against an ordered map.
//!
//! 1. `generator` draws operations from a seed without running anything; [`crate::settings::draw`]
//!    draws options.
//! 2. A [`Case`] is both together, with the order of background work: all that a life depends on,
//!    as lines of text.
//! 3. `live` lives a case and compares every answer with a [`crate::Model`]; the same history lived
//!    with several options must give the same answers. After a crash the `journal` says which
//!    points in history may be found.
//! 4. `shrink` makes a case that fails as short as it can. Every operation means something, or
//!    nothing, in any state, so that what remains when some are left out is a history, too.

mod along;
mod asked;
mod case;
mod ending;
mod experiment;
mod generator;
mod journal;
mod life;
mod operation;
mod patience;
mod prepared;
mod read;
mod setup;
mod shrink;
mod simplify;
mod task;
mod text;
mod transact;
mod write;

pub use case::{Case, World};
pub use experiment::{Campaign, experiment};
pub use life::{Tally, live};
pub use operation::{Durability, Move, Operation, Power, TransactionStep};
pub use shrink::shrink;
pub use task::block_on;
