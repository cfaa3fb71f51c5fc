//! What a database takes on the disk, as the file system sees it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of the blocks of all tables and blob files in a directory, those among them that are being
/// written and what is reserved for them. A file that goes meanwhile counts no longer.
///
/// # Panics
/// If there is no such directory.
pub fn blocks_of_data(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("a directory").filter_map(Result::ok);
    let of_data =
        |path: &Path| path.extension().is_some_and(|kind| kind == "blob" || kind == "sst");
    let files = files.filter(|file| of_data(&file.path()));
    files.filter_map(|file| file.metadata().ok()).map(|file| file.blocks() * 512).sum()
}
