//! The tables, as Markdown.

use std::fmt::Write;

use super::{Report, Row};
use crate::cell::{EngineName, Memory, Track, size_text, value_name};
use crate::environment::Environment;
use crate::measure::Part;
use crate::run::Run;
use crate::statistics::{Estimate, Verdict};
use crate::workload::{Family, Workload};

/// The small tables that others than RocksDB have.
const PEERS: [EngineName; 5] = [
    EngineName::Leveldb,
    EngineName::Fjall,
    EngineName::Redb,
    EngineName::Lmdb,
    EngineName::LmdbKept,
];
/// RocksDB's ways with large values.
const MODES: [EngineName; 3] =
    [EngineName::Rocksdb, EngineName::RocksdbBlob, EngineName::RocksdbDirect];

/// Everything, for a terminal.
pub fn all(report: &Report) -> String {
    let mut text = glance(report);
    let _ = write!(text, "\n{}\n{}", conditions(report), summary(report));
    for track in [Track::Tuned, Track::Defaults] {
        for family in Family::ALL {
            if let Some(tables) = section(report, track, family) {
                let _ =
                    write!(text, "\n### {}: {}\n\n{tables}", track_title(track), family.title());
            }
        }
    }
    text
}

/// The name of a track in headings.
pub fn track_title(track: Track) -> &'static str {
    match track {
        Track::Tuned => "Tuned",
        Track::Defaults => "Out of the box",
    }
}

/// Where and how it was measured.
pub fn conditions(report: &Report) -> String {
    let mut text = String::new();
    for environment in &report.environments {
        text.push_str(&environment_line(environment));
    }
    let (effort, (first, last)) = (report.effort, report.period);
    let _ = writeln!(
        text,
        "- {} to {}, {} runs, data at scale {}, timed phases of {} s.",
        date(first),
        date(last),
        report.disturbed.1,
        effort.scale,
        effort.seconds
    );
    if let Some(confidence) = confidence(report) {
        let _ = writeln!(
            text,
            "- An interval is of a row's rounds, and holds the median with {confidence} confidence."
        );
    }
    if !report.options.is_empty() {
        let options: Vec<_> = report.options.iter().map(|option| format!("`{option}`")).collect();
        let _ = writeln!(text, "- **With options beyond the tracks'**: {}.", options.join(", "));
    }
    if report.disturbed.0 > 0 {
        let (disturbed, all) = report.disturbed;
        let _ = writeln!(
            text,
            "- **The machine was not quiet**: in {disturbed} of {all} runs others took more than 10% of the CPU time."
        );
    }
    if report.environments.len() > 1 {
        text.push_str("- **These figures are not all of one machine or version**: see above.\n");
    }
    for (cell, engine, message) in &report.failures {
        let _ = writeln!(text, "- **Failed**: `{cell}` on {}: {message}.", engine.title());
    }
    text
}

/// How sure the rows' intervals are: of few rounds less than of many.
fn confidence(report: &Report) -> Option<String> {
    let ratios = report.rows.iter().filter_map(|row| Some(row.ratio()?.1));
    let known = ratios
        .filter(|ratio| ratio.high.is_finite())
        .map(|ratio| (ratio.confidence * 100.0).round());
    let (least, most) = known.fold((f64::INFINITY, 0.0), |(least, most), percent| {
        (f64::min(least, percent), f64::max(most, percent))
    });
    match most {
        0.0 => None,
        most if most == least => Some(format!("{most}%")),
        most => Some(format!("{least} to {most}%")),
    }
}

/// A machine and the versions, as an item of a list.
pub fn environment_line(environment: &Environment) -> String {
    let versions: Vec<String> =
        environment.versions.iter().map(|(title, version)| format!("{title} {version}")).collect();
    format!(
        "- {}, {} cores, {:.0} GiB, {}, Linux {}. Flagstone at `{}`; {}.\n",
        environment.processor,
        environment.cores,
        environment.memory_bytes as f64 / (1u64 << 30) as f64,
        environment.file_system,
        environment.kernel,
        environment.commit,
        versions.join(", ")
    )
}

/// A day, from seconds since 1970 (Howard Hinnant's `civil_from_days`).
fn date(unix_time: u64) -> String {
    let days = unix_time / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

/// Flagstone's rate over RocksDB's of each workload in one line.
pub fn glance(report: &Report) -> String {
    type Line<'a> = ((Workload, Memory, &'a str), Vec<&'a Row>);
    let mut workloads: Vec<Line<'_>> = Vec::new();
    for row in report.rows.iter().filter(|row| !row.part.starts_with("paced")) {
        // Parts of a bulk load are in its total.
        if row.cell.workload == Workload::BulkLoad && !row.is_main {
            continue;
        }
        let of = (row.cell.workload, row.cell.memory, row.part.as_str());
        match workloads.iter_mut().find(|(other, _)| *other == of) {
            Some((_, rows)) => rows.push(row),
            None => workloads.push((of, vec![row])),
        }
    }
    workloads.sort_by_key(|((workload, memory, _), _)| (*workload, *memory));
    let mut text =
        String::from("| workload | values | tuned | out of the box |\n|---|---|---:|---:|\n");
    for (_, rows) in workloads {
        let mut sizes: Vec<u32> = rows.iter().map(|row| row.cell.value_size).collect();
        sizes.sort_unstable();
        let values = match (sizes[0], sizes[sizes.len() - 1]) {
            (least, most) if least == most => size_text(least),
            (least, most) => format!("{} - {}", size_text(least), size_text(most)),
        };
        let ratios = |track| span_of_ratios(rows.iter().filter(|row| row.cell.track == track));
        let (tuned, defaults) = (ratios(Track::Tuned), ratios(Track::Defaults));
        let _ = writeln!(
            text,
            "| {}{} | {values} | {tuned} | {defaults} |",
            name(rows[0]),
            beside_what(rows[0])
        );
    }
    text
}

/// Which of RocksDB's ways a row is compared with, where that is not the fastest.
fn beside_what(row: &Row) -> String {
    match row.cell.rivals() {
        [only] if row.rate(*only).is_some() => {
            format!(", beside {}", only.title().trim_start_matches("RocksDB, "))
        }
        _ => String::new(),
    }
}

/// The least and the greatest of rows' ratios to RocksDB.
fn span_of_ratios<'a>(rows: impl Iterator<Item = &'a &'a Row>) -> String {
    let mut ratios: Vec<f64> = rows.filter_map(|row| Some(row.ratio()?.1.median)).collect();
    ratios.sort_by(f64::total_cmp);
    match ratios[..] {
        [] => "-".to_string(),
        [ratio] => format!("**{ratio:.2}**"),
        [least, .., most] => format!("**{least:.2} - {most:.2}**"),
    }
}

/// How many rows were won, and which fall short.
pub fn summary(report: &Report) -> String {
    let mut text =
        String::from("| track | rows | faster | even | slower | short of the target |\n");
    text.push_str("|---|---:|---:|---:|---:|---:|\n");
    for track in [Track::Tuned, Track::Defaults] {
        let rows = report.rows.iter().filter(|row| row.cell.track == track);
        let compared: Vec<(&Row, Estimate)> = rows
            .filter_map(|row| Some((row, row.ratio()?.1)))
            .filter(|(row, _)| !row.part.starts_with("paced"))
            .collect();
        if compared.is_empty() {
            continue;
        }
        let count =
            |verdict| compared.iter().filter(|(_, ratio)| ratio.verdict() == verdict).count();
        let short = compared.iter().filter(|(row, _)| row.is_short()).count();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {short} |",
            track_title(track),
            compared.len(),
            count(Verdict::Won),
            count(Verdict::Even),
            count(Verdict::Lost)
        );
    }
    let short: Vec<&Row> = report.rows.iter().filter(|row| row.is_short()).collect();
    if !short.is_empty() {
        text.push_str("\nSlower than RocksDB, or short of the target:\n\n");
    }
    for row in short {
        let Some((rival, ratio)) = row.ratio() else { continue };
        let target = row
            .cell
            .target(&row.part)
            .map_or(String::new(), |target| format!(", target {target:.2}"));
        let _ = writeln!(
            text,
            "- `{}` ({}): {} of {}{target}",
            row.cell,
            row.part,
            ratio_text(&ratio),
            rival.title()
        );
    }
    text
}

/// The tables of one family on one track; nothing if it has no rows.
pub fn section(report: &Report, track: Track, family: Family) -> Option<String> {
    let rows: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| row.cell.track == track && row.cell.workload.family() == family)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut text = rates(&rows);
    let modes: Vec<EngineName> =
        MODES.into_iter().filter(|mode| rows.iter().any(|row| row.rate(*mode).is_some())).collect();
    if modes.len() > 1 {
        let _ = write!(
            text,
            "\nBy RocksDB's ways with large values (elsewhere the fastest of them stands for it, and in reads BlobDB):\n\n{}",
            beside(&rows, &modes)
        );
    }
    let _ =
        write!(text, "\nLatencies in microseconds, Flagstone / RocksDB:\n\n{}", latencies(&rows));
    let _ = write!(text, "\nWhat it took, Flagstone / RocksDB:\n\n{}", resources(&rows));
    let peers: Vec<EngineName> =
        PEERS.into_iter().filter(|peer| rows.iter().any(|row| row.rate(*peer).is_some())).collect();
    if !peers.is_empty() {
        let _ = write!(
            text,
            "\nOthers, operations a second (Flagstone's ratio):\n\n{}",
            beside(&rows, &peers)
        );
    }
    if rows.iter().any(|row| row.rate(EngineName::Disk).is_some()) {
        let _ = write!(
            text,
            "\nThe disk alone, by the system calls that any engine needs (Flagstone's part of it, RocksDB's part):\n\n{}",
            beside_the_disk(&rows)
        );
    }
    Some(text)
}

/// How near to what the disk gives both engines are.
fn beside_the_disk(rows: &[&Row]) -> String {
    let mut text =
        format!("{HEAD} the disk alone /s | Flagstone | RocksDB |\n{HEAD_RULE}---:|---:|---:|\n");
    for row in rows.iter().filter(|row| row.rate(EngineName::Disk).is_some()) {
        let rival = row.ratio().map_or(EngineName::Rocksdb, |(rival, _)| rival);
        let part = |engine| {
            row.ratio_of(engine, EngineName::Disk)
                .map_or("-".to_string(), |ratio| ratio_text(&ratio))
        };
        let _ = writeln!(
            text,
            "{} {} | {} | {} |",
            head(row),
            grouped(row.rate(EngineName::Disk)),
            part(EngineName::Flagstone),
            part(rival)
        );
    }
    text
}

/// What a row is about, as the first cells of a line.
fn head(row: &Row) -> String {
    let cell = &row.cell;
    let class =
        if cell.workload.only_reads() { "-".to_string() } else { value_name(cell.durability) };
    format!("| {} | {} | {} | {class} |", name(row), size_text(cell.value_size), cell.threads)
}

/// The workload, the part that it is about, and the memory.
fn name(row: &Row) -> String {
    let cell = &row.cell;
    let mut name = value_name(cell.workload);
    if !row.is_main
        || matches!(
            cell.workload,
            Workload::BulkLoad | Workload::ReadWhileWriting | Workload::Overload
        )
    {
        let _ = write!(name, ", {}", row.part);
    }
    name.push_str(match cell.memory {
        Memory::Ample => "",
        Memory::Quarter => ", memory for a quarter",
        Memory::Cold => ", cold",
        Memory::Direct => ", cold, direct",
    });
    name
}

const HEAD: &str = "| workload | value | threads | class |";
const HEAD_RULE: &str = "|---|---:|---:|---|";

fn rates(rows: &[&Row]) -> String {
    let mut text = format!("{HEAD} Flagstone /s | RocksDB /s | ratio | interval | target | |\n");
    let _ = writeln!(text, "{HEAD_RULE}---:|---:|---:|---|---:|---|");
    // What is done at a set pace has no rate of its own.
    for row in rows.iter().filter(|row| !row.part.starts_with("paced")) {
        let ours = row.rate(EngineName::Flagstone);
        let Some((rival, ratio)) = row.ratio() else {
            let _ = writeln!(text, "{} {} | | | | | |", head(row), grouped(ours));
            continue;
        };
        let verdict = match (ratio.verdict(), row.is_short()) {
            (Verdict::Lost, _) => "slower",
            (Verdict::Even, true) => "even, short",
            (Verdict::Even, false) => "even",
            (Verdict::Won, true) => "faster, short",
            (Verdict::Won, false) => "faster",
        };
        let target =
            row.cell.target(&row.part).map_or(String::new(), |target| format!("{target:.1}"));
        let (low, high) = (ratio.low, ratio.high);
        let interval =
            if high.is_finite() { format!("{low:.2} - {high:.2}") } else { "too few".to_string() };
        let _ = writeln!(
            text,
            "{} {} | {} | **{:.2}** | {interval} | {target} | {verdict} |",
            head(row),
            grouped(ours),
            grouped(row.rate(rival)),
            ratio.median
        );
    }
    text
}

fn beside(rows: &[&Row], engines: &[EngineName]) -> String {
    let mut text = HEAD.to_string();
    for engine in engines {
        let _ = write!(text, " {} |", engine.title());
    }
    let _ = writeln!(text, "\n{HEAD_RULE}{}", "---:|".repeat(engines.len()));
    for row in rows {
        if engines.iter().all(|engine| row.rate(*engine).is_none()) {
            continue;
        }
        text.push_str(&head(row));
        for engine in engines {
            let _ = match (row.rate(*engine), row.ratio_to(*engine)) {
                (Some(rate), Some(ratio)) => {
                    write!(text, " {} ({}) |", grouped(Some(rate)), ratio_text(&ratio))
                }
                (rate, _) => write!(text, " {} |", grouped(rate)),
            };
        }
        text.push('\n');
    }
    text
}

/// One figure of both engines: `1.5 / 2.5`.
fn both(row: &Row, figure: impl Fn(&Run, &Part) -> Option<f64>) -> String {
    let rival = row.ratio().map_or(EngineName::Rocksdb, |(rival, _)| rival);
    let text = |engine| row.median(engine, &figure).map_or("-".to_string(), short_number);
    format!("{} / {}", text(EngineName::Flagstone), text(rival))
}

fn latencies(rows: &[&Row]) -> String {
    let mut text = format!("{HEAD} p50 | p99 | p99.9 | max | slowest second, operations |\n");
    let _ = writeln!(text, "{HEAD_RULE}---:|---:|---:|---:|---:|");
    for row in rows {
        // A compaction is one operation of many.
        if row.part == "compact" || row.part == "total" {
            continue;
        }
        let _ = writeln!(
            text,
            "{} {} | {} | {} | {} | {} |",
            head(row),
            both(row, |_, part| Some(part.latency_us.p50)),
            both(row, |_, part| Some(part.latency_us.p99)),
            both(row, |_, part| Some(part.latency_us.p999)),
            both(row, |_, part| Some(part.latency_us.max)),
            both(row, |_, part| part.slowest_second.map(|count| count as f64)),
        );
    }
    text
}

fn resources(rows: &[&Row]) -> String {
    let mut text = format!(
        "{HEAD} CPU us an operation | peak memory, MiB | written / user bytes | device / user bytes | read bytes an \
         operation | disk / live bytes | settled after, s |\n"
    );
    let _ = writeln!(text, "{HEAD_RULE}---:|---:|---:|---:|---:|---:|---:|");
    let per = |bytes: u64, over: u64| (over > 0).then(|| bytes as f64 / over as f64);
    for row in rows.iter().filter(|row| row.is_main) {
        let _ = writeln!(
            text,
            "{} {} | {} | {} | {} | {} | {} | {} |",
            head(row),
            both(row, |run, _| Some(run.settled.cpu_seconds * 1e6 / run.operations.max(1) as f64)),
            both(row, |run, _| Some(run.peak_memory_bytes as f64 / (1u64 << 20) as f64)),
            both(row, |run, _| per(run.settled.write_bytes, run.user_write_bytes)),
            both(row, |run, _| per(run.settled.device_write_bytes?, run.user_write_bytes)),
            both(row, |run, _| per(run.settled.read_bytes, run.operations)),
            both(row, |run, _| per(run.disk_bytes, run.live_bytes)),
            both(row, |run, _| Some(run.settle_seconds)),
        );
    }
    text
}

fn ratio_text(ratio: &Estimate) -> String {
    format!("{:.2}", ratio.median)
}

/// Three digits that matter.
fn short_number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        size if size >= 100.0 => grouped(Some(value)),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `1,234,567`.
pub fn grouped(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_string() };
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
