use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Parser;

use super::*;
use crate::bench::translate;
use crate::command_line::{Command, CommandLine};

pub(in crate::bench) fn parse(line: &str) -> (Flags, Vec<(String, String)>) {
    let translated = translate(line.split(' ').map(OsString::from));
    let parsed = CommandLine::try_parse_from(translated).unwrap_or_else(|error| panic!("{error}"));
    match parsed.command {
        Command::Bench(flags) => (*flags, parsed.common.settings),
        _ => panic!("not a benchmark"),
    }
}

#[test]
fn a_db_bench_command_line_is_understood() {
    let (flags, settings) = parse(
        "flagstone bench --benchmarks=fillseq,readrandom -db=/x --num=10 --sync --disable_wal=0 --histogram=1 \
         --enable_blob_files --min_blob_size=100 --write_buffer_size=1048576 --reads=-1 --bloom_bits=10 \
         --rate_limiter_auto_tuned --rate_limiter_bytes_per_sec=1048576",
    );
    assert_eq!(flags.benchmarks, ["fillseq", "readrandom"]);
    assert_eq!((flags.db, flags.num, flags.reads), (PathBuf::from("/x"), 10, -1));
    assert!(flags.sync && !flags.disable_wal && flags.histogram && !flags.use_existing_db);
    let names: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        names[..3],
        ["enable_blob_files=true", "min_blob_size=100", "write_buffer_size=1048576"]
    );
    assert_eq!(names[3..], ["rate_limiter_auto_tuned=true", "rate_limiter_bytes_per_sec=1048576"]);
}

#[test]
fn flags_become_options() {
    let (flags, _) = parse(
        "flagstone bench --compression_type=zstd --compression_level=3 --bloom_bits=10 --cache_size=1M \
         --memtablerep=prefix_hash --prefix_size=8 --hash_bucket_count=50",
    );
    let mut options = Options::default();
    flags.apply(&mut options).unwrap();
    assert_eq!(options.get("compression").unwrap(), "kZSTD");
    assert_eq!(options.cf.compression_opts.level, 3);
    assert_eq!(options.block_cache_size, Some(1 << 20));
    assert_eq!(options.get("memtable").unwrap(), "{id=HashSkipListRepFactory;bucket_count=50;}");
    assert_eq!(options.get("prefix_extractor").unwrap(), "rocksdb.FixedPrefix.8");
    assert_eq!(options.get("filter_policy").unwrap(), "bloomfilter:10:false");
}

#[test]
fn compaction_styles_go_by_number_or_name() {
    let line = "flagstone bench --compaction_style=1 --universal_size_ratio=7 --universal_max_merge_width=9 \
         --fifo_compaction_max_table_files_size_mb=3";
    let (flags, _) = parse(line);
    let mut options = Options::default();
    flags.apply(&mut options).unwrap();
    assert_eq!(options.get("compaction_style").unwrap(), "kCompactionStyleUniversal");
    let universal = &options.cf.compaction_options_universal;
    assert_eq!(
        (universal.size_ratio, universal.max_merge_width, universal.min_merge_width),
        (7, 9, 2)
    );
    assert_eq!(options.cf.compaction_options_fifo.max_table_files_size, 3 << 20);
    let (flags, _) = parse("flagstone bench --compaction_style=kCompactionStyleFIFO");
    flags.apply(&mut options).unwrap();
    assert_eq!(options.get("compaction_style").unwrap(), "kCompactionStyleFIFO");
}

/// A command line that RocksDB's own scripts write was refused for an option that changes
/// nothing here.
#[test]
fn options_that_are_not_acted_on_are_flags_too() {
    let (flags, settings) =
        parse("flagstone bench --allow_concurrent_memtable_write=false -report_bg_io_stats");
    assert_eq!(flags.inert, ["report_bg_io_stats"]);
    let named: Vec<_> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(named, [("allow_concurrent_memtable_write", "false")]);
}

/// What tools/benchmark.sh passes to every run, and more: some of it was refused, and what is
/// given twice.
#[test]
fn the_command_lines_of_rocksdb_s_scripts_are_understood() {
    let line = "flagstone bench --benchmarks=fillrandom --use_existing_db=0 --disable_auto_compactions=1 --sync=0 \
         --max_background_jobs=16 --max_write_buffer_number=8 --allow_concurrent_memtable_write=false \
         --level0_file_num_compaction_trigger=10485760 --db=/x --wal_dir=/w --num=100 --num_levels=8 \
         --key_size=20 --value_size=400 --block_size=8192 --cache_size=17179869184 --cache_numshardbits=6 \
         --compression_max_dict_bytes=0 --compression_ratio=0.5 --compression_type=zstd --bytes_per_sync=8388608 \
         --cache_index_and_filter_blocks=1 --cache_high_pri_pool_ratio=0.5 --benchmark_write_rate_limit=0 \
         --write_buffer_size=134217728 --target_file_size_base=134217728 --max_bytes_for_level_base=1073741824 \
         --verify_checksum=1 --delete_obsolete_files_period_micros=62914560 --max_bytes_for_level_multiplier=8 \
         --statistics=0 --stats_per_interval=1 --stats_interval_seconds=60 --report_interval_seconds=5 \
         --histogram=1 --memtablerep=skip_list --bloom_bits=10 --open_files=-1 --subcompactions=1 \
         --compaction_style=0 --min_level_to_compress=3 --level_compaction_dynamic_level_bytes=true \
         --pin_l0_filter_and_index_blocks_in_cache=1 --threads=1 --memtablerep=vector --disable_wal=1 \
         --allow_concurrent_memtable_write=false --merge_operator=put --seed=1700000000 --report_file=/r.csv \
         --universal_allow_trivial_move=0 --universal_compression_size_percent=-1 --num_multi_db=1 \
         --multiread_batched=true --multiread_stride=12 --async_io=false --undefok=use_blob_cache,other \
         --other=7 --checksum_type=3";
    let (flags, settings) = parse(line);
    let inert = "delete_obsolete_files_period_micros stats_per_interval stats_interval_seconds multiread_batched other";
    assert_eq!(flags.inert, inert.split(' ').collect::<Vec<_>>());
    assert!(flags.absent.is_empty(), "{:?}", flags.absent);
    let mut options = Options::default();
    flags.apply(&mut options).unwrap();
    for (name, value) in &settings {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
    assert_eq!(options.get("memtable").unwrap(), "VectorRepFactory");
    let levels = "kNoCompression:kNoCompression:kNoCompression:kZSTD";
    assert_eq!(options.get("compression_per_level").unwrap(), levels);
    assert_eq!(options.get("checksum").unwrap(), "kxxHash64");
    assert_eq!(
        flags.block_cache(),
        "{capacity=17179869184;num_shard_bits=6;high_pri_pool_ratio=0.5}"
    );
    let (flags, _) = parse(
        "flagstone bench --num_multi_db=4 --readonly --benchmarks=stats,flush --benchmarks=compact,stats",
    );
    assert_eq!(flags.absent, ["num_multi_db=4", "readonly"]);
    assert_eq!(flags.benchmarks, ["compact", "stats"]);
}

/// Any command line is understood or refused, and so is what its flags say.
#[test]
fn hostile_command_lines_are_read() {
    let seeds = [
        "--num=18446744073709551615 --writes=-9 --bloom_bits=nan --cache_high_pri_pool_ratio=inf --prefix_size=9",
        "--memtablerep=prefix_hash --hash_bucket_count=7 --compaction_style=1 --universal_size_ratio 4294967295",
        "-db=/x -wal_ttl_seconds 5 --undefok=a,b --a 3 --compression_type=zstd --min_level_to_compress=3 --sync",
    ];
    let mut random = fastrand::Rng::with_seed(1);
    for seed in seeds {
        for _ in 0..60 {
            let mut bytes = seed.as_bytes().to_vec();
            testkit::fuzz::mutate(&mut random, &mut bytes);
            let hostile =
                bytes.split(|byte| *byte == b' ').map(|part| OsString::from_vec(part.to_vec()));
            let line = ["flagstone", "bench"].map(OsString::from).into_iter().chain(hostile);
            let Ok(parsed) = CommandLine::try_parse_from(translate(line)) else { continue };
            let Command::Bench(flags) = parsed.command else { panic!("not a benchmark") };
            let mut options = Options::default();
            let settings = parsed.common.settings;
            let set = settings.iter().try_for_each(|(name, value)| options.set(name, value));
            let _ = set.and_then(|()| flags.apply(&mut options)).and_then(|()| options.validate());
        }
    }
}
