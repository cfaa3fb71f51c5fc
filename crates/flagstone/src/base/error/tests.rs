use super::*;

#[test]
fn an_error_says_what_and_where() {
    let error = Error::corruption("block checksum mismatch").at("/db/000007.sst").at_offset(4096);
    assert_eq!(
        error.to_string(),
        "corruption: block checksum mismatch (/db/000007.sst, offset 4096)"
    );
}

/// A terminal did what such a name told it.
#[test]
fn an_error_is_one_line_whatever_its_file_is_called() {
    let error = Error::corruption("x").at("/d\u{e9}b/\u{1b}[31m\n7.sst");
    assert_eq!(error.to_string(), "corruption: x (/d\u{e9}b/\\u{1b}[31m\\n7.sst)");
}

#[test]
fn the_first_place_named_stays() {
    let error = Error::corruption("x").at("inner").at("outer").at_offset(1).at_offset(2);
    assert_eq!((error.path(), error.offset()), (Some(Path::new("inner")), Some(1)));
}

#[test]
fn what_helps_can_be_told_apart() {
    let error = Error::corruption("CURRENT names nothing")
        .advise(Remedy::RestoreWal)
        .context("not opened")
        .at("/db");
    assert_eq!(
        error.to_string(),
        "corruption: not opened: CURRENT names nothing; restore the WAL from a copy (/db)"
    );
    assert_eq!(error.remedy(), Some("restore the WAL from a copy"));
    let bare = error.without_remedy();
    assert_eq!(bare.to_string(), "corruption: not opened: CURRENT names nothing (/db)");
    assert_eq!(bare.remedy(), None);
}

/// Writers of pieces told everybody of an error of kind `Other`.
#[test]
fn an_error_keeps_its_kind_on_its_way_through_std_io() {
    use std::io::ErrorKind::{InvalidData, StorageFull};
    let full = Error::io("append", "f", std::io::Error::from(StorageFull)).context("a value");
    let told = std::io::Error::from(full);
    assert_eq!(
        (told.kind(), told.to_string().contains("a value: cannot append")),
        (StorageFull, true)
    );
    assert!(told.downcast::<Error>().is_ok());
    assert_eq!(std::io::Error::from(Error::corruption("x")).kind(), InvalidData);
    // `write_all` and its like would try that again, though the call has failed for good.
    let interrupted = Error::io("allocate", "f", std::io::ErrorKind::Interrupted.into());
    assert_eq!(std::io::Error::from(interrupted).kind(), std::io::ErrorKind::Other);
}

#[test]
fn what_this_process_may_not_do_is_no_fault_of_the_file() {
    for refused in [Errno::ACCESS, Errno::PERM, Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
        assert!(
            Error::io("open", "f", refused.into()).context("a table").is_refused(),
            "{refused}"
        );
    }
    for fault in [Errno::IO, Errno::NOENT, Errno::NOSPC] {
        assert!(!Error::io("read", "f", fault.into()).is_refused(), "{fault}");
    }
    assert!(!Error::corruption("x").is_refused());
}

#[test]
fn a_full_disk_is_recognised() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    assert_eq!(Error::io("append", "f", full).subcode(), SubCode::NoSpace);
}
