//! Numbers as RocksDB's reports write them, which tools read.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_rocksdb() {
        assert_eq!([bytes(0), bytes(1536), bytes(5 << 40)], ["0.00 KB", "1.50 KB", "5.00 TB"]);
        assert_eq!(bytes(u64::MAX), "16777216.00 TB");
        assert_eq!([9999, 10_000, 12_345_678, 12_345_678_901].map(count), ["9999", "10K", "12M", "12G"]);
        assert_eq!(micros(3_723_004_000), "01:02:3.004 H:M:S");
    }
}
