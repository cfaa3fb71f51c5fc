//! Checking a database: its tables and blob files, the MANIFEST, and the WALs.

mod file_checksums;
pub(super) mod verify;
pub(super) mod verify_logs;
pub(super) mod verify_manifest;
