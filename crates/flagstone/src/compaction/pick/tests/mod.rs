//! The policies as text: a tree in, the decision out (see `testdata/`); here are the commands, and
//! what their decisions are shown as.
//!
//! A case is a command with settings, a drawing (`scene`), `----`, what is expected, and an empty
//! line.

mod scene;

use std::fmt::Write;
use std::sync::Arc;

use scene::{Arguments, Scene, key, temperature};

use super::*;
use crate::base::Comparator;
use crate::base::compression::CompressionType;
use crate::manifest::TableFile;
use crate::options::{
    CompactionStopStyle, CompactionStyle, FifoCompactionOptions, FileTemperatureAges,
    UniversalCompactionOptions,
};

#[test]
fn level_sizes_and_scores() {
    run(include_str!("../testdata/shape.txt"));
}

#[test]
fn compactions_from_level_0() {
    run(include_str!("../testdata/level0.txt"));
}

#[test]
fn compactions_from_deeper_levels() {
    run(include_str!("../testdata/levels.txt"));
}

#[test]
fn compactions_that_keep_young_entries_out_of_the_last_level() {
    run(include_str!("../testdata/proximal.txt"));
}

#[test]
fn compactions_of_single_files() {
    run(include_str!("../testdata/files.txt"));
}

#[test]
fn compactions_of_ranges() {
    run(include_str!("../testdata/manual.txt"));
}

#[test]
fn compactions_of_chosen_tables() {
    run(include_str!("../testdata/chosen.txt"));
}

#[test]
fn levels_of_tables_from_outside() {
    run(include_str!("../testdata/ingested.txt"));
}

#[test]
fn levels_that_are_moved() {
    run(include_str!("../testdata/refit.txt"));
}

#[test]
fn ends_of_output_tables() {
    run(include_str!("../testdata/output.txt"));
}

#[test]
fn universal_compactions() {
    run(include_str!("../testdata/universal.txt"));
}

#[test]
fn universal_compactions_in_pieces() {
    run(include_str!("../testdata/pieces.txt"));
}

#[test]
fn compactions_for_blob_space() {
    run(include_str!("../testdata/blob_space.txt"));
}

#[test]
fn compactions_for_deletions() {
    run(include_str!("../testdata/deletions.txt"));
}

#[test]
fn directories_of_outputs() {
    run(include_str!("../testdata/paths.txt"));
}

#[test]
fn room_that_compactions_want() {
    run(include_str!("../testdata/scratch.txt"));
}

#[test]
fn fifo_compactions() {
    run(include_str!("../testdata/fifo.txt"));
}

/// Runs all cases of a file, and shows every one whose decision is another.
fn run(text: &str) {
    let mut differences = String::new();
    let mut cases = 0;
    for case in text.split("\n\n").map(str::trim).filter(|case| !case.is_empty()) {
        let lines =
            case.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        let Some((input, expected)) = lines.split_once("----\n") else {
            assert!(lines.is_empty(), "no ---- in:\n{case}");
            continue;
        };
        cases += 1;
        let actual = decide(input);
        if actual.trim() != expected.trim() {
            write!(differences, "{case}\n==== is now\n{actual}\n").unwrap();
        }
    }
    assert!(cases > 0 && differences.is_empty(), "{differences}");
}

fn decide(input: &str) -> String {
    let (command, drawing) = input.split_once('\n').unwrap();
    let mut words = command.split(' ');
    let command = words.next().unwrap();
    let scene = Scene::draw(Arguments::parse(words), drawing);
    match command {
        "pick" => scene.with_context(|context| {
            pick(&scene.version, &scene.settings, context)
                .map_or("nothing".to_owned(), |plan| show(&plan))
        }),
        "drop" => scene.with_context(|context| {
            drop_deleted(&scene.version, context).map_or("nothing".to_owned(), |plan| show(&plan))
        }),
        "within" => scene.within(),
        "punch" => scene.with_context(|context| {
            let files = pick_punch(&scene.version, &scene.settings, context);
            let files: Vec<_> = files.iter().map(|file| file.0.to_string()).collect();
            if files.is_empty() { "nothing".to_owned() } else { files.join(" ") }
        }),
        "waste" => scene.waste(),
        "universal" => scene.universal(),
        "fifo" => scene.fifo(),
        "scratch" => scene.scratch(),
        "shape" => scene.shape(),
        "range" => scene.range(),
        "chosen" => scene.chosen(),
        "ingested" => scene.ingested(),
        "refit" => scene.refit(),
        "paths" => scene.paths(),
        "split" => scene.split(),
        "below" => scene.below(),
        other => panic!("unknown command {other}"),
    }
}

impl Scene {
    fn shape(&self) -> String {
        let targets = LevelTargets::new(&self.version, &self.settings);
        let mut out = format!("base level {}", targets.base_level);
        if let Some(level) = targets.lowest_unnecessary {
            write!(out, ", unnecessary down to {level}").unwrap();
        }
        let sized = (targets.base_level..self.version.levels.len())
            .filter(|&level| targets.bytes(level) < u64::MAX);
        let mut sizes: Vec<_> =
            sized.map(|level| format!("L{level} {}", targets.bytes(level))).collect();
        if sizes.is_empty() {
            sizes.push("none".to_owned());
        }
        write!(out, "\ntargets {}\nscores", sizes.join(", ")).unwrap();
        let sizes = self.with_context(|context| compensated_sizes(&self.version, context));
        for score in
            scores(&self.version, &self.settings, &targets, &sizes).iter().filter(|s| s.score > 0.0)
        {
            write!(out, " L{} {:.3}", score.level, score.score).unwrap();
        }
        let pending = pending_compaction_bytes(&self.version, &self.settings, &targets);
        write!(out, "\npending {pending}").unwrap();
        out
    }

    fn range(&self) -> String {
        let level = self.arguments.get("level", 0);
        let request = RangeRequest {
            level,
            output_level: self.arguments.get("to", level + 1),
            spared_from: self
                .arguments
                .text("spared")
                .map(|number| crate::base::FileNumber(number.parse().unwrap())),
            begin: self.arguments.text("begin").map(str::as_bytes),
            end: self.arguments.text("end").map(str::as_bytes),
            path_id: self.arguments.get("path", 0),
            allow_trivial_move: self.arguments.text("move") != Some("no"),
        };
        self.with_context(|context| {
            show_range(plan_range(&self.version, &self.settings, context, &request))
        })
    }

    fn chosen(&self) -> String {
        let numbers = self
            .arguments
            .text("tables")
            .unwrap_or_default()
            .split('/')
            .filter(|text| !text.is_empty());
        let chosen =
            numbers.map(|number| crate::base::FileNumber(number.parse().unwrap())).collect();
        let output = (self.arguments.get("to", 1), self.arguments.get("path", 0));
        let planned = self.with_context(|context| {
            plan_files(&self.version, &self.settings, context, &chosen, output)
        });
        match planned {
            Ok(plan) => show(&plan),
            Err(error) => format!("{:?}: {}", error.code(), error.message()),
        }
    }

    /// Tables from outside, one after the other.
    fn ingested(&self) -> String {
        let style = match self.arguments.text("style") {
            Some("universal") => CompactionStyle::Universal,
            Some("fifo") => CompactionStyle::Fifo,
            _ => CompactionStyle::Level,
        };
        let bounds = self.arguments.text("tables").unwrap_or_default().split('/');
        let (mut arrivals, mut out) = (Vec::new(), Vec::new());
        for (smallest, largest) in bounds.filter_map(|bounds| bounds.split_once('-')) {
            let bounds = (smallest.as_bytes(), largest.as_bytes());
            let level = if self.arguments.get("below", false) {
                level_below_all(&self.version, &self.running, &arrivals, bounds)
            } else {
                Some(level_above_older(
                    &self.version,
                    style,
                    &self.settings,
                    &self.running,
                    &arrivals,
                    bounds,
                ))
            };
            arrivals.extend(level.map(|level| (level, bounds)));
            let level = level.map_or("no level".to_owned(), |level| format!("L{level}"));
            out.push(format!("{smallest}-{largest} -> {level}"));
        }
        out.join("\n")
    }

    fn refit(&self) -> String {
        let target = self.arguments.text("to").map(|level| level.parse().unwrap());
        let planned =
            plan_refit(&self.version, &self.settings, self.arguments.get("level", 0), target);
        match planned {
            Ok(RangePlan::Ready { plan, .. }) => {
                assert!(plan.trivial_move, "nothing is rewritten");
                let numbers: Vec<_> =
                    plan.files().map(|(_, file)| file.number().0.to_string()).collect();
                let (from, to) = (plan.start_level(), plan.output_level);
                format!("{}: L{from} [{}] -> L{to}, trivial move", plan.reason, numbers.join(" "))
            }
            Ok(other) => show_range(other),
            Err(error) => format!("{:?}: {}", error.code(), error.message()),
        }
    }

    fn within(&self) -> String {
        let ends = self
            .arguments
            .text("ranges")
            .unwrap()
            .split('/')
            .map(|range| range.split_once('-').unwrap());
        let ranges: Vec<KeyRange<'_>> = ends
            .map(|(begin, end)| {
                let bound = |text: &str| !text.is_empty();
                (bound(begin).then_some(begin.as_bytes()), bound(end).then_some(end.as_bytes()))
            })
            .collect();
        let include_end = self.arguments.text("end") == Some("included");
        files_within(&self.version, &ranges, include_end)
            .map_or("nothing".to_owned(), |plan| show(&plan))
    }

    /// In parts of a mebibyte, since small databases are not held to their limit.
    fn waste(&self) -> String {
        let mut overwriting = Overwriting::default();
        if let Some(share) = self.arguments.text("overwrites") {
            overwriting.note_share(share.parse().unwrap());
        }
        self.with_context(|context| {
            let moment = BlobMoment {
                unflushed_bytes: context.unflushed_blob_bytes << 20,
                overwriting,
                collecting: context.collecting,
                is_kept_by_readers: self.arguments.get("readers", false),
                holds_young: self.settings.holds_young(),
            };
            let waste =
                BlobWaste::of(&self.version, self.settings.max_space_amplification, &moment);
            let (left, brakes_at) = waste.left();
            format!(
                "{} MiB, {} left, delays from {} on",
                waste.bytes >> 20,
                left >> 20,
                brakes_at >> 20
            )
        })
    }

    fn universal(&self) -> String {
        let arguments = &self.arguments;
        let universal = UniversalCompactionOptions {
            size_ratio: arguments.get("ratio", 1),
            min_merge_width: arguments.get("min-width", 2),
            max_merge_width: arguments.get("max-width", u32::MAX),
            max_size_amplification_percent: arguments.get("amplification", 200),
            compression_size_percent: arguments.get("compressed", -1),
            stop_style: match arguments.text("stop") {
                None => CompactionStopStyle::TotalSize,
                Some("similar") => CompactionStopStyle::SimilarSize,
                Some(other) => panic!("{other}"),
            },
            allow_trivial_move: arguments.text("move").is_some(),
            incremental: arguments.text("incremental").is_some(),
            max_read_amp: arguments.get("runs", -1),
        };
        self.with_context(|context| match arguments.text("all") {
            None => {
                let plan = pick_universal(&self.version, &self.settings, &universal, context);
                plan.map_or("nothing".to_owned(), |plan| self.show_with_merging(context, &plan))
            }
            Some(how) => {
                let output = (arguments.get("path", 0), how == "rewrite");
                let begin = arguments.text("from").map(str::as_bytes);
                let plan =
                    plan_full(&self.version, &self.settings, &universal, context, output, begin);
                match plan {
                    RangePlan::Ready { plan, .. } => self.show_with_merging(context, &plan),
                    plan => show_range(plan),
                }
            }
        })
    }

    /// A plan that is no piece of it says where a merging in pieces is when it has ended.
    fn show_with_merging(&self, context: &PickContext<'_>, plan: &CompactionPlan) -> String {
        let Some(merging) = context.merging else { return show(plan) };
        let next = crate::base::FileNumber(1000);
        let (after, last) = (self.without_inputs(plan), last_level(&self.version, &self.settings));
        let then = match plan.merging_after(Some(merging.clone()), (&after, last), next) {
            Some(after) if after == *merging => {
                format!(", still to be merged from {}", after.begin.escape_ascii())
            }
            Some(_) => String::new(),
            None => ", all is merged".to_owned(),
        };
        show(plan) + &then
    }

    /// What each style wants for these tables.
    fn scratch(&self) -> String {
        let (version, settings) = (&self.version, &self.settings);
        let fifo =
            FifoCompactionOptions { allow_compaction: true, ..FifoCompactionOptions::default() };
        format!(
            "leveled {}, universal {}, fifo {} or {}",
            leveled_scratch(version, settings),
            universal_scratch(version, settings, &UniversalCompactionOptions::default()),
            fifo_scratch(version, settings, &fifo),
            fifo_scratch(version, settings, &FifoCompactionOptions::default()),
        )
    }

    fn fifo(&self) -> String {
        let thresholds = self.arguments.text("ages").into_iter().flat_map(|ages| ages.split('/'));
        let threshold = |text: &str| {
            let (name, age) = text.split_once(':').unwrap();
            (temperature(name), age.parse().unwrap())
        };
        let thresholds: Vec<_> = thresholds.map(threshold).collect();
        let fifo = FifoCompactionOptions {
            max_table_files_size: self.arguments.get("size", 1000),
            max_data_files_size: self.arguments.get("data", 0),
            allow_compaction: self.arguments.text("merge").is_some(),
            use_kv_ratio_compaction: self.arguments.text("merge") == Some("ratio"),
            age_for_warm: self.arguments.get("warm", 0),
            file_temperature_age_thresholds: FileTemperatureAges::of(&thresholds),
        };
        self.with_context(|context| {
            pick_fifo(
                &self.version,
                &self.settings,
                &fifo,
                self.arguments.get("buffer", 100),
                context,
            )
            .map_or("nothing".to_owned(), |plan| show(&plan))
        })
    }

    /// Of all levels, or of runs of the sizes that are asked for.
    fn paths(&self) -> String {
        let of_run = |size: &u64| {
            path_of_run(&self.settings.path_sizes, self.arguments.get("ratio", 1), *size)
        };
        let answers: Vec<_> = match self.arguments.text("runs") {
            Some(runs) => runs
                .split('/')
                .map(|run| format!("{run} in {}", of_run(&run.parse().unwrap())))
                .collect(),
            None => (0..self.version.levels.len())
                .map(|level| format!("L{level} in {}", path_of_level(&self.settings, level)))
                .collect(),
        };
        answers.join(", ")
    }

    fn split(&self) -> String {
        let rule = SplitRule {
            cuts: true,
            target_file_size: self.arguments.get("target", 100),
            max_output_file_size: self.arguments.get("most", 200),
            max_compaction_bytes: self.arguments.get("max", 100_000),
            grandparents: self.version.levels[1].clone(),
        };
        let mut splitter = OutputSplitter::new(rule, Comparator::Bytewise);
        let (mut out, mut size) = (String::new(), None);
        for (text, bytes) in &self.keys {
            let before = match (splitter.should_stop_before(key(text, 5).as_key(), size), size) {
                (true, _) => " | ",
                (false, None) => "",
                (false, Some(_)) => " ",
            };
            out = out + before + text;
            size = Some(if before == " | " { 0 } else { size.unwrap_or(0) } + bytes);
        }
        out
    }

    fn below(&self) -> String {
        let mut below = KeysBelow::new(&self.version, self.arguments.get("level", 1));
        let answers = self.keys.iter().map(|(key, _)| {
            let answer = if below.surely_absent(key.as_bytes()) { "absent" } else { "maybe" };
            format!("{key} {answer}")
        });
        let mut answers: Vec<_> = answers.collect();
        let keys = self.arguments.text("begin").zip(self.arguments.text("end"));
        if let Some((begin, end)) = keys {
            let level = self.arguments.get("level", 1);
            let absent =
                range_surely_absent(&self.version, level, begin.as_bytes(), end.as_bytes());
            answers.push(format!("{begin}-{end} {}", if absent { "absent" } else { "maybe" }));
        }
        answers.join(", ")
    }
}

fn show_range(plan: RangePlan) -> String {
    match plan {
        RangePlan::Nothing => "nothing".to_owned(),
        RangePlan::Blocked => "blocked".to_owned(),
        RangePlan::Ready { plan, rest } => show(&CompactionPlan { rest, ..*plan }),
    }
}

fn show(plan: &CompactionPlan) -> String {
    let numbers = |files: &[Arc<TableFile>]| {
        files.iter().map(|file| file.number().0.to_string()).collect::<Vec<_>>().join(" ")
    };
    let inputs: Vec<_> = plan
        .inputs
        .iter()
        .map(|input| format!("L{} [{}]", input.level, numbers(&input.files)))
        .collect();
    if plan.drops_inputs {
        return format!("{}: {} dropped", plan.reason, inputs.join(" + "));
    }
    let mut out = format!("{}: {} -> L{}", plan.reason, inputs.join(" + "), plan.output_level);
    if let Some(proximal) = plan.proximal {
        write!(out, ", young above {} to L{}", proximal.kept_until, proximal.level).unwrap();
    }
    if plan.path_id > 0 {
        write!(out, " in path {}", plan.path_id).unwrap();
    }
    if plan.trivial_move {
        out += ", trivial move";
    }
    if plan.bottommost {
        out += ", bottommost";
    }
    if plan.rewrites() && plan.form.temperature.is_known() {
        write!(out, ", {}", plan.form.temperature).unwrap();
    }
    if !plan.emptied.is_empty() {
        let files: Vec<_> = plan.emptied.iter().map(|file| file.0.to_string()).collect();
        write!(out, ", empties [{}]", files.join(" ")).unwrap();
    }
    if plan.form.compression.codec != CompressionType::Lz4 {
        write!(out, ", {}", plan.form.compression.codec).unwrap();
    }
    if !plan.grandparents.is_empty() {
        write!(out, ", grandparents [{}]", numbers(&plan.grandparents)).unwrap();
    }
    if plan.output_level > 0 && plan.sizes.target != 50 {
        write!(out, ", files of {}", plan.sizes.target).unwrap();
    }
    if let Some(rest) = &plan.rest {
        write!(out, ", rest from {}", rest.escape_ascii()).unwrap();
    }
    out
}
