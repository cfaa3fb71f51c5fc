//! What each key must hold.

use std::collections::BTreeMap;

/// The largest value.
const LENGTH_MAX: usize = 24 << 10;

/// A value, from which its bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub version: u64,
    pub length: usize,
}

impl Stamp {
    pub fn draw(version: u64, random: &mut fastrand::Rng) -> Self {
        let length = match random.u8(..4) {
            0 => random.usize(20..200),
            1 | 2 => random.usize(200..4096),
            _ => random.usize(4096..LENGTH_MAX),
        };
        Self { version, length }
    }

    pub fn bytes(self) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(self.version);
        let mut bytes = format!("{:020}", self.version).into_bytes();
        // Half of it compresses.
        while bytes.len() < self.length {
            bytes.extend_from_slice(&random.u64(..).to_le_bytes());
            bytes.extend_from_slice(b"flagston");
        }
        bytes.truncate(self.length);
        bytes
    }
}

/// One key: what was acknowledged, and what was refused since.
#[derive(Debug, Clone, Default)]
pub struct Slot {
    pub held: Option<Stamp>,
    /// What a failed call may have left for the next opening to find.
    pub perhaps: Vec<Option<Stamp>>,
}

impl Slot {
    pub fn acknowledge(&mut self, stamp: Option<Stamp>) {
        (self.held, self.perhaps) = (stamp, Vec::new());
    }
}

/// All keys of all threads.
pub type Slots = BTreeMap<Vec<u8>, Slot>;

/// Compares what a scan found. Once the database was reopened a key may hold what was refused, too.
pub fn compare(
    family: &str,
    slots: &Slots,
    found: &[(Vec<u8>, Vec<u8>)],
    is_reopened: bool,
) -> Result<(), String> {
    let found: BTreeMap<&[u8], &[u8]> =
        found.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    if let Some(key) = found.keys().find(|key| !slots.contains_key(**key)) {
        return Err(format!("family {family}: {} was never written", key.escape_ascii()));
    }
    for (key, slot) in slots {
        let value = found.get(&key[..]).copied();
        let is = |stamp: &Option<Stamp>| stamp.map(Stamp::bytes).as_deref() == value;
        if !(is(&slot.held) || is_reopened && slot.perhaps.iter().any(is)) {
            let shown = value.map(|value| value[..value.len().min(20)].escape_ascii().to_string());
            return Err(format!(
                "family {family}: {} holds {shown:?}, expected {slot:?}",
                key.escape_ascii()
            ));
        }
    }
    Ok(())
}
