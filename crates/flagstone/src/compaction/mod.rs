//! Which files to rewrite (pure pickers), and what survives a rewrite (pure rules).

mod counts;
pub mod pick;
pub mod remote;
mod stream;
mod stream_entry;
mod stream_filter;
mod stream_merge;
#[cfg(test)]
mod stream_model;
#[cfg(test)]
mod stream_model_filter;
#[cfg(test)]
mod stream_model_tests;
mod stream_settings;
#[cfg(test)]
mod stream_tests;
mod stream_timed;
mod stream_tombstones;

pub use counts::JobCounts;
pub use stream::CompactionStream;
pub use stream_settings::{
    FlushedTimes, History, KeepInPlace, KeyError, StreamCounts, StreamSettings, ValueSeparator,
};
pub use stream_tombstones::{OutputBounds, OutputFile, StreamTombstones, bounds_of_output};
