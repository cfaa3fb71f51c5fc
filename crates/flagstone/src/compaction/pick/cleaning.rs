//! What it costs to keep blob files small where nothing but moving values makes room: a bound that
//! no choice of files beats.
//!
//! A file that is emptied while a part `v` of it is live gives back `1 - v` of it for `v` that is
//! written again: `v / (1 - v)` bytes are moved for each that is written (Rosenblum and Ousterhout,
//! "The Design and Implementation of a Log-Structured File System", 1992; they count reading, too).
//! Where any value is as likely to be overwritten as any other, a file decays by equal factors
//! while all others are filled once, so that with `s` times the space of live values those with
//! most garbage are still live to the part `v` of `1 / s = (v - 1) / ln v` (Bux and Iliadis,
//! "Performance of greedy garbage collection in flash-based solid-state drives", 2010; Desnoyers,
//! "Analytic modeling of SSD write performance", 2012). Skewed loads cost less.

/// Bytes that are moved for each that is written, if values take `space` times the bytes of live
/// ones.
pub fn moved_per_byte(space: f64) -> f64 {
    if space <= 1.0 {
        return f64::INFINITY;
    }
    // The more is live in the files that are emptied, the less space is taken.
    let (mut least, mut most) = (0.0, 1.0);
    for _ in 0..60 {
        let live = (least + most) / 2.0;
        if space_of(live) > space { least = live } else { most = live }
    }
    least / (1.0 - least)
}

/// The space, as in [`moved_per_byte`], at which so many bytes are moved for each that is written.
pub fn space_for(moved: f64) -> f64 {
    space_of(moved / (1.0 + moved))
}

fn space_of(live: f64) -> f64 {
    live.ln() / (live - 1.0)
}

#[cfg(test)]
mod tests;
