//! Mutations without libFuzzer, for the smoke test.

use fastrand::Rng;

/// Changes a few bytes: flips, interesting values, insertions, removals, copies, cuts.
pub fn mutate(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..5) {
        let at = random.usize(0..=bytes.len());
        let length = random.usize(1..9).min(bytes.len() - at);
        match random.u8(..8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + length)),
            2 => drop(bytes.splice(at..at, (0..random.usize(1..9)).map(|_| random.u8(..)))),
            3 => {
                let from = random.usize(0..=bytes.len() - length);
                let copy = bytes[from..from + length].to_vec();
                bytes[at..at + length].copy_from_slice(&copy);
            }
            4 => bytes[at..at + length].fill([0, 0xff, 0x7f, 0x80][random.usize(..4)]),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.u8(..8);
                }
            }
        }
    }
}
