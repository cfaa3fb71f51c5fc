use super::*;

#[test]
fn names_are_recognised() {
    let n = FileNumber;
    for (name, kind) in [
        ("000007.log", Some(FileKind::Wal(n(7)))),
        ("7.sst", Some(FileKind::Table(n(7)))),
        ("000012.sst.trash", Some(FileKind::Trash(n(12)))),
        ("000012.blob3.trash", Some(FileKind::Trash(n(12)))),
        ("000012.log.trash", Some(FileKind::Trash(n(12)))),
        ("000012.trash", None),
        ("000012.txt.trash", None),
        ("a.sst.trash", None),
        ("1234567.ldb", Some(FileKind::Table(n(1_234_567)))),
        ("000010.blob", Some(FileKind::Blob(n(10)))),
        ("MANIFEST-000005", Some(FileKind::Manifest(n(5)))),
        ("OPTIONS-000005", Some(FileKind::Options(n(5)))),
        ("OPTIONS-000005.dbtmp", Some(FileKind::Temporary(n(5)))),
        ("000005.dbtmp", Some(FileKind::Temporary(n(5)))),
        ("CURRENT", Some(FileKind::Current)),
        ("LOG.old.123", Some(FileKind::InfoLog)),
        ("LOG.old", Some(FileKind::InfoLog)),
        ("RESERVE", Some(FileKind::Reserve)),
        ("FOLLOWER", Some(FileKind::Follower)),
        ("OWNER", Some(FileKind::Owner)),
        ("MANIFEST-", None),
        ("MANIFEST-3x", None),
        ("+7.log", None),
        ("7.txt", None),
        ("99999999999999999999999.sst", None),
        ("photo.jpg", None),
        ("", None),
    ] {
        assert_eq!(FileKind::parse(name), kind, "{name}");
    }
}

#[test]
fn made_names_are_recognised_again() {
    let path = table(Path::new("/db"), FileNumber(42));
    assert_eq!(path, Path::new("/db/000042.sst"));
}
