//! Listeners and partitioners.

use std::ffi::c_void;
use std::sync::Arc;

use flagstone::SstPartitionerFixedPrefixFactory;
use flagstone::reports::{
    BackgroundErrorReason, ErrorRecoveryInfo, IngestionInfo, JobInfo, SubcompactionInfo,
    WriteStallInfo,
};
use flagstone::{EventListener, reports};

use crate::abi::{Destructor, Handle, Own, State, Tagged, calling, handles, make, or_abort};
use crate::api::{c_api, destroys};
use crate::db::Db;
use crate::event_infos::{IngestedInfo, MemtableInfo, Part, StallInfo, Status};
use crate::job_infos::{CompactionInfo, FlushInfo, PartInfo};
use crate::options::Options;

/// Is told something of a database, which it is not given: always NULL.
type OfDb<T> = Option<extern "C-unwind" fn(*mut c_void, *mut Tagged<Db>, *const Tagged<T>)>;
/// Is told something.
type Of<T> = Option<extern "C-unwind" fn(*mut c_void, *const Tagged<T>)>;
/// Is told of an error: its reason, and what it is.
type OnError = Option<extern "C-unwind" fn(*mut c_void, u32, *const Tagged<Status>)>;
/// Is told that writes are accepted again after an error, and NULL; or why they are not.
type OnRecovered =
    Option<extern "C-unwind" fn(*mut c_void, *const Tagged<Status>, *const Tagged<Status>)>;

/// A program's callbacks. Any may be NULL.
struct Callbacks {
    state: State,
    flush_begin: OfDb<FlushInfo>,
    flush_completed: OfDb<FlushInfo>,
    compaction_begin: OfDb<CompactionInfo>,
    compaction_completed: OfDb<CompactionInfo>,
    part_begin: Of<PartInfo>,
    part_completed: Of<PartInfo>,
    ingested: OfDb<IngestedInfo>,
    error: OnError,
    stall: Of<StallInfo>,
    sealed: Of<MemtableInfo>,
    recovery_begin: OnError,
    recovery_end: OnRecovered,
}

/// As RocksDB numbers them.
fn number_of(reason: BackgroundErrorReason) -> u32 {
    match reason {
        BackgroundErrorReason::Compaction => 1,
        BackgroundErrorReason::Write => 2,
        BackgroundErrorReason::Memtable => 3,
        BackgroundErrorReason::Manifest => 4,
        _ => 0,
    }
}

impl Callbacks {
    fn tell<T: Handle>(&self, callback: Of<T>, info: impl FnOnce() -> T) {
        if let Some(callback) = callback {
            let info = Part::new(info());
            calling("a listener", || callback(self.state.pointer(), info.pointer()));
        }
    }

    fn tell_of_error(
        &self,
        callback: OnError,
        reason: BackgroundErrorReason,
        error: &flagstone::Error,
        is_fatal: bool,
    ) {
        if let Some(callback) = callback {
            let status = Part::new(Status::of(error, is_fatal));
            let (state, reason) = (self.state.pointer(), number_of(reason));
            calling("a listener", || callback(state, reason, status.pointer()));
        }
    }

    fn tell_of_db<T: Handle>(&self, callback: OfDb<T>, info: impl FnOnce() -> T) {
        if let Some(callback) = callback {
            let info = Part::new(info());
            let (state, db) = (self.state.pointer(), std::ptr::null_mut());
            calling("a listener", || callback(state, db, info.pointer()));
        }
    }
}

impl EventListener for Callbacks {
    fn on_flush_begin(&self, job: &JobInfo) {
        self.tell_of_db(self.flush_begin, || FlushInfo::of(job));
    }

    fn on_flush_completed(&self, job: &JobInfo) {
        self.tell_of_db(self.flush_completed, || FlushInfo::of(job));
    }

    fn on_compaction_begin(&self, job: &JobInfo) {
        self.tell_of_db(self.compaction_begin, || CompactionInfo::begun(job));
    }

    fn on_compaction_completed(&self, job: &JobInfo) {
        self.tell_of_db(self.compaction_completed, || CompactionInfo::of(job));
    }

    fn on_subcompaction_begin(&self, part: &SubcompactionInfo) {
        self.tell(self.part_begin, || PartInfo::of(part));
    }

    fn on_subcompaction_completed(&self, part: &SubcompactionInfo) {
        self.tell(self.part_completed, || PartInfo::of(part));
    }

    fn on_external_file_ingested(&self, table: &IngestionInfo) {
        self.tell_of_db(self.ingested, || IngestedInfo::of(table));
    }

    fn on_background_error(
        &self,
        reason: BackgroundErrorReason,
        error: &flagstone::Error,
        is_fatal: bool,
    ) {
        self.tell_of_error(self.error, reason, error, is_fatal);
    }

    fn on_error_recovery_begin(&self, reason: BackgroundErrorReason, error: &flagstone::Error) {
        self.tell_of_error(self.recovery_begin, reason, error, false);
    }

    fn on_error_recovery_end(&self, recovery: &ErrorRecoveryInfo) {
        let Some(callback) = self.recovery_end else { return };
        let earlier = Part::new(Status::of(&recovery.earlier, false));
        let now = recovery.now.as_ref().map(|error| Part::new(Status::of(error, true)));
        let now = now.as_ref().map_or(std::ptr::null(), Part::pointer);
        calling("a listener", || callback(self.state.pointer(), earlier.pointer(), now));
    }

    fn on_stall_conditions_changed(&self, stall: &WriteStallInfo) {
        self.tell(self.stall, || StallInfo::of(stall));
    }

    fn on_memtable_sealed(&self, memtable: &reports::MemtableInfo) {
        self.tell(self.sealed, || MemtableInfo(memtable.clone()));
    }
}

/// A listener.
pub struct Listener(Arc<Callbacks>);

impl Listener {
    /// As the engine takes it.
    pub fn engine(self) -> Arc<dyn EventListener> {
        self.0
    }
}

/// What makes partitioners.
pub struct Partitioner(SstPartitionerFixedPrefixFactory);

impl Partitioner {
    /// As the engine takes it.
    pub fn engine(&self) -> Arc<dyn flagstone::SstPartitionerFactory> {
        Arc::new(self.0)
    }
}

handles! {
    Listener = "eventlistener",
    Partitioner = "sst_partitioner_factory",
}

destroys! {
    rocksdb_eventlistener_destroy: Listener,
    rocksdb_sst_partitioner_factory_destroy: Partitioner,
}

c_api! {
    fn rocksdb_eventlistener_create(
        state: *mut c_void, destructor: Option<Destructor>, flush_begin: OfDb<FlushInfo>,
        flush_completed: OfDb<FlushInfo>, compaction_begin: OfDb<CompactionInfo>,
        compaction_completed: OfDb<CompactionInfo>, part_begin: Of<PartInfo>,
        part_completed: Of<PartInfo>, ingested: OfDb<IngestedInfo>, error_of: OnError,
        stall: Of<StallInfo>, sealed: Of<MemtableInfo>
    ) -> *mut Tagged<Listener> {
        let state = State::new(state, destructor);
        make(Listener(Arc::new(Callbacks {
            state, flush_begin, flush_completed, compaction_begin, compaction_completed,
            part_begin, part_completed, ingested, error: error_of, stall, sealed,
            recovery_begin: None, recovery_end: None,
        })))
    }

    fn rocksdb_eventlistener_set_error_recovery(
        listener: &mut Listener, begin: OnError, end: OnRecovered
    ) {
        match Arc::get_mut(&mut listener.0) {
            Some(callbacks) => {
                callbacks.recovery_begin = begin;
                callbacks.recovery_end = end;
            }
            None => tracing::warn!("callbacks of a listener that options have are not changed"),
        }
    }

    fn rocksdb_options_add_eventlistener(o: &mut Options, listener: Own<Listener>) {
        if let Some(listener) = or_abort("listener", listener.get()) {
            o.rdb.db.listeners.push(listener.engine());
        }
    }

    fn rocksdb_sst_partitioner_fixed_prefix_factory_create(
        length: usize
    ) -> *mut Tagged<Partitioner> {
        make(Partitioner(SstPartitionerFixedPrefixFactory::new(length)))
    }

    fn rocksdb_options_set_sst_partitioner_factory(o: &mut Options, factory: ?Partitioner) {
        o.rdb.db.cf.sst_partitioner_factory =
            factory.map(Partitioner::engine);
    }
}
