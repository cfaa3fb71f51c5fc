//! Write-ahead log: format, writer, reader, recovery.
