use super::*;

/// Runs in a thread of its own, whose counters begin at 0.
fn in_a_thread(story: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, story);
        thread.expect("a thread starts").join().expect("the story holds");
    });
}

#[test]
fn a_thread_counts_what_its_level_says_and_others_do_not() {
    in_a_thread(|| {
        assert_eq!(perf_level(), PerfLevel::Disable);
        count(PerfMetric::GetReadBytes, 1);
        drop(time(PerfMetric::WriteWalTime));
        assert_eq!(PerfContext::now(), PerfContext::default());
        set_perf_level(PerfLevel::EnableCount);
        count(PerfMetric::GetReadBytes, 7);
        drop(time(PerfMetric::WriteMemtableTime));
        in_a_thread(|| {
            count(PerfMetric::GetReadBytes, 1);
            assert_eq!(PerfContext::now(), PerfContext::default());
        });
        assert_eq!(PerfContext::now().get(PerfMetric::GetReadBytes), 7);
        assert_eq!(PerfContext::now().to_text(true), "get_read_bytes = 7");
        set_perf_level(PerfLevel::EnableWait);
        drop(time(PerfMetric::WriteMemtableTime));
        drop(time(PerfMetric::WriteWalTime));
        assert!(PerfContext::now().get(PerfMetric::WriteMemtableTime) > 0);
        assert_eq!(PerfContext::now().get(PerfMetric::WriteWalTime), 0);
        set_perf_level(PerfLevel::EnableTime);
        drop(time(PerfMetric::GetCpuNanos));
        drop(time(IoMetric::ReadNanos));
        assert!(PerfContext::now().get(PerfMetric::GetCpuNanos) > 0);
        assert!(IoStatsContext::now().get(IoMetric::ReadNanos) > 0);
        PerfContext::reset();
        IoStatsContext::reset();
        assert_eq!(PerfContext::now(), PerfContext::default());
        assert_eq!(IoStatsContext::now(), IoStatsContext::default());
    });
}

#[test]
fn levels_of_the_tree_are_counted_once_they_are_asked_for() {
    in_a_thread(|| {
        set_perf_level(PerfLevel::EnableCount);
        let look = |level| {
            let _level = at_level(level);
            asked_filter(true);
            hit(BlockKind::Data, || 10);
        };
        look(2);
        assert_eq!(PerfContext::now().levels().count(), 0);
        PerfContext::enable_per_level();
        look(2);
        look(0);
        hit(BlockKind::Index, || 5);
        let context = PerfContext::now();
        assert_eq!(context.levels().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(context.get_of_level(PerfLevelMetric::BlockCacheHitCount, 2), 1);
        assert_eq!(context.get(PerfMetric::BlockCacheHitCount), 4, "one outside of any level");
        assert_eq!(context.get(PerfMetric::BlockCacheReadByte), 35);
        assert_eq!(context.get_by_name("block_cache_index_hit_count"), Some(1));
        assert_eq!(context.get_by_name("no_such_count"), None);
        let text = context.to_text(true);
        assert!(text.contains("bloom_filter_full_positive = 1@level0, 1@level2, "), "{text}");
        let mut both = context.clone();
        both.merge(&context);
        assert_eq!(both.get_of_level(PerfLevelMetric::BloomFilterFullPositive, 0), 2);
        PerfContext::disable_per_level();
        look(0);
        assert_eq!(PerfContext::now().levels().collect::<Vec<_>>(), [0, 2]);
        PerfContext::clear_per_level();
        assert_eq!(PerfContext::now().levels().count(), 0);
    });
}

#[test]
fn reads_of_blocks_add_up_by_kind() {
    in_a_thread(|| {
        set_perf_level(PerfLevel::EnableCount);
        let kinds = [BlockKind::Data, BlockKind::Index, BlockKind::Filter, BlockKind::Dictionary];
        for (at, kind) in kinds.into_iter().enumerate() {
            let _kind = reading(kind);
            drop(read_block(1 << at));
        }
        drop(read_block(16));
        let text = PerfContext::now().to_text(true);
        let expected = "block_read_count = 5, block_read_byte = 31, index_block_read_count = 1, \
                        filter_block_read_count = 1, compression_dict_block_read_count = 1, \
                        data_block_read_byte = 1, index_block_read_byte = 2, \
                        filter_block_read_byte = 4, compression_dict_block_read_byte = 8, \
                        metadata_block_read_byte = 16";
        assert_eq!(text, expected);
    });
}

#[test]
fn the_rest_of_a_write_leaves_its_steps_out() {
    in_a_thread(|| {
        set_perf_level(PerfLevel::EnableTime);
        let pause = |ms| std::thread::park_timeout(std::time::Duration::from_millis(ms));
        let rest = RestOfWrite::begin();
        let wal = time(PerfMetric::WriteWalTime);
        pause(30);
        drop(wal);
        drop(rest);
        let context = PerfContext::now();
        let wal = context.get(PerfMetric::WriteWalTime);
        let rest = context.get(PerfMetric::WritePreAndPostProcessTime);
        assert!(wal > rest, "{wal} {rest}");
    });
}

#[test]
fn every_metric_has_a_name_and_says_what_it_counts() {
    let mut names: Vec<&str> = PerfMetric::ALL.iter().map(|metric| metric.name()).collect();
    assert_eq!(names[0], "user_key_comparison_count");
    assert_eq!(names[names.len() - 1], "multiscan_io_coalesced_nonadjacent");
    assert!(PerfMetric::ALL.iter().all(|metric| metric.help().ends_with('.')));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 120);
    for metric in PerfMetric::ALL {
        assert_eq!(PerfMetric::from_name(metric.name()), Some(*metric));
        let is_time = metric.name().ends_with("time") || metric.name().ends_with("nanos");
        assert_eq!(metric.level() > PerfLevel::EnableCount, is_time, "{}", metric.name());
    }
    assert_eq!(IoMetric::from_name("bytes_read"), Some(IoMetric::BytesRead));
    let zeros = IoStatsContext::default().to_text(false);
    assert!(zeros.starts_with("thread_pool_id = 0, bytes_read = 0, "), "{zeros}");
    assert!(zeros.ends_with("cold_file_read_count = 0"), "{zeros}");
}
