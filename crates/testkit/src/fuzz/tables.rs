//! Whole tables, their footers and properties.

use std::ops::ControlFlow;
use std::sync::Arc;

use flagstone::base::{
    Comparator, InternalIterator, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER,
    PrefixExtractor, WriteTimes,
};
use flagstone::cache::{Cache, CacheSettings};
use flagstone::sst::{
    BesideBlocks, Block, CompressedCache, Footer, IterSettings, LookupKey, Part, ReadSettings,
    Table, TableProperties, TableReadSettings, plan, read_missing, read_table_properties,
};

use super::input::{Input, file_of, ok};
use super::mend;

/// Entries that are looked at in one direction; a hostile index may name one block over and over.
const ENTRIES_MAX: usize = 2000;

/// Decodes a footer, as it is and with its checksum put right: the file's size above it, then the
/// footer.
pub fn footer(data: &[u8]) {
    let mut input = Input::new(data);
    let above = u64::from(input.u32());
    let raw = input.rest();
    let mut mended = raw.to_vec();
    mend::footer(&mut mended);
    for tail in [raw, &mended] {
        let size = tail.len() as u64;
        ok(Footer::decode(tail, above + size));
        let Some(footer) = ok(Footer::decode(tail, size)) else { continue };
        footer.checksum_of(b"block", 0, above);
        if footer.format_version > 0 && footer.format_version < 6 {
            let mut encoded = Vec::new();
            footer.encode(size.saturating_sub(Footer::SIZE_MAX as u64), &mut encoded);
            assert_eq!(Footer::decode(&encoded, size).expect("what was encoded"), footer);
        }
    }
}

/// Decodes a block of properties.
pub fn properties(data: &[u8]) {
    let Some(block) = ok(Block::new(data)) else { return };
    let Some(properties) = ok(TableProperties::decode(&block)) else { return };
    ok(properties.index_type());
    properties.unique_id();
    properties.whole_key_filtering();
    properties.prefix_filtering();
    if let Some(times) = ok(properties.write_times()) {
        assert_eq!(WriteTimes::decode(&times.encode()).expect("as it was encoded"), times);
        let few = times.clone().limited(10);
        assert!(few.samples().len() <= 10 && few.time_before(1) <= times.time_before(u64::MAX));
    }
    for name in properties.raw.keys() {
        ok(properties.number(&String::from_utf8_lossy(name)));
    }
}

/// Opens a table and uses it, as it is and with its checksums put right: how to read, a key, the
/// file.
pub fn table(data: &[u8]) {
    let mut input = Input::new(data);
    let (how, key) = (input.u8(), input.piece().to_vec());
    let raw = input.rest();
    let mut mended = raw.to_vec();
    mend::table(&mut mended);
    use_table(raw, how, &key);
    use_table(&mended, how, &key);
}

/// Opens a table and reads it in every way; bits of `how` choose the settings.
pub fn use_table(bytes: &[u8], how: u8, key: &[u8]) {
    let size = bytes.len() as u64;
    ok(read_table_properties(file_of(bytes), size));
    let cache = Arc::new(Cache::new(&CacheSettings::with_capacity(1 << 16)));
    let second_tier = Arc::new(CompressedCache::new(&CacheSettings::with_capacity(1 << 16)));
    let settings = TableReadSettings {
        comparator: if how & 1 == 0 { Comparator::Bytewise } else { Comparator::ReverseBytewise },
        is_stripped: false,
        cache_id: cache.new_owner().next_file(),
        cache: (how & 2 != 0).then_some(cache),
        // Alone: a first one that has room for everything would leave nothing to it.
        second_tier: (how & 2 == 0).then_some(second_tier),
        verify_checksums: how & 4 == 0,
        use_filter: how & 8 == 0,
        prefix_extractor: (how & 16 != 0).then_some(PrefixExtractor::FixedPrefix(2)),
        largest_sequence: (how & 32 != 0).then_some(90),
        unique_id: None,
        cache_index_and_filter: how & 64 != 0,
        high_priority: how & 2 != 0,
        key_filter: None,
        beside_blocks: BesideBlocks {
            rows: None,
            checksum_bytes: if how & 128 != 0 { 8 } else { 0 },
        },
        account: None,
    };
    let Some(table) = ok(Table::open(file_of(bytes), size, settings)) else { return };
    let read = ReadSettings { verify_checksums: how & 4 == 0, ..ReadSettings::default() };
    let target = InternalKeyBuf::for_seek(key, MAX_SEQUENCE_NUMBER);
    inspect(&table, &target, &read);
    let iteration = IterSettings {
        read,
        upper_bound: (how & 64 != 0).then(|| key.to_vec()),
        readahead_size: usize::from(how & 128) * 32,
        prefix_same_as_start: how & 16 != 0,
        ..IterSettings::default()
    };
    let keys = scan(&table, &iteration, target.as_key());
    for key in keys.iter().step_by(keys.len() / 16 + 1).map(InternalKeyBuf::as_key) {
        get(&table, key, &read);
    }
    let targets: Vec<_> = keys.iter().take(20).map(|key| LookupKey::new(key.as_key())).collect();
    let batch: Vec<usize> = (0..targets.len()).collect();
    let mut planned = Vec::new();
    let part = Part { place: 0, table: Some(&table), keys: &batch, planned: 0..0 };
    plan(&targets, &mut [part], &read, &mut planned);
    let table = &*table;
    let mut missing: Vec<_> = planned.iter_mut().map(|one| (table, one)).collect();
    read_missing(&mut missing, &read);
    for one in planned {
        let sought = targets[one.at];
        ok(table.search_planned(one, &sought, &read, |_, _, _| Ok(ControlFlow::Continue(()))));
    }
}

fn get(table: &Table, key: InternalKey<'_>, read: &ReadSettings) {
    let mut seen = 0;
    let sought = LookupKey::new(key);
    let Some(Some(admitted)) = ok(table.admit(&sought, read, false)) else { return };
    ok(table.get_admitted(admitted, &sought, read, |_, _, value| {
        seen += 1;
        assert!(value.bytes().len() <= 1 << 30);
        Ok(if seen < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }));
}

/// Everything but moving a cursor.
fn inspect(table: &Arc<Table>, target: &InternalKeyBuf, read: &ReadSettings) {
    get(table, target.as_key(), read);
    ok(table.may_contain(target.user_key(), read));
    ok(table.may_contain_prefix(target.user_key(), read));
    ok(table.approximate_offset_of(target.as_key()));
    ok(table.anchors(8));
    table.memory_usage();
    let tombstones = table.range_tombstones();
    tombstones.covering_sequence(target.user_key(), MAX_SEQUENCE_NUMBER);
    assert!(tombstones.fragments().all(|fragment| fragment.start != fragment.end));
    table.verify(&mut |fault| super::input::check_error(&fault.error));
}

/// Scans in both directions and from the target; the keys met forwards.
fn scan(
    table: &Arc<Table>,
    settings: &IterSettings,
    target: InternalKey<'_>,
) -> Vec<InternalKeyBuf> {
    let mut iter = table.iter(settings.clone());
    iter.confine(settings.prefix_same_as_start);
    let mut keys = Vec::new();
    iter.seek_to_first();
    while iter.valid() && keys.len() < ENTRIES_MAX {
        keys.push(iter.key().to_buf());
        iter.next();
    }
    ok(iter.status());
    iter.seek_to_last();
    for _ in 0..ENTRIES_MAX {
        if !iter.valid() {
            break;
        }
        iter.prev();
    }
    ok(iter.status());
    for forward in [true, false, true, false] {
        if forward {
            iter.seek(target)
        } else {
            iter.seek_for_prev(target)
        }
        for step in 0..6 {
            if iter.valid() {
                if (step < 3) == forward { iter.next() } else { iter.prev() }
            }
        }
        ok(iter.status());
    }
    keys
}
