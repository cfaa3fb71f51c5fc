//! The random numbers of `db_bench`, so that a seed gives both engines the same keys and values.

/// The 64-bit Mersenne Twister: keys.
pub struct MersenneTwister {
    state: Box<[u64; Self::LENGTH]>,
    next: usize,
}

impl MersenneTwister {
    const LENGTH: usize = 312;
    const SHIFT: usize = 156;

    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        let mut state = Box::new([0; Self::LENGTH]);
        state[0] = seed;
        for i in 1..Self::LENGTH {
            let last = state[i - 1];
            state[i] = (last ^ (last >> 62))
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(i as u64);
        }
        Self { state, next: Self::LENGTH }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if self.next == Self::LENGTH {
            self.twist();
        }
        let mut bits = self.state[self.next];
        self.next += 1;
        bits ^= (bits >> 29) & 0x5555_5555_5555_5555;
        bits ^= (bits << 17) & 0x71d6_7fff_eda6_0000;
        bits ^= (bits << 37) & 0xfff7_eee0_0000_0000;
        bits ^ (bits >> 43)
    }

    fn twist(&mut self) {
        const LOW: u64 = 0x7fff_ffff;
        for i in 0..Self::LENGTH {
            let joined = (self.state[i] & !LOW) | (self.state[(i + 1) % Self::LENGTH] & LOW);
            let odd = if joined & 1 == 1 { 0xb502_6f5a_a966_19e9 } else { 0 };
            self.state[i] = self.state[(i + Self::SHIFT) % Self::LENGTH] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }
}

/// Multiplication by 16807 modulo 2^31 - 1: values.
pub struct Lehmer(u64);

impl Lehmer {
    const MODULUS: u64 = (1 << 31) - 1;

    /// Starts from a seed.
    pub fn new(seed: u32) -> Self {
        let seed = u64::from(seed) & Self::MODULUS;
        Self(if seed == 0 { 1 } else { seed })
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 16807 % Self::MODULUS;
        self.0 % limit
    }
}

#[cfg(test)]
mod tests;
