//! What stands in front of the blocks of a table in the cache.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::support::{build, entry};
use crate::base::ValueType;
use crate::cache::{Cache, CacheKey, CacheSettings};
use crate::sst::block::GuideRoom;
use crate::sst::cached::{CachedBlock, Slim};
use crate::sst::{ReadSettings, TableBuilderSettings, TableReadSettings};

#[test]
fn guides_have_the_room_that_blocks_of_their_table_want() {
    for (value_size, room) in [(1000, GuideRoom::Few), (20, GuideRoom::Many)] {
        let value = "v".repeat(value_size);
        let entries: Vec<_> =
            (0..200).map(|n| entry(&format!("{n:09}"), 7, ValueType::Value, &value)).collect();
        let cache = Arc::new(Cache::new(&CacheSettings::with_capacity(4 << 20)));
        let file = cache.new_owner().next_file();
        let table =
            build(TableBuilderSettings::default(), &entries, &[]).open_with(TableReadSettings {
                cache_id: file,
                cache: Some(cache.clone()),
                ..TableReadSettings::default()
            });
        // Cached, searched once, and again.
        for guide in [None, Some(usize::from(room.size()))] {
            let target = entries[0].0.as_key();
            let settings = ReadSettings::default();
            assert!(table.get(target, &settings, |_, _, _| Ok(ControlFlow::Continue(()))).unwrap());
            let first = cache.lookup(CacheKey { file, offset: 0 });
            let Some(CachedBlock::Slim(Slim::Data(block))) = first else { panic!("it is cached") };
            assert_eq!(block.guide_size(), guide);
        }
    }
}
