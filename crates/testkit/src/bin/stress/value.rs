//! Values that can be checked alone, and what is known of a key in one word.
//!
//! ```text
//! value    ::= base (',' operand)* | operand (',' operand)*      ',' is the merge operator's doing
//! base     ::= 'B' head length:u32 filling                       what a put wrote
//! operand  ::= 'M' head                                          what a merge added
//! head     ::= family:u8 key:u32 version:u64
//! ```
//!
//! Numbers are little endian. The filling follows from head and length, so that a value of another
//! key, of another family, or made of parts of two, is recognised. Versions rise with every
//! operation of a thread.

/// The most operands that one key collects.
pub const MERGES_MAX: u64 = 100;

const HEAD: usize = 1 + 1 + 4 + 8;
const VERSION_BITS: u32 = 44;
const DIGEST_BITS: u32 = 12;
const MERGES_BITS: u32 = 7;
const _: () = assert!(VERSION_BITS + DIGEST_BITS + MERGES_BITS + 1 == u64::BITS);
const _: () = assert!(MERGES_MAX < 1 << MERGES_BITS);

/// What one key of one family holds: whether anything, the version of its last operation, how many
/// merges since the last put, and a digest of all their versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State(pub u64);

impl State {
    fn new(version: u64, merges: u64, digest: u64) -> Self {
        let digest = digest % (1 << DIGEST_BITS);
        Self(1 | merges << 1 | digest << (1 + MERGES_BITS) | version << (u64::BITS - VERSION_BITS))
    }

    /// Never written, or removed by `version`.
    pub fn removed(version: u64) -> Self {
        Self(version << (u64::BITS - VERSION_BITS))
    }

    /// Put by `version`.
    pub fn put(version: u64) -> Self {
        Self::new(version, 0, mix(version))
    }

    /// The same after `version` merged an operand.
    pub fn merged(self, version: u64) -> Self {
        let before = if self.is_present() { self.digest() } else { 0 };
        let merges = if self.is_present() { self.merges() } else { 0 };
        Self::new(version, merges + 1, mix(before ^ version))
    }

    /// Whether there is a value.
    pub fn is_present(self) -> bool {
        self.0 & 1 == 1
    }

    /// The last operation's version.
    pub fn version(self) -> u64 {
        self.0 >> (u64::BITS - VERSION_BITS)
    }

    /// Operands since the last put.
    pub fn merges(self) -> u64 {
        self.0 >> 1 & ((1 << MERGES_BITS) - 1)
    }

    fn digest(self) -> u64 {
        self.0 >> (1 + MERGES_BITS) & ((1 << DIGEST_BITS) - 1)
    }

    /// Whether a reader could not tell them apart: both hold the same value, or none.
    pub fn looks_like(self, other: Self) -> bool {
        self == other || !(self.is_present() || other.is_present())
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.is_present(), self.version(), self.merges()) {
            (false, 0, _) => f.write_str("nothing (never written)"),
            (false, version, _) => write!(f, "nothing (removed by version {version})"),
            (true, version, 0) => write!(f, "version {version}"),
            (true, version, merges) => write!(f, "version {version} ({merges} operands)"),
        }
    }
}

/// Where a value belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The family's index.
    pub family: usize,
    /// The key's index.
    pub index: usize,
}

/// The value that a put of `version` writes; of `length` bytes and a few more.
pub fn base(place: Place, version: u64, length: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(HEAD + 4 + length);
    value.push(b'B');
    push_head(&mut value, place, version);
    value.extend((length as u32).to_le_bytes());
    let seed = seed(place, version, length);
    value.extend((0..length).map(|at| filling(seed, at)));
    value
}

/// The operand that a merge of `version` adds.
pub fn operand(place: Place, version: u64) -> Vec<u8> {
    let mut operand = vec![b'M'];
    push_head(&mut operand, place, version);
    operand
}

fn push_head(out: &mut Vec<u8>, place: Place, version: u64) {
    out.push(place.family as u8);
    out.extend((place.index as u32).to_le_bytes());
    out.extend(version.to_le_bytes());
}

fn seed(place: Place, version: u64, length: usize) -> u64 {
    mix(mix(mix(place.index as u64) ^ place.family as u64 ^ version) ^ length as u64)
}

/// Eight bytes that are repeated eight times, then the next: it compresses, and no two stretches
/// are alike.
fn filling(seed: u64, at: usize) -> u8 {
    mix(seed ^ (at / 64) as u64).to_le_bytes()[at % 8]
}

/// A permutation of 64 bits without fixed points worth mentioning (splitmix64).
fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Reads a value back.
///
/// # Errors
/// What is wrong with it.
pub fn parse(place: Place, value: &[u8]) -> Result<State, String> {
    let mut rest = value;
    let mut state = State::default();
    if rest.first() == Some(&b'B') {
        let version = take_head(&mut rest, place)?;
        let (length, filled) = rest.split_at_checked(4).ok_or("it ends within its length")?;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let (found, behind) = filled
            .split_at_checked(length)
            .ok_or_else(|| format!("version {version} has {} of {length} bytes", filled.len()))?;
        let seed = seed(place, version, length);
        if let Some(at) = (0..length).find(|&at| found[at] != filling(seed, at)) {
            return Err(format!("version {version} is wrong from byte {at} of {length}"));
        }
        state = State::put(version);
        rest = behind;
    } else {
        // A chain of operands alone begins with one.
        state = state.merged(take_head(&mut rest, place)?);
    }
    while let Some((separator, operand)) = rest.split_first() {
        rest = operand;
        if *separator != b',' || rest.first() != Some(&b'M') {
            return Err(format!("no operand follows version {}", state.version()));
        }
        let version = take_head(&mut rest, place)?;
        if version <= state.version() {
            return Err(format!("operand {version} stands behind {}", state.version()));
        }
        state = state.merged(version);
    }
    Ok(state)
}

/// The version in a head that is for this place.
fn take_head(rest: &mut &[u8], place: Place) -> Result<u64, String> {
    let (head, behind) = rest.split_at_checked(HEAD).ok_or("it ends within a head")?;
    let kind = head[0];
    let family = usize::from(head[1]);
    let index = u32::from_le_bytes(head[2..6].try_into().expect("four bytes")) as usize;
    if !matches!(kind, b'B' | b'M') || family != place.family || index != place.index {
        return Err(format!("it is of kind {kind}, for family {family}, key {index}"));
    }
    *rest = behind;
    Ok(u64::from_le_bytes(head[6..].try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests;
