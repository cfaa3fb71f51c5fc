//! What the documents say is true where a test can tell.

use std::path::{Path, PathBuf};

use flagstone::options::known::KNOWN;
use flagstone::options::table::Settings;
use flagstone::options::{CfSettings, DbSettings, TableSettings};

const DIFFERENCES: &str = include_str!("../../../docs/rocksdb-differences.md");
const FEATURES: &str = include_str!("../../../docs/features.md");

/// What RocksDB's `DB` can be asked for (`db.h` of 11.8), but for handles of C++ and the steps of
/// an ingestion.
const CALLS_OF_ROCKSDB: &str = "\
    AbortAllCompactions ClipColumnFamily Close CompactFiles CompactRange ContinueBackgroundWork \
    CreateColumnFamilies CreateColumnFamily CreateColumnFamilyWithImport Delete DeleteRange \
    DisableFileDeletions DisableManualCompaction DropColumnFamilies DropColumnFamily EnableAutoCompaction \
    EnableFileDeletions EnableManualCompaction EndBlockCacheTrace EndIOTrace EndTrace Flush FlushWAL Get \
    GetAggregatedIntProperty GetAllColumnFamilyMetaData GetApproximateMemTableStats GetApproximateSizes \
    GetAsync GetColumnFamilyMetaData GetCreationTimeOfOldestFile GetCurrentWalFile GetDBOptions \
    GetDbIdentity GetDbSessionId GetEntity GetFullHistoryTsLow GetIntProperty GetLatestSequenceNumber \
    GetLiveFiles GetLiveFilesChecksumInfo GetLiveFilesMetaData GetLiveFilesStorageInfo GetMapProperty \
    GetMergeOperands GetNewestUserDefinedTimestamp GetOptions GetPropertiesOfAllTables \
    GetPropertiesOfTablesByLevel GetPropertiesOfTablesInRange GetProperty GetSnapshot GetSortedWalFiles \
    GetStatsHistory GetUpdatesSince IncreaseFullHistoryTsLow IngestExternalFile IngestExternalFiles \
    IngestWriteBatchWithIndex KeyMayExist LockWAL Merge MultiGet MultiGetAsync MultiGetEntity \
    NewAttributeGroupIterator NewCoalescingIterator NewDefaultReplayer NewIterator NewIterators \
    NewMultiScan PauseBackgroundWork Put PutEntity ReleaseSnapshot ResetStats Resume ResumeAllCompactions \
    SetDBOptions SetOptions SingleDelete StartBlockCacheTrace StartIOTrace StartTrace SuggestCompactRange \
    SyncWAL TryCatchUpWithPrimary UnlockWAL VerifyChecksum VerifyFileChecksums WaitForCompact Write \
    WriteWithCallback";

/// What those who embed RocksDB, by its C interface, too, use beside its `DB`.
const CALLS_BESIDE_DB: &str = "\
    BackupEngine CancelAllBackgroundWork Checkpoint CompactionFilter Comparator DBWithTTL DestroyDB ExportColumnFamily \
    GetOptionsFromString GetPinnedUsage GetSupportedCompressions GetUsage HyperClockCache IncreaseParallelism Iterate \
    LoadLatestOptions LoadOptionsFromFile LowerThreadPoolIOPriority MemoryAllocator MergeOperator NewLRUCache NewMemEnv \
    OpenAndTrimHistory OptimizeForPointLookup OptimizeForSmallDb OptimizeLevelStyleCompaction \
    OptimizeUniversalStyleCompaction PopSavePoint PrepareForBulkLoad PutLogData RateLimiter RepairDB RollbackToSavePoint \
    SeekForPrev SetCapacity SetSavePoint SliceTransform SstFileManager Statistics WaitForCompactOptions \
    memtable_insert_hint_per_batch prefix_same_as_start total_order_seek";

/// Some thirty calls were neither there nor named, and of what stands beside `DB` as many.
#[test]
fn every_call_of_rocksdb_s_is_named() {
    let words = |page: &'static str| page.split('`').skip(1).step_by(2);
    let named: Vec<&str> = words(DIFFERENCES).chain(words(FEATURES)).collect();
    let calls = CALLS_OF_ROCKSDB.split_whitespace().chain(CALLS_BESIDE_DB.split_whitespace());
    let missing: Vec<&str> = calls.filter(|call| !named.contains(call)).collect();
    assert!(missing.is_empty(), "docs/features.md says nothing of {missing:?}");
}

/// A row ends with files or folders of this one, with modules, or with a crate and its own.
#[test]
fn tests_that_the_list_of_features_names_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder");
    let mut count = 0;
    for row in FEATURES.lines().filter(|row| row.starts_with("| ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let tests = cells.last().expect("a cell").trim_end_matches('|').trim();
        if cells.len() < 3 || tests == "Tests" {
            continue;
        }
        let (package, names) = match tests.strip_prefix('`').and_then(|rest| rest.split_once("`: "))
        {
            Some((package, names)) => (package, names),
            None => ("flagstone", tests),
        };
        for name in names.split(", ").filter(|name| !name.is_empty()) {
            let folder = crates.join(package);
            let bare = name.trim_matches('`').replace("::", "/");
            let of = if name.starts_with('`') { folder.join("src") } else { folder.join("tests") };
            let has = |path: PathBuf| path.exists();
            let found = has(of.join(format!("{bare}.rs")))
                || has(of.join(&bare))
                || has(of.join("db").join(format!("{bare}.rs")));
            assert!(found, "docs/features.md: no test {name} of {package}");
            count += 1;
        }
    }
    assert!(count > 100, "only {count} tests are named");
}

/// Names that are accepted at their default only.
fn refused() -> impl Iterator<Item = &'static str> {
    let sources = [
        include_str!("../src/options/db_settings.rs"),
        include_str!("../src/options/cf_settings.rs"),
        include_str!("../src/options/table_settings.rs"),
    ];
    let planned = sources.into_iter().flat_map(str::lines).filter_map(|line| {
        line.trim_start().strip_prefix("planned ").and_then(|rest| rest.split(':').next())
    });
    planned.chain(KNOWN.iter().map(|known| known.name))
}

#[test]
fn every_option_that_is_refused_is_listed() {
    let missing: Vec<&str> =
        refused().filter(|name| !DIFFERENCES.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/rocksdb-differences.md does not name {missing:?}");
}

/// The lists stand at the end.
#[test]
fn every_option_that_is_listed_as_refused_is() {
    let (_, lists) = DIFFERENCES.split_once("Accepted at the default only").expect("the lists");
    let refused: Vec<&str> = refused().collect();
    let names: Vec<&str> = lists.split('`').skip(1).step_by(2).collect();
    assert!(names.len() > 80, "only {}", names.len());
    let others: Vec<_> = names.iter().filter(|name| !refused.contains(name)).collect();
    assert!(others.is_empty(), "docs/rocksdb-differences.md says that {others:?} are refused");
}

#[test]
fn options_that_tuning_names_exist() {
    let tuning = include_str!("../../../docs/tuning.md");
    let rows: Vec<&str> = [DbSettings::ROWS, CfSettings::ROWS, TableSettings::ROWS]
        .concat()
        .iter()
        .map(|row| row.name)
        .collect();
    let set = tuning.split('`').skip(1).step_by(2).filter_map(|code| code.split_once('='));
    for (name, _) in
        set.filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
    {
        assert!(rows.contains(&name), "docs/tuning.md sets '{name}', which is no option");
    }
}

#[test]
fn calls_that_the_documents_name_exist() {
    let source = sources(vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")]);
    let tuning = include_str!("../../../docs/tuning.md");
    let documents = [DIFFERENCES, FEATURES, tuning, include_str!("../../../README.md")];
    let owners = "Db:: TtlDb:: Iter:: ColumnFamily:: CompactionControl:: WriteBatch:: Family:: View:: Cursor:: Builder:: \
                  Secondary:: Transaction::";
    let owners: Vec<&str> = owners.split(' ').collect();
    let mut seen = 0;
    for code in documents.iter().flat_map(|text| text.split('`').skip(1).step_by(2)) {
        let call = owners.iter().find_map(|owner| code.strip_prefix(owner));
        let Some(name) = call.and_then(|call| call.split(['(', '{']).next()) else { continue };
        seen += 1;
        let is_there =
            ["(", "<"].iter().any(|next| source.contains(&format!("pub fn {name}{next}")));
        assert!(is_there, "the documents name `{code}`, which there is not");
    }
    assert!(seen > 50, "only {seen}");
}

#[test]
fn files_and_functions_that_the_guides_to_the_code_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = sources(vec![root.join("src"), root.join("../testkit/src")]);
    let guides = [
        ("ARCHITECTURE.md", include_str!("../../../ARCHITECTURE.md")),
        ("CONTRIBUTING.md", include_str!("../../../CONTRIBUTING.md")),
    ];
    for (guide, text) in guides {
        for code in text.split('`').skip(1).step_by(2) {
            let is_path =
                code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
            if code.contains('/') && is_path {
                let places = [root.join("src").join(code), root.join("../..").join(code)];
                assert!(places.iter().any(|place| place.exists()), "{guide} names the file {code}");
            } else if code.contains('_')
                && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            {
                assert!(source.contains(code), "{guide} names {code}");
            }
        }
    }
}

/// All sources in these folders and below.
fn sources(mut folders: Vec<PathBuf>) -> String {
    let mut source = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path)
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                source.push_str(&std::fs::read_to_string(path).expect("a source"));
            }
        }
    }
    source
}
