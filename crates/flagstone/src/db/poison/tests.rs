use super::*;
use crate::base::Code;
use crate::options::BackgroundErrorReason;

fn full_disk() -> Error {
    Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace)
}

#[test]
fn a_full_disk_passes_but_a_failed_sync_stays() {
    let poison = Poison::default();
    poison.record(BackgroundErrorReason::Flush, &full_disk());
    assert!(poison.check().is_err());
    poison.resume();
    poison.check().unwrap();

    poison.record(BackgroundErrorReason::Flush, &Error::new(Code::IoError, "sync failed"));
    poison.record(BackgroundErrorReason::Flush, &full_disk());
    poison.resume();
    let error = poison.check().unwrap_err();
    assert_eq!(error.subcode(), SubCode::Poisoned);
    assert!(error.message().contains("sync failed"), "{error}");
}

/// A write that found the database suspended just when it resumed was refused as corruption,
/// "unknown background error".
#[test]
fn a_write_that_comes_as_the_database_resumes_is_not_refused() {
    let poison = Poison::default();
    poison.record(BackgroundErrorReason::Flush, &full_disk());
    // As far as a writer gets that sees the level before it changes.
    let seen = poison.level.load(Ordering::Acquire);
    poison.resume();
    assert_eq!((seen, poison.refusal().map(|error| error.to_string())), (SUSPENDED, None));
}

#[test]
fn a_failed_sync_is_fatal_even_on_a_full_disk() {
    let poison = Poison::default();
    poison.record_fatal(BackgroundErrorReason::Write, &full_disk());
    poison.resume();
    assert!(poison.is_fatal());
}
