use super::*;

const FIRST: &str = "\
1700000000
42
metadata 006E69
3
private/3/MANIFEST-000005 crc32 7
shared_checksum/000012_sABCDEF0123456789ABCD_1234.sst crc32 4294967295
shared_checksum/000013_77_99.blob crc32 77
";

fn refused(text: &str) -> String {
    let error = Meta::parse(text.as_bytes(), 3).unwrap_err();
    format!("{:?}: {error}", error.code())
}

#[test]
fn schema_1_reads_and_writes_as_rocksdb_does() {
    let meta = Meta::parse(FIRST.as_bytes(), 3).unwrap();
    assert_eq!((meta.timestamp, meta.sequence), (1_700_000_000, 42));
    assert_eq!(meta.app_metadata, b"\x00ni");
    let seen: Vec<_> = meta
        .files
        .iter()
        .map(|file| (file.path.database_name(), file.known_size(), file.crc32c.unwrap()))
        .collect();
    let expected = [
        ("MANIFEST-000005".to_string(), None, 7),
        ("000012.sst".to_string(), Some(1234), u32::MAX),
        ("000013.blob".to_string(), Some(99), 77),
    ];
    assert_eq!(seen, expected);
    assert_eq!(meta.encode(1), FIRST);
}

#[test]
fn schema_2_has_sizes_temperatures_and_excluded_files() {
    let text = "\
schema_version 2.1
1
2
later field
1
private/3/CURRENT crc32 7 size 16 temp kWarm new 1
shared_checksum/000012_s0A.sst ni::excluded true
// FOOTER
later field
";
    let meta = Meta::parse(text.as_bytes(), 3).unwrap();
    assert_eq!(meta.files[0].size, Some(16));
    assert_eq!(meta.files[0].temperature, Temperature::WARM);
    assert_eq!(meta.excluded[0].named_size(), None, "a session, and no size");
    let written = meta.encode(2);
    assert_eq!(
        written,
        "schema_version 2.1\n1\n2\n1\nprivate/3/CURRENT crc32 7 size 16 temp kWarm\n\
         shared_checksum/000012_s0A.sst ni::excluded true\n"
    );
    assert_eq!(Meta::parse(written.as_bytes(), 3).unwrap(), meta);
}

#[test]
fn what_a_later_release_forbids_to_ignore_is_not_ignored() {
    for text in [
        "schema_version 3\n1\n2\n0\n",
        "schema_version 2.1\n1\n2\nni::escape uri\n0\n",
        "schema_version 2.1\n1\n2\n1\nprivate/3/CURRENT ni::escape uri\n",
        "schema_version 2.1\n1\n2\n1\nprivate/3/CURRENT ni::excluded maybe\n",
        "schema_version 2.1\n1\n2\n0\n// FOOTER\nni::sum 1\n",
    ] {
        assert!(refused(text).starts_with("NotSupported"), "{text}: {}", refused(text));
    }
}

#[test]
fn every_cut_of_a_meta_file_is_refused() {
    for end in 0..FIRST.len() {
        let error = Meta::parse(&FIRST.as_bytes()[..end], 3).unwrap_err();
        assert!(error.is_corruption(), "{end}: {error}");
    }
}

#[test]
fn no_path_leads_out_of_the_directory() {
    let line = |path: &str| refused(&format!("1\n2\n1\n{path} crc32 1\n"));
    for path in [
        "/etc/passwd",
        "../000001.sst",
        "private/../000001.sst",
        "private/3/../CURRENT",
        "private/3/sub/CURRENT",
        "private/03/CURRENT",
        "private/0/CURRENT",
        "private/4/CURRENT",
        "shared/..",
        "shared/",
        "shared_checksum/.000001.sst.tmp",
        "shared_checksum/notes_1_2.txt",
        "meta/3",
    ] {
        assert!(line(path).starts_with("Corruption"), "{path}");
    }
}

#[test]
fn numbers_and_fields_are_checked() {
    for (text, expected) in [
        ("1\n2\n2\nprivate/3/CURRENT crc32 1\n", "1 files are listed, 2 are announced"),
        ("1\n2\n1\nprivate/3/CURRENT\n", "has no checksum"),
        ("1\n2\n1\nprivate/3/CURRENT crc32\n", "no value"),
        ("1\n2\n1\nprivate/3/CURRENT crc32 4294967296\n", "no checksum"),
        ("1\n2\n1\nprivate/3/CURRENT crc32 +1\n", "no checksum"),
        ("1\n2\nmetadata 0\n0\n", "hexadecimal"),
        ("1\n2\nother 0\n0\n", "unknown field"),
        ("-1\n2\n0\n", "no timestamp"),
        ("\n2\n0\n", "no timestamp"),
    ] {
        let error = refused(text);
        assert!(error.starts_with("Corruption") && error.contains(expected), "{text}: {error}");
    }
}
