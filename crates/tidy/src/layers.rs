//! Who may import whom: modules of the engine, and rooms within `db`.

/// The engine's modules from the bottom up; a module may use its own layer and those below.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["env"],
    &["cache", "batch", "expiry", "trace", "figures"],
    &["wal", "memtable", "sst", "blob"],
    &["manifest", "options"],
    &["iter", "compaction"],
    &["db"],
    &["salvage", "doctor", "ttl", "transactions", "ingest", "backup", "replay"],
    &["front"],
];

/// The rooms within `db` from the bottom up. `DbInner` is the engine, put together of the parts
/// below it; what stands above are features.
const ROOMS: &[&[&str]] = &[
    &["statistics", "stats_history", "poison", "events", "settings", "budget", "limits", "memory"],
    &["write_control", "wal_space", "info_log"],
    &["context"],
    &["background"],
    &["family"],
    &["tables"],
    &["disk"],
    &["tree"],
    &["reading"],
    &["writing"],
    &["options_file"],
    &["jobs"],
    &["DbInner"],
    &["handle"],
    &["open_files", "trace"],
    &["inner"],
    &["opening"],
    &[
        "async_read",
        "checkpoint",
        "checks",
        "column_family",
        "contents",
        "copied_files",
        "destroy",
        "exports",
        "facts",
        "ingestion",
        "live_files",
        "maintenance",
        "memory_report",
        "offline",
        "pins",
        "properties",
        "ranges",
        "space",
        "two_phase",
        "updates",
        "value_pieces",
        "wal_files",
        "write_callback",
    ],
];

/// Where the engine's face lists its names: there, and only by `pub use`.
const FACE: &str = "db/mod.rs";

/// What is wrong with the imports of this line, in production code.
pub fn upward_import(file: &str, line: &str) -> Option<String> {
    let inside = file.strip_prefix("crates/flagstone/src/")?;
    let code = line.split("//").next().unwrap_or_default();
    if inside == FACE {
        return if code.starts_with("pub use ") { None } else { between_modules(inside, code) };
    }
    between_modules(inside, code).or_else(|| between_rooms(inside, code))
}

fn between_modules(inside: &str, code: &str) -> Option<String> {
    let module = inside.split(['/', '.']).next()?;
    let own = rank_of(LAYERS, module)?;
    names_after(code, "crate::").find_map(|used| {
        let is_above = rank_of(LAYERS, used).is_some_and(|rank| rank > own);
        is_above.then(|| format!("{module} stands below {used} and must not use it"))
    })
}

fn between_rooms(inside: &str, code: &str) -> Option<String> {
    let room = inside.strip_prefix("db/")?.split(['/', '.']).next()?;
    if is_of_tests(inside) {
        return None;
    }
    let Some(own) = rank_of(ROOMS, room) else {
        return Some(format!("db/{room} has no place among the rooms of db"));
    };
    if code.contains("super::") {
        return Some("a path from its parent; begin at the crate".to_string());
    }
    names_after(code, "crate::db::").find_map(|used| match rank_of(ROOMS, used) {
        None => Some(format!("{used} is imported from db; name the file that has it")),
        Some(rank) if rank > own => Some(format!("{room} stands below {used} and must not use it")),
        Some(_) => None,
    })
}

fn is_of_tests(inside: &str) -> bool {
    inside.ends_with("tests.rs") || inside.contains("/tests/") || inside.ends_with("testing.rs")
}

fn rank_of(layers: &[&[&str]], name: &str) -> Option<usize> {
    layers.iter().position(|layer| layer.contains(&name))
}

/// The name after each occurrence of a prefix.
fn names_after<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(prefix).map(move |(at, _)| {
        let rest = &code[at + prefix.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}
