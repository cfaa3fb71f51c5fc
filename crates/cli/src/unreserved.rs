//! Saying that a WAL found no room for what it reserves.
//!
//! A caller that deletes or compacts because a disk is nearly full needs a few bytes of a WAL. The
//! engine reserves as much as there is room for; the command says so, because a full disk may then
//! show in the middle of its writes.

use std::path::Path;

use flagstone::db::Db;

use crate::failure::say;
use crate::text;

/// Says it of a database that was opened for writing.
pub fn tell_if_short(db: &Db, path: &Path) {
    let missing =
        db.int_property(db.default_column_family(), "flagstone.wal-reserve-missing").unwrap_or(0);
    if missing > 0 {
        say(format_args!(
            "note: {}: no space for {} of what a WAL reserves (1.1 times write_buffer_size); the command continues",
            path.display(),
            text::bytes(missing)
        ));
    }
}
