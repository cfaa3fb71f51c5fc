//! Write batches: several operations that take effect together.
