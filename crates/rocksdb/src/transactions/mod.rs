//! Databases with transactions.
//!
//! - `databases`: [`TransactionDB`], [`OptimisticTransactionDB`] and how they are opened
//! - `options`: how transactions behave
//! - `transaction`: [`Transaction`]; `reading`: its reads and iterators

mod databases;
mod options;
mod reading;
mod transaction;

pub use databases::{OptimisticTransactionDB, TransactionDB};
pub use options::{OptimisticTransactionOptions, TransactionDBOptions, TransactionOptions};
pub use transaction::Transaction;
