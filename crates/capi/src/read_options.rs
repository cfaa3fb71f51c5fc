//! Options of reads that are callbacks or texts.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use flagstone::TableFilter;
use flagstone::reports::TableProperties;
use flagstone_rocksdb as rdb;

use crate::abi::{Destructor, Out, State, Tagged, calling};
use crate::api::c_api;
use crate::calls::ReadOptions;
use crate::event_infos::{Part, lend_at};
use crate::table_properties::Properties;

/// Whether an iterator reads a table.
type Admits = extern "C-unwind" fn(*mut c_void, *const Tagged<Properties>) -> u8;

fn filter(state: State, admits: Admits) -> TableFilter {
    TableFilter::new(move |table: &TableProperties| {
        let table = Part::new(Properties::of(Arc::new(table.clone())));
        calling("a table filter", || admits(state.pointer(), table.pointer())) != 0
    })
}

c_api! {
    fn rocksdb_readoptions_set_table_filter(
        o: &mut ReadOptions, state: *mut c_void, destructor: Option<Destructor>,
        admits: Option<Admits>
    ) {
        let state = State::new(state, destructor);
        o.engine.table_filter = admits.map(|admits| filter(state, admits));
    }

    fn rocksdb_readoptions_clear_table_filter(o: &mut ReadOptions) {
        o.engine.table_filter = None;
    }

    fn rocksdb_readoptions_has_table_filter(o: &ReadOptions) -> u8 {
        o.engine.table_filter.is_some().into()
    }

    fn rocksdb_readoptions_set_merge_operand_count_threshold(
        o: &mut ReadOptions, threshold: usize
    ) {
        o.inert.merge_operand_count_threshold = Some(threshold);
    }

    fn rocksdb_readoptions_get_merge_operand_count_threshold(o: &ReadOptions) -> usize {
        o.inert.merge_operand_count_threshold.unwrap_or(0)
    }

    fn rocksdb_readoptions_has_merge_operand_count_threshold(o: &ReadOptions) -> u8 {
        o.inert.merge_operand_count_threshold.is_some().into()
    }

    fn rocksdb_readoptions_clear_merge_operand_count_threshold(o: &mut ReadOptions) {
        o.inert.merge_operand_count_threshold = None;
    }

    fn rocksdb_readoptions_set_request_id(o: &mut ReadOptions, request: ?[u8]) {
        o.inert.request_id = request.map(<[u8]>::to_vec);
    }

    fn rocksdb_readoptions_get_request_id(
        o: &ReadOptions, len: Out<usize>
    ) -> *const c_char {
        lend_at(o.inert.request_id.as_deref(), len)
    }

    fn rocksdb_readoptions_clear_request_id(o: &mut ReadOptions) {
        o.inert.request_id = None;
    }

    fn rocksdb_readoptions_set_table_index_factory_from_string(
        _o: &mut ReadOptions, text: ?[u8], error
    ) {
        if text.is_some() {
            return Err(rdb::Error::not_supported("user-defined indexes"));
        }
    }

    fn rocksdb_readoptions_get_table_index_factory_name(
        _o: &ReadOptions, len: Out<usize>
    ) -> *const c_char {
        lend_at(None, len)
    }

    fn rocksdb_readoptions_clear_table_index_factory(_o: &mut ReadOptions) {}
}
