//! Blob files: large values kept apart from their keys.
