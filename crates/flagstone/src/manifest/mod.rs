//! Which files make up the database: version edits, versions, the MANIFEST.
//!
//! - `format`: the grammar of an edit and its tags; `edit`, `encode`, `decode`, `display`: one
//!   [`VersionEdit`]
//! - `metadata`: what the MANIFEST says of a file; `live`: the same while the file is in use
//! - `holes`: what of a blob file is not on the disk any longer
//! - `version`: the immutable set of files of one column family; `version_builder`: edits applied
//!   to one
//! - `record`: the framing of edits in a MANIFEST; `dump`: a MANIFEST edit by edit; `check`: what
//!   is damaged in one
//! - `version_set`: all families and the MANIFEST being written; `commit`: changing it; `recover`:
//!   reading it back; `copy`: the MANIFEST of a copy of the database

mod check;
mod commit;
mod copy;
mod decode;
mod display;
mod dump;
mod edit;
mod encode;
mod format;
mod holes;
mod identity;
mod import;
mod live;
mod metadata;
mod record;
mod recover;
mod version;
mod version_builder;
mod version_set;

pub(crate) use check::ManifestCheck;
pub use copy::StateCopy;
pub use dump::{EditIterator, dump};
pub use edit::{CompactCursor, VersionEdit, WalAddition};
pub use holes::Holes;
pub use identity::identity_of;
pub use import::read_family;
pub use live::{BlobFile, BlobFileClaim, ObsoleteFile, ObsoleteFiles, TableFile};
pub use metadata::{BlobFileAddition, BlobFileGarbage, BlobReferences, EntryStats, FileMetadata};
pub use record::{awaits_others, is_torn_end, reader_options};
pub use recover::{
    FamilyListing, ManifestTail, RecoverOptions, WantedFamilies, check_files, find_holes,
    list_column_families, read_current, with_current,
};
pub(crate) use recover::{advised, current_manifest};
pub use version::{BlobFileState, Version};
pub use version_builder::VersionBuilder;
pub use version_set::{Family, FamilySpec, FileNumbers, ManifestSettings, VersionSet};

#[cfg(test)]
mod tests;
