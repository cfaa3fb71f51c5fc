//! The commands, one file each.

pub mod blob;
pub mod check;
pub mod checkpoint;
pub mod compact;
pub mod count;
pub mod delete;
pub mod delete_range;
pub mod doctor;
pub mod dump;
pub mod export;
pub mod flush;
pub mod get;
pub mod import;
pub mod list_families;
pub mod list_files;
pub mod load;
pub mod manifest;
pub mod put;
pub mod salvage;
pub mod scan;
pub mod space;
pub mod sst;
pub mod stats;
pub mod verify;
pub mod wal;
mod write;
