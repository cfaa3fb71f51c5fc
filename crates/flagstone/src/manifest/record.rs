//! The framing of edits in a MANIFEST: the one place that knows the log format.
