//! What was done, counted by name; the supervisor adds up what each round's process left in a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::{fs, io};

use flagstone::base::sometimes;
use serde_json::{Map, Value, json};

/// Counters of one process.
#[derive(Default)]
pub struct Counts {
    /// Operations by kind.
    operations: Mutex<BTreeMap<&'static str, u64>>,
    /// Everything else.
    others: Mutex<BTreeMap<&'static str, u64>>,
}

fn add(to: &Mutex<BTreeMap<&'static str, u64>>, name: &'static str, amount: u64) {
    *to.lock().expect("nobody panics with it").entry(name).or_default() += amount;
}

impl Counts {
    /// One more operation.
    pub fn operation(&self, kind: &'static str) {
        add(&self.operations, kind, 1);
    }

    /// So much more of something else.
    pub fn add(&self, name: &'static str, amount: u64) {
        add(&self.others, name, amount);
    }

    /// Writes what was counted so far; whoever reads the file sees all of it or what was there
    /// before.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let listed = |counts: &Mutex<BTreeMap<&'static str, u64>>| {
            json!(*counts.lock().expect("nobody panics with it"))
        };
        let markers: Map<String, Value> = sometimes::counts()
            .into_iter()
            .map(|(name, meaning, count)| {
                (name.to_string(), json!({ "meaning": meaning, "count": count }))
            })
            .collect();
        let text = json!({
            "operations": listed(&self.operations),
            "others": listed(&self.others),
            "markers": markers,
        });
        let temporary = path.with_extension("new");
        fs::write(&temporary, text.to_string())?;
        fs::rename(&temporary, path)
    }
}

/// The counts of many processes.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Operations by kind.
    pub operations: BTreeMap<String, u64>,
    /// Everything else.
    pub others: BTreeMap<String, u64>,
    /// Markers: what each means, and how often it was reached.
    pub markers: BTreeMap<String, (String, u64)>,
}

impl Totals {
    /// Adds what a process counted before it ended, if it came so far.
    pub fn add_file(&mut self, path: &Path) -> io::Result<()> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text?,
        };
        let counted: Value = serde_json::from_str(&text)?;
        for (totals, name) in [(&mut self.operations, "operations"), (&mut self.others, "others")] {
            for (name, count) in counted[name].as_object().into_iter().flatten() {
                *totals.entry(name.clone()).or_default() += count.as_u64().unwrap_or(0);
            }
        }
        for (name, marker) in counted["markers"].as_object().into_iter().flatten() {
            let meaning = marker["meaning"].as_str().unwrap_or_default().to_string();
            let (_, count) = self.markers.entry(name.clone()).or_insert((meaning, 0));
            *count += marker["count"].as_u64().unwrap_or(0);
        }
        Ok(())
    }

    /// One of the other counts.
    pub fn other(&self, name: &str) -> u64 {
        self.others.get(name).copied().unwrap_or(0)
    }

    /// One more of something that the supervisor counts.
    pub fn count(&mut self, name: &str, amount: u64) {
        *self.others.entry(name.to_string()).or_default() += amount;
    }
}
