//! Numbers as RocksDB's reports write them, for tools to read; and what they said, for the doctor.

/// Bytes of a MB and GB in the reports.
pub(super) const MB: f64 = (1 << 20) as f64;
pub(super) const GB: f64 = (1 << 30) as f64;

/// RocksDB's `BytesToHumanString`.
pub(super) fn bytes(bytes: u64) -> String {
    let mut size = bytes as f64 / 1024.0;
    let mut units = ["KB", "MB", "GB", "TB"].iter();
    let mut unit = units.next().unwrap_or(&"");
    while size >= 1024.0
        && let Some(larger) = units.next()
    {
        (size, unit) = (size / 1024.0, larger);
    }
    format!("{size:.2} {unit}")
}

/// RocksDB's `NumberToHumanString`.
pub(super) fn count(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}K", count / 1000),
        10_000_000..10_000_000_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}G", count / 1_000_000_000),
    }
}

/// RocksDB's `AppendHumanMicros` in its fixed form.
pub(super) fn micros(micros: u64) -> String {
    let (hours, minutes) = (micros / 3_600_000_000, micros / 60_000_000 % 60);
    format!("{hours:02}:{minutes:02}:{:05.3} H:M:S", (micros % 60_000_000) as f64 / 1e6)
}

/// What [`count`] says, back: at most a thousandth or, of the smallest with a unit, a tenth too
/// small.
pub(crate) fn parse_count(text: &str) -> Option<u64> {
    let units = [('K', 1_000), ('M', 1_000_000), ('G', 1_000_000_000)];
    let unit = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(*unit)?, *size)));
    let (digits, size) = unit.unwrap_or((text, 1));
    digits.parse::<u64>().ok().map(|number| number.saturating_mul(size))
}

/// What [`bytes`] says, back, whatever follows it.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let mut words = text.split(' ');
    let number = words.next()?.parse::<f64>().ok()?;
    let unit =
        ["KB", "MB", "GB", "TB"].iter().position(|unit| words.clone().next() == Some(unit))?;
    Some((number * 1024f64.powi(unit as i32 + 1)) as u64)
}

/// What [`micros`] says, back, without its last word: `HOURS:MINUTES:SECONDS`.
pub(crate) fn parse_micros(text: &str) -> Option<u64> {
    let mut parts = text.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some(((hours * 3600.0 + minutes * 60.0 + seconds) * 1e6).round() as u64)
}

#[cfg(test)]
mod tests;
