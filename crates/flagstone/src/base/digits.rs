//! Eight decimal digits in text, as the number that they say.

/// That number, of the eight bytes in big-endian order.
#[inline]
pub(super) fn decimal(text: u64) -> Option<u64> {
    let digits = text ^ 0x3030_3030_3030_3030;
    // Six more make sixteen and more of what is no digit.
    if (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0 != 0 {
        return None;
    }
    let twos = (digits >> 8 & 0x00ff_00ff_00ff_00ff) * 10 + (digits & 0x00ff_00ff_00ff_00ff);
    let fours = (twos >> 16 & 0x0000_ffff_0000_ffff) * 100 + (twos & 0x0000_ffff_0000_ffff);
    Some((fours >> 32) * 10_000 + (fours & 0xffff_ffff))
}

/// The same; where the last byte is the one behind `9`, one more than with that. Of digits alone
/// those are not smaller than this text that say a number not smaller.
pub(super) fn decimal_bound(text: u64) -> Option<u64> {
    decimal(text).or_else(|| Some(decimal(text.checked_sub(1)?)? + 1))
}

#[cfg(test)]
mod tests;
