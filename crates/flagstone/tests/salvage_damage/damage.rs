//! What happens to files.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::holdings::{Place, Version};
use super::{Files, file_name};

/// Which bytes of which files were touched.
#[derive(Debug, Default)]
pub struct Damage {
    pub touched: Vec<Place>,
    pub words: Vec<String>,
    /// Nothing would tell.
    pub spares_bits_of_tables: bool,
}

impl Damage {
    pub fn spares(&self, version: &Version) -> bool {
        version.places.iter().all(|place| self.spares_place(place))
    }

    /// Whether a version is intact, but it is chance whether it is found.
    pub fn may_hide(&self, version: &Version) -> bool {
        let is_lost = |places: &[Place; 2]| places.iter().all(|place| !self.spares_place(place));
        self.spares(version) && version.found_by.as_ref().is_some_and(is_lost)
    }

    pub fn spares_place(&self, (file, range): &Place) -> bool {
        let mut touched = self.touched.iter();
        touched.all(|(other, bytes)| {
            other != file || bytes.end <= range.start || range.end <= bytes.start
        })
    }

    pub fn touches_file(&self, kind: &str) -> bool {
        self.touched.iter().any(|(name, _)| name.contains(kind))
    }

    /// Removes the files of that kind.
    pub fn lose(&mut self, files: &mut Files, kind: &str) {
        for (name, _) in files.extract_if(.., |name, _| name.contains(kind)) {
            self.words.push(format!("{name} removed"));
            self.touched.push((name, 0..u64::MAX));
        }
    }

    /// Does something to a file.
    pub fn inflict(&mut self, random: &mut Rng, files: &mut Files) {
        let is_data = |name: &&String| *name != "LOCK" && !file_name(name).starts_with("LOG");
        let names: Vec<String> = files.keys().filter(is_data).cloned().collect();
        // Files of each kind are as likely as of any other, but for those that hold next to
        // nothing.
        let is_small =
            |name: &str| ["OPTIONS", "IDENTITY", "OWNER"].iter().any(|part| name.contains(part));
        let names: Vec<String> = match random.u32(..8) {
            0 => names,
            _ => names.into_iter().filter(|name| !is_small(name)).collect(),
        };
        if names.is_empty() {
            return;
        }
        let kinds: BTreeSet<&str> = names
            .iter()
            .map(|name| {
                name.rsplit_once('.').map_or(&file_name(name)[..5], |(_, extension)| extension)
            })
            .collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let kind = kinds[random.usize(..kinds.len())];
        let of_kind: Vec<&String> = names.iter().filter(|name| name.contains(kind)).collect();
        let name = of_kind[random.usize(..of_kind.len())].clone();
        let bytes = files.get_mut(&name).expect("it is there");
        let size = bytes.len() as u64;
        match random.u32(..6) {
            0 => {
                files.remove(&name);
                self.words.push(format!("{name} removed"));
                self.touched.push((name, 0..u64::MAX));
            }
            _ if size == 0 => {}
            2.. if self.spares_bits_of_tables && name.ends_with(".sst") => {}
            1 => {
                let length = random.u64(..size);
                bytes.truncate(length as usize);
                self.words.push(format!("{name} cut off at {length} of {size}"));
                self.touched.push((name, length..u64::MAX));
            }
            2 => {
                let start = random.u64(..size);
                let end = (start + random.u64(1..4096)).min(size);
                bytes[start as usize..end as usize].fill(0);
                self.words.push(format!("{name} zeroed from {start} to {end} of {size}"));
                self.touched.push((name, start..end));
            }
            _ => {
                for _ in 0..random.u32(1..4) {
                    let at = random.u64(..size);
                    bytes[at as usize] ^= 1 << random.u8(..8);
                    self.words.push(format!("{name} flipped at {at} of {size}"));
                    self.touched.push((name.clone(), at..at + 1));
                }
            }
        }
    }
}
