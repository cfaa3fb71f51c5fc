//! Work in the background: what is to be done, flushes and compactions, and what becomes of tables that they cannot read.

pub(super) mod agenda;
pub(super) mod background;
mod collect;
pub(super) mod compact;
pub(super) mod compact_files;
pub(super) mod dropping;
pub(super) mod flush;
mod flush_parts;
pub(super) mod held;
pub(super) mod io_limit;
pub(super) mod job;
pub(super) mod key_faults;
pub(super) mod manual;
pub(super) mod merged_onto;
pub(super) mod output;
pub(super) mod overwriting;
pub(super) mod part;
pub(super) mod placement;
pub(super) mod quarantine;
mod range_cuts;
mod room;
mod table_settings;
mod table_writer;
pub(super) mod written;
