//! Checking a database: its tables and blob files, the MANIFEST, and the WALs.

pub(super) mod verify;
pub(super) mod verify_logs;
pub(super) mod verify_manifest;
