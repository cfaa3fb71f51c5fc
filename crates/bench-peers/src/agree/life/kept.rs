//! What a family keeps through a life.

use super::*;

/// What a family of this name has whenever it exists.
#[derive(Debug, Clone)]
pub struct Kept {
    pub traits: Traits,
    /// In each turn: of some families it is now leveled, now universal.
    pub styles: [&'static str; TURNS_MAX],
    /// In each turn: there may be more from some turn on, but never fewer.
    pub levels: [&'static str; TURNS_MAX],
    /// Whether its large values may lie in blob files. RocksDB 11.8 counts as garbage in these what
    /// it holds back from the last level (`preclude_last_level_data_seconds`), and then refuses its
    /// own compaction; and its iterators free a value in a blob file that is the result of merging
    /// onto it, as it may be with [`MergeOperator::Max`].
    pub may_have_blobs: bool,
}

impl Kept {
    pub fn draw(random: &mut SmallRng, name: &str, has_paths: bool, has_merges: bool) -> Self {
        let style = match random.random_range(0..10) {
            0 if !has_paths => "kCompactionStyleFIFO",
            1 if !has_paths => "kCompactionStyleNone",
            2..5 => "kCompactionStyleUniversal",
            _ => "kCompactionStyleLevel",
        };
        let mut styles = [style; TURNS_MAX];
        let takes_turns = ["kCompactionStyleLevel", "kCompactionStyleUniversal"];
        if takes_turns.contains(&style) && random.random_bool(0.25) {
            styles.fill_with(|| one(random, &takes_turns));
        }
        let mut levels = [one(random, &["7", "7", "3"]); TURNS_MAX];
        match style {
            "kCompactionStyleFIFO" => levels.fill("1"),
            _ => levels[random.random_range(1..TURNS_MAX)..].fill("7"),
        }
        let merge = one(random, &MergeOperator::ALL);
        let may_have_blobs = merge != MergeOperator::Max && random.random_bool(0.8);
        let traits = Traits { reversed: is_reversed(name), merge, has_merges };
        Self { traits, styles, levels, may_have_blobs }
    }

    /// What is drawn for a turn, with what is kept.
    pub fn settings(&self, turn: usize, mut drawn: Settings) -> Settings {
        if self.traits.reversed {
            drawn.set("comparator", REVERSE);
        }
        drawn.set("merge_operator", self.traits.merge.name());
        drawn.set("compaction_style", self.styles[turn]);
        drawn.set("num_levels", self.levels[turn]);
        if self.styles[turn] == "kCompactionStyleNone" {
            // No compaction will begin, and RocksDB's flushes would wait for one.
            drawn.set("level0_slowdown_writes_trigger", "10000");
            drawn.set("level0_stop_writes_trigger", "10000");
        }
        if self.may_have_blobs {
            // With the second RocksDB 11.8 may begin a table of a compaction that nothing goes
            // into, and look for it later.
            drawn
                .leave_out(&["preclude_last_level_data_seconds", "target_file_size_is_upper_bound"])
        } else {
            drawn.set("enable_blob_files", "false")
        }
        if self.traits.has_merges {
            drawn.leave_out(&["enable_blob_direct_write"]);
        }
        if drawn.get("write_buffer_size").is_empty() {
            // As much is reserved for each WAL.
            drawn.set("write_buffer_size", "65536");
        }
        drawn.make_legal();
        drawn
    }
}
