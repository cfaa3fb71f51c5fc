//! The front door: what a program sees of a database.
//!
//! - `database`: [`Db`], the database as a whole; `builder`: how it is opened
//! - `family`: [`Family`], writes of one column family; `view`: [`View`], its reads, as of now or
//!   as of a moment
//! - `snapshot`: [`Snapshot`], reads of all families as of one moment
//! - `cursor`: [`Cursor`], which moves to any key
//! - `entries`: [`Entries`], keys in order; `ranges`: [`Ranges`], several of them; `stream`:
//!   [`RangeStream`], the same for tasks
//! - `expiring`: times to live, and [`ExpiringValue`]
//! - `groups`: attribute groups, the columns of a key in several families
//! - `files`: tables that come from outside of the database, and families that leave it
//! - `transaction`: [`Transaction`], changes that take place together unless others disturb them;
//!   `transaction_db`: [`TransactionDb`], where they lock their keys; `locking`: those locks
//! - `reshaped`: opening with options that the tree does not fit yet
//! - `secondary`: [`Secondary`], a database that another process writes; `follower`: [`Follower`],
//!   what it has flushed; `shown`: the state that both show
//! - `update`: a key changed to what follows from its value; `pauses`: between attempts
//! - `upkeep`: options, copies and reports of an open database; `properties`: those of families and
//!   tables
//! - `moving`: from other names to these
//! - `closures`: merge operators and compaction filters that are closures
//! - `reports`: the types of what a database tells of itself
//!
//! All of it stands on the engine's own handles ([`crate::db`]).

mod builder;
mod closures;
mod cursor;
mod database;
mod entries;
mod expiring;
mod family;
mod files;
mod follower;
mod groups;
mod handle;
mod history;
mod locking;
pub mod moving;
mod pauses;
mod ranges;
pub mod reports;
mod reshaped;
mod secondary;
mod shown;
mod snapshot;
mod stream;
mod transaction;
mod transaction_db;
mod update;
mod upkeep;
mod view;

pub use builder::Builder;
pub use cursor::Cursor;
pub use database::Db;
pub use entries::{Entries, Entry, Keys};
pub use expiring::ExpiringValue;
pub use family::Family;
pub use follower::Follower;
pub use groups::FamiliesCursor;
pub use ranges::{RangeEntries, Ranges};
pub use secondary::Secondary;
pub use snapshot::Snapshot;
pub use stream::RangeStream;
pub use transaction::{TransactOptions, Transaction, TransactionState, TransactionValueWriter};
pub use transaction_db::TransactionDb;
pub use view::View;
