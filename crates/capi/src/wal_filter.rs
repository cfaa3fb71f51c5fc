//! Filters that decide which records of WALs an opening replays.

use std::ffi::{c_char, c_int, c_ulonglong, c_void};
use std::path::Path;
use std::sync::Arc;

use flagstone::base::FileNumber;
use flagstone::options::{ReplayedFamily, WalDecision};

use crate::abi::{Destructor, State, Tagged, calling, handles, make, name, take, unmake};
use crate::api::{c_api, destroys};
use crate::batch::Batch;
use crate::components::NameCallback;
use crate::options::Options;
use crate::report::with_nul;

/// Is told the families: their numbers and first WALs, how many; their names, the lengths of
/// these, their numbers, how many.
type OnFamilies = extern "C-unwind" fn(
    *mut c_void,
    *const u32,
    *const u64,
    usize,
    *const *const c_char,
    *const usize,
    *const u32,
    usize,
);

/// Decides about a record: state, WAL, its name, the batch, another batch, whether that counts.
type OnRecord = extern "C-unwind" fn(
    *mut c_void,
    c_ulonglong,
    *const c_char,
    usize,
    *const Tagged<Batch>,
    *mut Tagged<Batch>,
    *mut u8,
) -> c_int;

/// Decisions as the header numbers them.
const CONTINUE_PROCESSING: c_int = 0;
const IGNORE_CURRENT_RECORD: c_int = 1;
const STOP_REPLAY: c_int = 2;
const CORRUPTED_RECORD: c_int = 3;

struct CWalFilter {
    state: State,
    name: String,
    families: Option<OnFamilies>,
    record: Option<OnRecord>,
}

/// C's handle of a filter.
pub struct WalFilter(Arc<CWalFilter>);

handles! { WalFilter = "walfilter", }
destroys! { rocksdb_walfilter_destroy: WalFilter, }

impl flagstone::WalFilter for CWalFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn families(&self, families: &[ReplayedFamily]) {
        let Some(callback) = self.families else { return };
        let ids: Vec<u32> = families.iter().map(|family| family.id.0).collect();
        let wals: Vec<u64> = families.iter().map(|family| family.log_number.0).collect();
        let texts: Vec<_> =
            families.iter().map(|family| with_nul(family.name.as_bytes())).collect();
        let names: Vec<_> = texts.iter().map(|name| name.as_ptr().cast()).collect();
        let lengths: Vec<_> = families.iter().map(|family| family.name.len()).collect();
        calling("a WAL filter", || {
            let (state, len) = (self.state.pointer(), families.len());
            let (ids, lengths) = (ids.as_ptr(), lengths.as_ptr());
            callback(state, ids, wals.as_ptr(), len, names.as_ptr(), lengths, ids, len);
        });
    }

    fn record(&self, wal: FileNumber, path: &Path, batch: &flagstone::WriteBatch) -> WalDecision {
        let Some(callback) = self.record else { return WalDecision::Replay };
        let file = with_nul(path.as_os_str().as_encoded_bytes());
        let (old, new) = (make(Batch::of(batch.clone())), make(Batch::default()));
        let mut is_changed = 0u8;
        let number = calling("a WAL filter", || {
            let (state, text) = (self.state.pointer(), file.as_ptr().cast());
            callback(state, wal.0, text, file.len() - 1, old, new, &raw mut is_changed)
        });
        unmake(old);
        let replaced = take(new).filter(|_| is_changed != 0);
        decision(number, replaced)
    }
}

fn decision(number: c_int, replaced: Option<Batch>) -> WalDecision {
    match (number, replaced) {
        (CONTINUE_PROCESSING, None) => WalDecision::Replay,
        // What could not be added to the batch must not get lost.
        (CONTINUE_PROCESSING, Some(batch)) => match batch.checked() {
            Ok(operations) => WalDecision::Replace(operations.clone()),
            Err(error) => WalDecision::Fail(flagstone::Error::invalid_argument(error.as_ref())),
        },
        (IGNORE_CURRENT_RECORD, _) => WalDecision::LeaveOut,
        (STOP_REPLAY, _) => WalDecision::Stop,
        (CORRUPTED_RECORD, _) => WalDecision::Damaged,
        (number, _) => {
            tracing::error!(number, "a WAL filter decided for what there is not");
            WalDecision::Damaged
        }
    }
}

c_api! {
    fn rocksdb_walfilter_create(
        state: *mut c_void, destructor: Option<Destructor>, families: Option<OnFamilies>,
        record: Option<OnRecord>, name_of: Option<NameCallback>
    ) -> *mut Tagged<WalFilter> {
        let state = State::new(state, destructor);
        let name = name_of.map_or_else(String::new, |name_of| name(name_of, &state));
        make(WalFilter(Arc::new(CWalFilter { state, name, families, record })))
    }

    fn rocksdb_options_set_wal_filter(o: &mut Options, filter: ?WalFilter) {
        o.rdb.db.wal_filter =
            filter.map(|filter| filter.0.clone() as Arc<dyn flagstone::WalFilter>);
    }

    fn rocksdb_options_clear_wal_filter(o: &mut Options) {
        o.rdb.db.wal_filter = None;
    }
}
