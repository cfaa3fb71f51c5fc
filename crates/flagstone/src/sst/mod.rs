//! Block-based tables: format, blocks, filters, builder, reader.

/// An open table file.
#[derive(Debug)]
pub struct Table;
