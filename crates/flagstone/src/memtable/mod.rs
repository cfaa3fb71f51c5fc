//! The sorted structures that hold what is not yet flushed.
