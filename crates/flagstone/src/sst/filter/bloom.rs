//! The two Bloom filters: all probes of a key fall into one 64-byte line.
//!
//! ```text
//! FastLocalBloom   line = high half of (low half of the hash x lines); probe: the top 9 bits of h, which starts as the
//!                  hash's high half and is multiplied by the golden ratio for each next probe
//! legacy           line = h mod lines; probe: the low 9 bits of h, to which h rotated by 17 is added for each next
//! ```

use super::LINE;

const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// Seed of the 32-bit hash of legacy filters.
pub const LEGACY_SEED: u32 = 0xbc9f_1d34;

/// Where a hash's probes go: the line's number, and the first `h`.
#[inline(always)]
fn place(hash: u64, lines: u32) -> (usize, u32) {
    let line = ((hash & 0xffff_ffff) * u64::from(lines)) >> 32;
    (line as usize, (hash >> 32) as u32)
}

/// The line of `data`, a whole number of lines and at least one, in which a hash's bits lie.
#[inline(always)]
pub fn line_of(data: &[u8], hash: u64) -> &[u8; LINE] {
    let (line, _) = place(hash, (data.len() / LINE) as u32);
    data[line * LINE..].first_chunk().expect("lines are whole")
}

/// Whether all of a hash's bits are set. `data` is a whole number of lines, at least one.
#[inline(always)]
pub fn may_contain(data: &[u8], probes: u32, hash: u64) -> bool {
    let (line, mut h) = place(hash, (data.len() / LINE) as u32);
    let line: &[u8; LINE] = data[line * LINE..].first_chunk().expect("lines are whole");
    for _ in 0..probes {
        let bit = h >> 23;
        if line[(bit >> 3) as usize] & (1 << (bit & 7)) == 0 {
            return false;
        }
        h = h.wrapping_mul(GOLDEN_RATIO);
    }
    true
}

/// Sets a hash's bits.
#[inline]
pub fn add(data: &mut [u8], probes: u32, hash: u64) {
    let (line, mut h) = place(hash, (data.len() / LINE) as u32);
    let line: &mut [u8; LINE] = data[line * LINE..].first_chunk_mut().expect("lines are whole");
    for _ in 0..probes {
        let bit = h >> 23;
        line[(bit >> 3) as usize] |= 1 << (bit & 7);
        h = h.wrapping_mul(GOLDEN_RATIO);
    }
}

/// [`may_contain`] of a legacy filter. `lines` is at least one, and `data` has that many.
pub fn legacy_may_contain(data: &[u8], lines: u32, probes: u32, mut h: u32) -> bool {
    let line = (h % lines) as usize * LINE;
    let delta = h.rotate_right(17);
    (0..probes).all(|_| {
        let bit = (h & 511) as usize;
        h = h.wrapping_add(delta);
        data[line + (bit >> 3)] & (1 << (bit & 7)) != 0
    })
}

/// [`add`] to a legacy filter.
pub fn legacy_add(data: &mut [u8], lines: u32, probes: u32, mut h: u32) {
    let line = (h % lines) as usize * LINE;
    let delta = h.rotate_right(17);
    for _ in 0..probes {
        let bit = (h & 511) as usize;
        data[line + (bit >> 3)] |= 1 << (bit & 7);
        h = h.wrapping_add(delta);
    }
}

/// The number of probes that gives the fewest false positives at so many thousandths of a bit per
/// key.
pub fn best_probes(millibits_per_key: u64) -> u32 {
    const UP_TO: [(u64, u32); 12] = [
        (2080, 1),
        (3580, 2),
        (5100, 3),
        (6640, 4),
        (8300, 5),
        (10_070, 6),
        (11_720, 7),
        (14_001, 8),
        (16_050, 9),
        (18_300, 10),
        (22_001, 11),
        (25_501, 12),
    ];
    if let Some(&(_, probes)) = UP_TO.iter().find(|&&(limit, _)| millibits_per_key <= limit) {
        return probes;
    }
    if millibits_per_key > 50_000 { 24 } else { ((millibits_per_key - 1) / 2000 - 1) as u32 }
}

/// The false-positive rate to expect of FastLocalBloom: lines fill unevenly, so take the mean of a
/// crowded and an uncrowded one, each a standard deviation from the average.
pub fn false_positive_rate(bits_per_key: f64) -> f64 {
    let line_bits = (LINE * 8) as f64;
    let probes = f64::from(best_probes((bits_per_key * 1000.0) as u64));
    let keys = line_bits / bits_per_key;
    let rate = |keys: f64| (1.0 - (-probes * keys.max(0.0) / line_bits).exp()).powf(probes);
    (rate(keys + keys.sqrt()) + rate(keys - keys.sqrt())) / 2.0
}
