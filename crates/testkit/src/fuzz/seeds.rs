//! What the targets start from: files that RocksDB wrote (`fixtures/`), and what the engine writes.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use flagstone::base::checksum::ChecksumType;
use flagstone::base::compression::{CompressionOptions, CompressionType, Compressor};
use flagstone::base::entity;
use flagstone::base::{
    FileNumber, InternalKeyBuf, PrefixExtractor, ValueType, WriteTime, WriteTimes,
};
use flagstone::batch::WriteBatch;
use flagstone::blob::BlobIndex;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::os::OsFileSystem;
use flagstone::env::{FileSystem, read_file};
use flagstone::manifest;
use flagstone::sst::filter::WrittenBy;
use flagstone::sst::{FilterPolicy, Footer, IndexType, TableBuilder, TableBuilderSettings};

use super::backups;
use super::database_seeds;
use super::input::{file_of, put_file};
use super::positions;
use super::remote;
use super::table_parts::all_parts;
use super::traces;
use crate::history::Case;
use crate::{settings, steps};

/// Inputs of one target.
pub type Seeds = Vec<Vec<u8>>;

/// How tables are read: plainly, or with cache, prefixes and a bound.
const HOWS: [u8; 2] = [0, 2 | 16 | 64];

/// What RocksDB says of itself, cut down.
const ROCKSDB_REPORT: &str = "\
Uptime(secs): 1200.1 total, 600.0 interval
Cumulative writes: 300K writes, 300K keys, 300 commit groups, 1.0 writes per commit group, ingest: 0.00 GB, 0.32 MB/s
Cumulative WAL: 300K writes, 12 syncs, 300.00 writes per sync, written: 0.00 GB, 0.32 MB/s
Cumulative stall: 00:10:1.500 H:M:S, 50.1 percent
Write Stall (count): write-buffer-manager-limit-stops: 2
** Compaction Stats [photos, old] **
Write Stall (count): l0-file-count-limit-delays: 8, l0-file-count-limit-stops: 1, memtable-limit-stops: 3
Stalls(count): 7 level0_slowdown, 1 level0_numfiles, 2 stop for pending_compaction_bytes, 4 memtable_compaction
Block cache AutoHyperClockCache@0x56514038a7c0#9483 capacity: 32.00 MB seed: 1177849269 usage: 4.00 KB table_size: 64
 rocksdb.block.cache.miss COUNT : 900000
 rocksdb.block.cache.hit COUNT : 300000
 rocksdb.block.cache.add COUNT : 800000
";

/// Larger files make slow seeds.
const FIXTURE_SIZE_MAX: usize = 6000;

/// The inputs that the target called `name` starts from. Needs the repository's `fixtures/`.
pub fn seeds(name: &str) -> Seeds {
    match name {
        "apply" => histories(),
        "backup_meta" => backups::sound(),
        "compaction_order" | "compaction_result" => remote::messages(),
        "batch" => vec![batch().into_bytes(), WriteBatch::new().into_bytes()],
        "blob_file" => with_head(&[30, 0, 0, 40, 0, 0, 1, b'k'], files_of("blob")),
        "blob_index" => vec![blob_index()],
        "block" => with_head(&[0, 3, b'k', b'1', b'2', 200, 0], blocks()),
        "coding" => {
            let tail = [0x81, 1, 0x80, 2, 3, b'a'];
            vec![[&[8, 0, 1, 2, 3, 4, 5, 6, 7][..], &[0xa5; 40], &tail].concat()]
        }
        "database" | "salvage" => damages(),
        "decompress" => compressed(),
        "entity" => {
            let with_blob = b"\x02\x02\x02\x02\x02\x11\x01\x00\x02\x05\x01c1\x01\x08\x68\x0b\x00x";
            let plain = entity::encode(&[(b"", b"1"), (b"a", b"22")]);
            vec![[&[3][..], b"new", &plain].concat(), [&[3][..], b"new", with_blob].concat()]
        }
        "file_name" => {
            ["000012.sst", "MANIFEST-000005", "000003.log", "000004.blob", "OPTIONS-000007", "LOCK"]
                .map(|name| name.as_bytes().to_vec())
                .to_vec()
        }
        "filter" => with_head(&[1, b'k'], filters()),
        "filter_build" => vec![
            [&[0x80, 2, 0, 5, 100, 0, 90][..], &[3, b'a', b'b', b'c', 1, b'd']].concat(),
            [&[0x80, 2, 1, 5, 100, 0, 200][..], &[3, b'a', b'b', b'c', 1, b'd']].concat(),
            [&[0x80, 2, 0, 4, 100, 0, 90][..], &[3, b'a', b'b', b'c', 1, b'd']].concat(),
        ],
        "footer" => with_head(&[0; 4], small_tables().iter().map(|table| tail(table)).collect()),
        "history" => case_texts(),
        "identity" => vec![[&[16][..], b"MANIFEST-000001\n", b"some-identity"].concat()],
        "internal_key" => vec![internal_keys()],
        "manifest" => files_of("MANIFEST"),
        "manifest_edit" => edits(),
        "merge" => (0..6)
            .map(|operator| {
                [&[operator, 0, 3][..], b"old", b"\x08abcdefgh\x01x\x00\x02yz"].concat()
            })
            .collect(),
        "option_text" => option_texts(),
        "options_file" => files_of("OPTIONS").into_iter().take(6).collect(),
        "owner" => vec![
            b"/other\x00-\x00some-identity\x00/data\x00-\x00".to_vec(),
            b"/db\x001:2\x00\x00/data\x0018446744073709551615:3\x00".to_vec(),
        ],
        "properties" => part_contents("rocksdb.properties"),
        "range_tombstones" => {
            vec![(0..90u8).map(|n| n.wrapping_mul(37) | 0x40).collect(), vec![0x42; 20]]
        }
        "statistics" => reports(),
        "table" => {
            HOWS.iter().flat_map(|how| with_head(&[*how, 2, b'k', b'3'], tables())).collect()
        }
        "table_part" => parts(),
        "trace" => traces::sound(),
        "ttl" => lives_that_expire(),
        "unique_id" => vec![[&[9; 24][..], &[4], b"some", b"ABCDEFGHIJKLMNOPQRST"].concat()],
        "update_position" => positions::sound(),
        "wal" => wals(),
        "wal_replay" => with_head(
            &[0xff, 0x7f, 4, 5],
            wals().into_iter().map(|wal| wal[4..].to_vec()).collect(),
        ),
        _ => panic!("the target {name} has no seeds"),
    }
}

/// Histories of a few operations each.
fn case_texts() -> Seeds {
    (0..12)
        .flat_map(|seed| Case::draw(seed, 12, 1))
        .map(|case| case.to_string().into_bytes())
        .collect()
}

/// What a database with a snapshot and an iterator says, and the lines of RocksDB's LOG that are
/// known.
fn reports() -> Seeds {
    let db = Db::open("/db", &settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), 1)));
    let db = db.expect("a new database");
    db.put("key", "value").expect("a write");
    db.flush_all().expect("a flush");
    let _snapshot = db.snapshot();
    let _iter = db.iter(&Default::default()).expect("an iterator");
    let told = db.property(db.default_column_family(), "rocksdb.stats").expect("it is known");
    vec![told.into_bytes(), ROCKSDB_REPORT.as_bytes().to_vec()]
}

/// One of each kind of step, of several keys, at several times to live.
fn lives_that_expire() -> Seeds {
    let steps: Vec<u8> =
        (0..12u8).flat_map(|what| [what, what % 4, 6, b'v', 1, 2, 3, 4, what]).collect();
    (0..5).map(|ttl| [&[ttl, ttl % 2, ttl % 3][..], &steps].concat()).collect()
}

fn with_head(head: &[u8], seeds: Seeds) -> Seeds {
    seeds.into_iter().map(|seed| [head, &seed].concat()).collect()
}

/// The beginnings of fixture files with this extension or this beginning of their names.
fn fixtures(kind: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8");
    let mut databases = OsFileSystem.list(&root).expect("the repository's fixtures");
    databases.sort();
    let mut found = Vec::new();
    for database in databases {
        let directory = root.join(database);
        let Ok(mut names) = OsFileSystem.list(&directory) else { continue };
        names.retain(|name| name.rsplit('.').next() == Some(kind) || name.starts_with(kind));
        names.sort();
        for name in names {
            let bytes =
                read_file(&OsFileSystem, &directory.join(&name), 64 << 20).expect("a fixture");
            found.push((name, bytes));
        }
    }
    found
}

/// Fixtures and the engine's own files of this kind: small ones whole, of the others the beginning.
fn files_of(kind: &str) -> Seeds {
    let own =
        (0..database_seeds::count()).flat_map(|variant| database_seeds::files(variant).iter());
    let own = own.filter(|(name, _)| name.ends_with(kind) || name.starts_with(kind));
    let mut seeds: Seeds = own.map(|(_, bytes)| bytes.clone()).collect();
    seeds.extend(fixtures(kind).into_iter().map(|(_, mut bytes)| {
        bytes.truncate(FIXTURE_SIZE_MAX.max(if kind == "OPTIONS" { usize::MAX } else { 0 }));
        bytes
    }));
    seeds.retain(|seed| !seed.is_empty());
    seeds.sort_by_key(Vec::len);
    seeds.dedup();
    let step = seeds.len() / 24 + 1;
    seeds.into_iter().step_by(step).collect()
}

fn wals() -> Seeds {
    let mut seeds: Seeds = Vec::new();
    let own =
        (0..database_seeds::count()).flat_map(|variant| database_seeds::files(variant).iter());
    let own = own.map(|(name, bytes)| (name.clone(), bytes.clone()));
    for (name, mut bytes) in own.chain(fixtures("log")).filter(|(name, _)| name.ends_with(".log")) {
        let number: u32 = name.trim_end_matches(".log").parse().expect("a number");
        bytes.truncate(FIXTURE_SIZE_MAX);
        seeds.push([&number.to_le_bytes()[..], &bytes].concat());
    }
    seeds.retain(|seed| seed.len() > 4);
    seeds.push([&[1, 0, 0, 0], &*wal_of_bombs()].concat());
    seeds
}

/// A compressed WAL whose records become much more than they are. Whoever reads it puts the
/// checksums right.
fn wal_of_bombs() -> Vec<u8> {
    let record = |kind: u8, payload: &[u8]| {
        [&[0; 4][..], &(payload.len() as u16).to_le_bytes(), &[kind], payload].concat()
    };
    // Of zstd: the number of the format, a window of 128 KiB, then blocks: bytes as they are, or
    // one that is repeated. The last bit ends it.
    let frame =
        |blocks: &[&[u8]]| [&[0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3][..], &blocks.concat()].concat();
    let block = |size: u32, bits: u32, bytes: &[u8]| {
        [&(size << 3 | bits).to_le_bytes()[..3], bytes].concat()
    };
    // As large as a target lets a record become: deletions that the header does not count, and
    // marks that it need not count.
    let header = block(12, 0, &[0; 12]);
    let small = [0x00, 0x0d].map(|tag| record(1, &frame(&[&header, &block(60 << 10, 3, &[tag])])));
    // Gigabytes of zeros.
    let zeros = block(128 << 10, 2, &[0]).repeat(4000);
    let large = record(1, &frame(&[&zeros, &block(128 << 10, 3, &[0])]));
    [&record(9, &[7, 0, 0, 0])[..], &small.concat().repeat(4), &large].concat()
}

fn batch() -> WriteBatch {
    let mut batch = WriteBatch::new();
    let mut add = || {
        batch.put(b"key", b"value")?;
        batch.put_cf(flagstone::base::ColumnFamilyId(3), b"key", b"value")?;
        batch.delete(b"gone")?;
        batch.single_delete(b"once")?;
        batch.merge(b"key", b"more")?;
        batch.delete_range(b"a", b"c")?;
        batch.put_blob_index(flagstone::base::ColumnFamilyId(1), b"blob", blob_index())?;
        batch.put_encoded_entity(
            flagstone::base::ColumnFamilyId(0),
            b"wide",
            entity::encode(&[(b"", b"1")]),
        )?;
        batch.put_log_data(b"log data")
    };
    add().expect("small operations");
    batch.set_sequence(77);
    batch
}

fn blob_index() -> Vec<u8> {
    let mut bytes = Vec::new();
    BlobIndex { file: FileNumber(12), offset: 300, size: 1000, compression: 4 }.encode(&mut bytes);
    bytes
}

fn internal_keys() -> Vec<u8> {
    let [a, b] = [b"key", b"kez"].map(|key| InternalKeyBuf::new(key, 5, ValueType::Value));
    [&[a.as_bytes().len() as u8][..], a.as_bytes(), b.as_bytes()].concat()
}

fn edits() -> Seeds {
    let mut found = Vec::new();
    for manifest in files_of("MANIFEST") {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/db")).expect("memory");
        put_file(&fs, "/db/MANIFEST", &manifest);
        for (_, edit) in manifest::dump(&fs, Path::new("/db/MANIFEST")).expect("memory") {
            let mut bytes = Vec::new();
            let Ok(edit) = edit else { break };
            edit.encode(&mut bytes);
            found.push(bytes);
        }
    }
    found.sort();
    found.dedup();
    found.truncate(60);
    found
}

fn compressed() -> Seeds {
    let raw = b"Flagstone, flagstone, flagstone: a stone that is flat, flat, flat.".repeat(4);
    let head = |kind: usize| vec![kind as u8, 1, 8, b'f', b'l', b'a', b'g', b's', b't', b'o', b'n'];
    let mut seeds = Vec::new();
    for (at, kind) in CompressionType::ALL.into_iter().enumerate() {
        let mut out = head(at);
        if kind != CompressionType::None {
            let compressor = Compressor::new(kind, &CompressionOptions::default(), None);
            compressor
                .and_then(|mut compressor| compressor.compress(&raw, &mut out))
                .expect("a codec");
        }
        seeds.push(out);
    }
    seeds
}

fn filters() -> Seeds {
    let policies = [
        FilterPolicy::DEFAULT,
        FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: 10.0, bloom_before_level: -1 },
    ];
    let mut seeds = part_contents("filter");
    for (policy, version) in [(&policies[0], 5), (&policies[0], 2), (&policies[1], 5)] {
        let mut builder = policy.builder(version, WrittenBy::Flush).expect("a policy with bits");
        (0..300u32).for_each(|number| builder.add(&number.to_be_bytes()));
        seeds.push(builder.finish());
    }
    seeds
}

/// The contents of the meta blocks whose names contain `name`.
fn part_contents(name: &str) -> Seeds {
    let mut found = Vec::new();
    for parts in all_parts() {
        let wanted = parts.blocks.iter().enumerate().filter(|(_, (other, _))| other.contains(name));
        found.extend(wanted.map(|(at, _)| parts.content(at).to_vec()));
    }
    found.sort();
    found.dedup();
    found
}

fn parts() -> Seeds {
    let mut found = Vec::new();
    for (table, parts) in all_parts().iter().enumerate() {
        for at in 0..parts.blocks.len() {
            for how in HOWS {
                let head = [table as u8, at as u8, how, 0, 2, b'k', b'3'];
                found.push([&head[..], parts.content(at)].concat());
            }
        }
    }
    found
}

/// First blocks of the small tables that store them plainly, which are data blocks, and all their
/// meta blocks.
fn blocks() -> Seeds {
    let mut found = part_contents("");
    for table in small_tables() {
        let opened =
            flagstone::sst::Table::open(file_of(table), table.len() as u64, Default::default());
        let size = opened.expect("a sound table").properties().data_size as usize;
        let count = size.min(200);
        found.extend(
            (20..count).map(|end| table[..end].to_vec()).filter(|block| is_block_end(table, block)),
        );
    }
    found.truncate(60);
    found
}

/// Whether a trailer with the right checksum follows `block` at the beginning of `table`.
fn is_block_end(table: &[u8], block: &[u8]) -> bool {
    let size = table.len();
    let footer =
        Footer::decode(&table[size - Footer::SIZE_MAX..], size as u64).expect("a sound table");
    let trailer = &table[block.len()..];
    trailer[0] == 0 && footer.checksum_of(block, 0, 0).to_le_bytes() == trailer[1..5]
}

fn tail(table: &[u8]) -> Vec<u8> {
    table[table.len() - Footer::SIZE_MAX..].to_vec()
}

fn tables() -> Seeds {
    let mut found = small_tables().to_vec();
    let whole = fixtures("sst").into_iter().map(|(_, bytes)| bytes);
    found.extend(whole.filter(|bytes| (1..FIXTURE_SIZE_MAX).contains(&bytes.len())).take(12));
    found
}

/// Small tables with every kind of block.
pub fn small_tables() -> &'static [Vec<u8>] {
    static TABLES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    TABLES.get_or_init(|| table_settings().into_iter().map(small_table).collect())
}

fn table_settings() -> Vec<TableBuilderSettings> {
    let ribbon =
        FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: 10.0, bloom_before_level: -1 };
    let plain =
        || TableBuilderSettings { block_size: 60, block_restart_interval: 3, ..Default::default() };
    let partitioned = || TableBuilderSettings {
        index_type: IndexType::TwoLevel,
        metadata_block_size: 60,
        filter_policy: Some(FilterPolicy::DEFAULT),
        ..plain()
    };
    let mut trained = CompressionOptions::default();
    trained.max_dict_bytes = 100;
    vec![
        plain(),
        TableBuilderSettings {
            filter_policy: Some(FilterPolicy::DEFAULT),
            format_version: 6,
            write_times: Some(Arc::new(WriteTimes::of(
                (1..200).map(|n| WriteTime { sequence: n, time: 1000 * n }),
            ))),
            ..plain()
        },
        TableBuilderSettings { partition_filters: true, ..partitioned() },
        TableBuilderSettings { format_version: 2, checksum: ChecksumType::Crc32c, ..partitioned() },
        TableBuilderSettings {
            index_type: IndexType::BinarySearchWithFirstKey,
            filter_policy: Some(ribbon),
            checksum: ChecksumType::XxHash64,
            ..plain()
        },
        TableBuilderSettings {
            index_type: IndexType::HashSearch,
            prefix_extractor: Some(PrefixExtractor::FixedPrefix(2)),
            filter_policy: Some(FilterPolicy::DEFAULT),
            format_version: 4,
            ..plain()
        },
        TableBuilderSettings { data_block_hash_ratio: Some(0.75), format_version: 7, ..plain() },
        TableBuilderSettings {
            compression: CompressionType::Zstd,
            compression_options: trained,
            block_size: 300,
            ..plain()
        },
        TableBuilderSettings {
            compression: CompressionType::Snappy,
            block_size: 200,
            format_version: 3,
            ..plain()
        },
    ]
}

fn small_table(settings: TableBuilderSettings) -> Vec<u8> {
    let file = file_of(&[]);
    let mut settings = settings;
    settings.db_identity = "identity".to_string();
    settings.session_identity = "ABCDEFGHIJKLMNOPQRST".to_string();
    settings.file_number = FileNumber(9);
    let mut builder = TableBuilder::new(file.clone(), settings).expect("sound settings");
    for number in 0..16u64 {
        let kinds = [ValueType::Value, ValueType::Merge, ValueType::Deletion, ValueType::BlobIndex];
        let key = InternalKeyBuf::new(
            format!("k{number:02}").as_bytes(),
            40 - number,
            kinds[number as usize % 4],
        );
        let value = if number % 4 == 3 { blob_index() } else { vec![b'v'; number as usize % 8] };
        builder.add(key.as_key(), &value).expect("memory");
    }
    builder.add_range_tombstone(b"k03", b"k05", 50);
    builder.add_range_tombstone(b"k04", b"k09", 7);
    builder.finish().expect("memory");
    let mut bytes = vec![0; file.size().expect("memory") as usize];
    file.read_at(0, &mut bytes).expect("memory");
    bytes
}

/// Every option by name, and the forms that values may have.
fn option_texts() -> Seeds {
    let forms = [
        "block_based_table_factory={filter_policy=bloomfilter:10:false;};merge_operator=uint64add",
        "compression_opts={level=3;window_bits=-14;};prefix_extractor=fixed:3",
        "compression_opts=4:5:6:7;comparator=rocksdb.ReverseBytewiseComparator",
        "merge_operator={id=StringAppendOperator;delimiter=|;};table.filter_policy=ribbonfilter:10:-1",
        "compression_per_level=kNoCompression:kSnappyCompression:kZSTD",
    ];
    let options = flagstone::options::Options::default();
    let rows = flagstone::options::names::rows();
    let rows =
        rows.map(|row| format!("{}={}", row.name, options.get(row.name).unwrap_or_default()));
    forms.into_iter().map(str::to_string).chain(rows).map(String::into_bytes).collect()
}

/// Histories of pseudo-random bytes.
fn histories() -> Seeds {
    let mut random = fastrand::Rng::with_seed(1);
    (0..12).map(|n| (0..100 + n * 30).map(|_| random.u8(..)).collect()).collect()
}

/// One of each mutation in each database, to be read and written; and several at once.
fn damages() -> Seeds {
    let mut found = Vec::new();
    for variant in 0..database_seeds::count() as u8 {
        found.push(vec![variant, 0xff, 0]);
        let mutation = |what: u8| {
            let place = u16::from(what).wrapping_mul(1103);
            vec![
                what,
                what * 5 + variant,
                place as u8,
                (place >> 8) as u8,
                4,
                b'a',
                b'b',
                b'c',
                b'd',
            ]
        };
        for what in 0..16u8 {
            let how = if what % 2 == 0 { 3 } else { 2 + 4 * (what / 2 % 4) };
            found.push([vec![variant, how, 0], mutation(what)].concat());
        }
        let many = [13, 8, 14, 3, 15, 9].map(mutation).concat();
        found.push([vec![variant, 11, 2], many].concat());
    }
    found
}

#[cfg(test)]
mod tests;
