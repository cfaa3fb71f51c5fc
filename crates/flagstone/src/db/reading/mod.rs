//! The way of a read: point lookups of one key and of many, parts of values, large values piece by
//! piece, cursors, reads ahead of them, and reads for tasks that must not wait.

pub(super) mod ahead;
pub(super) mod as_of;
pub(super) mod blob_cache;
pub(super) mod blob_values;
pub(super) mod covers;
mod cursor;
pub(super) mod cursor_blobs;
pub(super) mod get_range;
pub(super) mod iterate;
pub(super) mod multi_read;
pub(super) mod read;
mod reader;
pub(super) mod refresh;
pub(super) mod source;
pub(super) mod unchanged;
pub(super) mod value;
pub(super) mod value_reader;
pub(super) mod versions;
pub(super) mod warming;

pub(super) use reader::Reader;
