//! The table that deletes a range which others replace.
//!
//! It has one range deletion, with an older sequence number than the tables that are ingested with
//! it. So snapshots go on seeing what was there, and compactions drop the tables that lie within
//! the range as a whole.

use crate::base::{Error, Result};
use crate::db::DbInner;
use crate::db::ingestion::ExternalFiles;
use crate::db::ingestion::candidate::{Candidate, Origin};
use crate::db::ingestion::files::BroughtIn;
use crate::db::settings::table_builder_settings;
use crate::env::IoMode;
use crate::sst::{Table, TableBuilder, TableBuilderSettings, TableProperties, TableReadSettings};

/// Writes and syncs the table.
///
/// # Errors
/// `InvalidArgument` if the family is ingested behind or keeps sequence number 0; `IoError`.
pub(in crate::db) fn write(
    inner: &DbInner,
    group: &ExternalFiles,
    (begin, end): &(Vec<u8>, Vec<u8>),
    brought: &mut BroughtIn<'_>,
) -> Result<Candidate> {
    if group.options.ingest_behind || !group.options.allow_global_seqno {
        let message = "atomic_replace_range needs a sequence number: ingest_behind=false, allow_global_seqno=true";
        return Err(Error::invalid_argument(message));
    }
    let family = &group.family.0;
    let context = &inner.context;
    let now = context.env.clock.unix_seconds();
    let (number, path) = brought.begin_new();
    let settings = TableBuilderSettings {
        column_family: family.id,
        column_family_name: family.name.clone(),
        creation_time: now,
        file_creation_time: now,
        db_identity: context.identity.database.clone(),
        session_identity: context.identity.session.clone(),
        file_number: number,
        user_properties: TableProperties::external(),
        level: None,
        ..table_builder_settings(&family.options.load(), 0, false)
    };
    let file = context.env.fs.create_writable(&path, IoMode::Buffered)?;
    let mut builder = TableBuilder::new(file.clone(), settings)?;
    builder.add_range_tombstone(begin, end, 0);
    let size = builder.finish()?.size;
    file.sync()?;
    let settings = TableReadSettings {
        comparator: family.comparator().clone(),
        ..TableReadSettings::default()
    };
    let file = context.env.fs.open_random_access(&path, IoMode::Buffered)?;
    let table = Table::open(file, size, settings)?;
    let mut candidate = Candidate::of(family, &path, size, &table, Origin::External)?;
    candidate.checksum = context.checksum_of_new_file(&path, size)?;
    Ok(candidate)
}
