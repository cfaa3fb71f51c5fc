//! Caches of blocks and blobs, bounded by a charge.
