//! Which files make up the database: version edits, versions, the MANIFEST.
