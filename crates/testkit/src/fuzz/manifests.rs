//! Version edits, and the recovery of a whole MANIFEST.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Comparator, DEFAULT_COLUMN_FAMILY_NAME, DataPaths};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::manifest::{
    self, FamilySpec, ManifestSettings, RecoverOptions, VersionEdit, VersionSet,
};

use super::input::{ok, put_file};
use super::mend;

const DIRECTORY: &str = "/db";
const MANIFEST: &str = "/db/MANIFEST-000005";

/// Decodes an edit; encoded again it must mean the same.
pub fn manifest_edit(data: &[u8]) {
    let Some(edit) = ok(VersionEdit::decode(data)) else { return };
    assert!(!format!("{edit} {edit:?}").is_empty());
    let mut encoded = Vec::new();
    edit.encode(&mut encoded);
    assert_eq!(VersionEdit::decode(&encoded).expect("what was encoded"), edit);
}

/// Recovers from a MANIFEST, as it is and with its checksums put right; to read and to write.
pub fn manifest(data: &[u8]) {
    let mut mended = data.to_vec();
    mend::log(&mut mended);
    for bytes in [data, &mended] {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new(DIRECTORY)).expect("memory");
        put_file(&fs, "/db/CURRENT", b"MANIFEST-000005\n");
        put_file(&fs, MANIFEST, bytes);
        if let Some(edits) = ok(manifest::dump(&fs, Path::new(MANIFEST))) {
            edits.take(data.len() + 1).for_each(|(_, edit)| drop(ok(edit)));
        }
        let env = Env::memory().with_fs(Arc::new(fs));
        let mut names = vec![DEFAULT_COLUMN_FAMILY_NAME.to_string()];
        if let Some(listed) = ok(manifest::list_column_families(&env, Path::new(DIRECTORY))) {
            names = listed.into_iter().map(|family| family.name).collect();
        }
        for read_only in [true, false] {
            recover(&env, &names, read_only);
        }
    }
}

fn recover(env: &Env, names: &[String], read_only: bool) {
    let spec = |name: &String| FamilySpec {
        name: name.clone(),
        comparator: Comparator::Bytewise,
        persists_timestamps: true,
        paths: DataPaths::single(Path::new(DIRECTORY)),
        num_levels: 7,
    };
    let options = RecoverOptions {
        families: names.iter().map(spec).collect(),
        read_only,
        settings: ManifestSettings::default(),
    };
    let Some(versions) = ok(VersionSet::recover(env.clone(), Path::new(DIRECTORY), options)) else {
        return;
    };
    ok(manifest::check_files(&versions, &mut || {}));
    versions.oldest_log_number();
    for family in versions.families() {
        assert!(!format!("{:?}", family.current).is_empty());
    }
}
