//! A build without codecs: what would need one is refused, and the error names the feature.
//! `cargo test -p flagstone --no-default-features --test left_out`

#![cfg(not(any(
    feature = "bzip2",
    feature = "lz4",
    feature = "snappy",
    feature = "zlib",
    feature = "zstd"
)))]

use std::path::Path;

use flagstone::{Code, CompressionType, Db, Error};

fn names(error: &Error, feature: &str) {
    assert_eq!(error.code(), Code::NotSupported, "{error}");
    assert!(error.message().contains(&format!("with its feature `{feature}`")), "{error}");
}

#[test]
fn a_file_of_a_codec_that_was_left_out_is_refused() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8");
    for (fixture, feature) in [
        ("comp-bzip2", "bzip2"),
        ("comp-lz4", "lz4"),
        ("comp-lz4hc", "lz4"),
        ("comp-snappy", "snappy"),
        ("comp-zlib", "zlib"),
        ("comp-zstd", "zstd"),
        ("comp-zstddict", "zstd"),
    ] {
        let outcome = Db::builder(fixtures.join(fixture)).open_read_only();
        let error = outcome.and_then(|db| db.iter().try_for_each(|entry| entry.map(drop)));
        names(&error.expect_err(fixture), feature);
    }
}

#[test]
fn an_option_that_asks_for_a_codec_that_was_left_out_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("db");
    for kind in CompressionType::ALL {
        let Some(feature) = kind.feature() else { continue };
        let open = Db::builder(&path).options(|options| options.cf.compression = kind).open();
        let error = open.expect_err(feature);
        names(&error, feature);
        assert!(error.message().contains("option 'compression'"), "{error}");
        let blobs = Db::builder(&path)
            .column_family("blobs", |family| family.blob_compression_type = Some(kind))
            .open();
        names(&blobs.expect_err(feature), feature);
    }
    let set = |options: &mut flagstone::Options| options.set("wal_compression", "kZSTD").unwrap();
    names(&Db::builder(&path).options(set).open().expect_err("compressed logs"), "zstd");
    assert!(!path.join("CURRENT").exists(), "nothing was made");

    let db = Db::open(&path).expect("by default nothing is compressed");
    assert_eq!(db.options().compression, CompressionType::None);
    db.put("key", vec![7; 100_000]).unwrap();
    db.flush().unwrap();
    let live = db.set_options(&[("compression", "kZSTD")]);
    names(&live.expect_err("a live option"), "zstd");
    assert_eq!(db.get("key").unwrap().unwrap(), &[7; 100_000][..]);
}
