//! `cargo run -p tidy`: tells which rules the repository breaks, and fails if it breaks any.

#![expect(clippy::print_stderr, reason = "that is what it is for")]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let offences = tidy::check_repository(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for offence in &offences {
        eprintln!("{}:{}: {}", offence.file, offence.line, offence.rule);
    }
    if offences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
