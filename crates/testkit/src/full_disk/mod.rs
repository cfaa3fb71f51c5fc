//! Lives on a disk that is full now and then: nothing acknowledged is lost, and writes go on by
//! themselves when there is space.
//!
//! 1. Threads write, delete, flush and compact, each in keys of its own, every batch the same to
//!    two families.
//! 2. At some moment the disk is filled up to a remainder; writes are refused, reads are not.
//! 3. After a while the space is given back. Each thread must have a write accepted again, without
//!    a reopening, in time.
//! 4. In the end everything is compared, in some lives after the database was closed, or opened, on
//!    the full disk.
//!
//! `laboratory full-disk` lives them on a small file system of the real world, tests in memory
//! ([`Room`] says where).

mod life;
mod options;
mod room;
mod slots;
mod writer;

pub use life::{Figures, live};
pub use room::Room;
