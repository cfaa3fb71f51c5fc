//! Compactions that other processes do: the service of a database, and what a worker calls.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

use flagstone::options::StatisticsReceiver;
use flagstone::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, CompactionServiceScheduleResponse, open_and_compact,
};
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::engine_env;

use crate::abi::{
    Destructor, Out, Own, Result, State, Tagged, calling, copied_text, fail, handles, make,
    or_abort, returned,
};
use crate::api::{c_api, creates, destroys};
use crate::compact_files::Cancellation;
use crate::components::{CompactionFilter, Comparator, FilterFactory, Merger, SliceTransform};
use crate::env::Env;
use crate::event_infos::{Part, lend, path_bytes};
use crate::file_manager::FileChecksums;
use crate::job_infos::number_of_reason;
use crate::listener::{Listener, Partitioner};
use crate::logger::Logger;
use crate::options::Options;
use crate::tables::{Cuckoo, TableOptions, refuse_tables, set_tables};

/// The status of a number.
fn status_of(number: c_int) -> Option<CompactionServiceJobStatus> {
    Some(match number {
        0 => CompactionServiceJobStatus::Success,
        1 => CompactionServiceJobStatus::Failure,
        2 => CompactionServiceJobStatus::Aborted,
        3 => CompactionServiceJobStatus::UseLocal,
        _ => return None,
    })
}

fn number_of(status: CompactionServiceJobStatus) -> c_int {
    match status {
        CompactionServiceJobStatus::Success => 0,
        CompactionServiceJobStatus::Failure => 1,
        CompactionServiceJobStatus::Aborted => 2,
        CompactionServiceJobStatus::UseLocal => 3,
    }
}

/// How a service answers.
pub struct ScheduleResponse(CompactionServiceScheduleResponse);

/// What a service is asked to do.
pub struct ServiceJobInfo(CompactionServiceJobInfo);

/// Schedules a compaction: state, what it is, its description, and how long that is.
type Schedule = extern "C-unwind" fn(
    *mut c_void,
    *const Tagged<ServiceJobInfo>,
    *const c_char,
    usize,
) -> Own<ScheduleResponse>;
/// Waits for one: state, its id, the result, and how long that is. Returns a status.
type Wait = extern "C-unwind" fn(*mut c_void, *const c_char, *mut *mut c_char, *mut usize) -> c_int;
/// The database is being closed.
type Cancel = extern "C-unwind" fn(*mut c_void);
/// A compaction has ended: state, its id, how.
type Installed = extern "C-unwind" fn(*mut c_void, *const c_char, c_int);

/// A program's callbacks. Any may be NULL.
struct Callbacks {
    state: State,
    name: String,
    schedule: Option<Schedule>,
    wait: Option<Wait>,
    cancel: Option<Cancel>,
    installed: Option<Installed>,
}

impl CompactionService for Callbacks {
    fn name(&self) -> &str {
        &self.name
    }

    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        let not_scheduled = CompactionServiceScheduleResponse::not_scheduled;
        let Some(schedule) = self.schedule else {
            return not_scheduled(CompactionServiceJobStatus::UseLocal);
        };
        let info = Part::new(ServiceJobInfo(info.clone()));
        let response = calling("a compaction service", || {
            schedule(self.state.pointer(), info.pointer(), input.as_ptr().cast(), input.len())
        });
        match or_abort("a compaction service", response.get()) {
            Some(response) => response.0,
            None => not_scheduled(CompactionServiceJobStatus::Failure),
        }
    }

    fn wait(
        &self,
        scheduled_job_id: &str,
        _is_wanted: &dyn Fn() -> bool,
    ) -> (CompactionServiceJobStatus, Vec<u8>) {
        let Some(wait) = self.wait else {
            return (CompactionServiceJobStatus::UseLocal, Vec::new());
        };
        let id = c_id(scheduled_job_id);
        let (mut result, mut len) = (std::ptr::null_mut(), 0usize);
        let status = calling("a compaction service", || {
            wait(self.state.pointer(), id.as_ptr(), &raw mut result, &raw mut len)
        });
        let bytes = returned(result, len, <[u8]>::to_vec).unwrap_or_default();
        crate::abi::free(result.cast());
        match status_of(status) {
            Some(status) => (status, bytes),
            None => fail("a compaction service", "wait has returned no status"),
        }
    }

    fn cancel_awaiting_jobs(&self) {
        if let Some(cancel) = self.cancel {
            calling("a compaction service", || cancel(self.state.pointer()));
        }
    }

    fn on_installation(&self, scheduled_job_id: &str, status: CompactionServiceJobStatus) {
        if let Some(installed) = self.installed {
            let id = c_id(scheduled_job_id);
            calling("a compaction service", || {
                installed(self.state.pointer(), id.as_ptr(), number_of(status));
            });
        }
    }
}

/// An id, which came from C.
fn c_id(id: &str) -> CString {
    CString::new(id).unwrap_or_default()
}

/// A service.
pub struct Service(Arc<Callbacks>);

/// What a worker supplies.
#[derive(Default)]
pub struct Override {
    options: Options,
    has_tables: bool,
    settings: Vec<(String, String)>,
    statistics: Option<StatisticsReceiver>,
}

impl Override {
    fn engine(&self) -> Result<CompactionServiceOptionsOverride> {
        let options = self.options.rdb.engine()?;
        let mut engine = CompactionServiceOptionsOverride::of(&options);
        engine.table = self.has_tables.then(|| options.cf.table.clone());
        engine.info_log = match options.info_log {
            // There is no file LOG for a worker.
            flagstone::InfoLog::File => flagstone::InfoLog::Off,
            log => log,
        };
        if matches!(engine.comparator, Some(flagstone::Comparator::Bytewise)) {
            engine.comparator = None;
        }
        engine.settings.clone_from(&self.settings);
        engine.statistics.clone_from(&self.statistics);
        Ok(engine)
    }
}

/// Whether a worker is to stop; shared by its options.
#[derive(Clone, Default)]
pub struct Canceled(Arc<Cancellation>);

/// Options of a worker's call.
#[derive(Default)]
pub struct OpenAndCompact {
    canceled: Option<Canceled>,
    allow_resumption: bool,
}

/// Does what a database has ordered; the result, and how long it is.
fn work(
    options: &OpenAndCompact,
    path: &std::path::Path,
    output: &std::path::Path,
    input: &[u8],
    overrides: &Override,
    len: Out<usize>,
) -> Result<*mut c_char> {
    let options = flagstone::OpenAndCompactOptions {
        control: options.canceled.as_ref().map(|canceled| canceled.0.control()),
        allow_resumption: options.allow_resumption,
    };
    let done = open_and_compact(path, output, input, &overrides.engine()?, &options);
    let result = done.map_err(rdb::Error::from)?;
    len.set(result.len());
    Ok(copied_text(result))
}

handles! {
    ScheduleResponse = "compactionservice_scheduleresponse",
    ServiceJobInfo = "compactionservice_jobinfo",
    Service = "compactionservice",
    Override = "compaction_service_options_override",
    Canceled = "open_and_compact_canceled",
    OpenAndCompact = "open_and_compact_options",
}

creates! {
    rocksdb_compaction_service_options_override_create: Override,
    rocksdb_open_and_compact_canceled_create: Canceled,
    rocksdb_open_and_compact_options_create: OpenAndCompact,
}

destroys! {
    rocksdb_compactionservice_scheduleresponse_t_destroy: ScheduleResponse,
    rocksdb_compaction_service_options_override_destroy: Override,
    rocksdb_open_and_compact_canceled_destroy: Canceled,
    rocksdb_open_and_compact_options_destroy: OpenAndCompact,
}

/// A response, whose status must be one.
fn response(id: &str, number: c_int) -> Result<*mut Tagged<ScheduleResponse>> {
    let status = status_of(number).ok_or_else(|| {
        rdb::Error::invalid_argument(format_args!("Invalid status value. Must be 0-3."))
    })?;
    let scheduled_job_id = id.to_string();
    Ok(make(ScheduleResponse(CompactionServiceScheduleResponse { scheduled_job_id, status })))
}

c_api! {
    fn rocksdb_compactionservice_scheduleresponse_create(
        id: ?cstr, status: i32, error
    ) -> *mut Tagged<ScheduleResponse> {
        let id = id.map(|id| id.to_str().map_err(|_| {
            rdb::Error::invalid_argument(format_args!("the id of a job is no UTF-8"))
        }));
        response(id.transpose()?.unwrap_or_default(), status)?
    }

    fn rocksdb_compactionservice_scheduleresponse_create_with_status(
        status: i32, error
    ) -> *mut Tagged<ScheduleResponse> {
        response("", status)?
    }

    fn rocksdb_compactionservice_scheduleresponse_getstatus(response: ?ScheduleResponse) -> i32 {
        response.map_or(1, |response| number_of(response.0.status))
    }

    fn rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(
        response: &ScheduleResponse, len: Out<usize>
    ) -> *const c_char {
        lend(response.0.scheduled_job_id.as_bytes(), len)
    }

    fn rocksdb_compactionservice_jobinfo_t_get_db_name(
        info: &ServiceJobInfo, len: Out<usize>
    ) -> *const c_char {
        lend(path_bytes(&info.0.db_path), len)
    }

    fn rocksdb_compactionservice_jobinfo_t_get_db_id(
        info: &ServiceJobInfo, len: Out<usize>
    ) -> *const c_char {
        lend(info.0.db_id.as_bytes(), len)
    }

    fn rocksdb_compactionservice_jobinfo_t_get_db_session_id(
        info: &ServiceJobInfo, len: Out<usize>
    ) -> *const c_char {
        lend(info.0.db_session_id.as_bytes(), len)
    }

    fn rocksdb_compactionservice_jobinfo_t_get_cf_name(
        info: &ServiceJobInfo, len: Out<usize>
    ) -> *const c_char {
        lend(info.0.family_name.as_bytes(), len)
    }

    fn rocksdb_compactionservice_jobinfo_t_get_cf_id(info: &ServiceJobInfo) -> u32 {
        info.0.family.0
    }

    fn rocksdb_compactionservice_jobinfo_t_get_job_id(info: &ServiceJobInfo) -> u64 {
        info.0.job
    }

    fn rocksdb_compactionservice_jobinfo_t_get_priority(_info: &ServiceJobInfo) -> i32 {
        // Env::Priority::LOW.
        1
    }

    fn rocksdb_compactionservice_jobinfo_t_get_compaction_reason(info: &ServiceJobInfo) -> i32 {
        number_of_reason(info.0.reason) as i32
    }

    fn rocksdb_compactionservice_jobinfo_t_get_base_input_level(info: &ServiceJobInfo) -> i32 {
        info.0.start_level as i32
    }

    fn rocksdb_compactionservice_jobinfo_t_get_output_level(info: &ServiceJobInfo) -> i32 {
        info.0.output_level as i32
    }

    fn rocksdb_compactionservice_jobinfo_t_is_full_compaction(info: &ServiceJobInfo) -> u8 {
        info.0.is_full.into()
    }

    fn rocksdb_compactionservice_jobinfo_t_is_manual_compaction(info: &ServiceJobInfo) -> u8 {
        info.0.is_manual.into()
    }

    fn rocksdb_compactionservice_jobinfo_t_is_bottommost_level(info: &ServiceJobInfo) -> u8 {
        info.0.is_bottommost.into()
    }

    fn rocksdb_compactionservice_create(
        state: *mut c_void, destructor: Option<Destructor>, schedule: Option<Schedule>, name: ?cstr,
        wait: Option<Wait>, cancel: Option<Cancel>, installed: Option<Installed>
    ) -> *mut Tagged<Service> {
        let state = State::new(state, destructor);
        let name = name.map_or("CompactionService".into(), |name| name.to_string_lossy());
        let name = name.into_owned();
        make(Service(Arc::new(Callbacks { state, name, schedule, wait, cancel, installed })))
    }

    fn rocksdb_options_set_compaction_service(o: &mut Options, service: own Service) {
        if let Some(service) = service {
            o.rdb.db.compaction_service = Some(service.0);
        }
    }

    fn rocksdb_compaction_service_options_override_create_from_options(
        o: ?Options
    ) -> *mut Tagged<Override> {
        match o {
            Some(o) => {
                let options = o.clone();
                let statistics = options.rdb.statistics_receiver();
                make(Override { options, has_tables: true, settings: Vec::new(), statistics })
            }
            None => std::ptr::null_mut(),
        }
    }

    fn rocksdb_compaction_service_options_override_set_env(o: &mut Override, env: ?Env) {
        if let Some(env) = env {
            o.options.rdb.db.env = engine_env(&env.rdb).clone();
        }
    }

    fn rocksdb_compaction_service_options_override_set_comparator(
        o: &mut Override, comparator: ?Comparator
    ) {
        if let Some(comparator) = comparator {
            o.options.rdb.db.cf.comparator = comparator.engine();
        }
    }

    fn rocksdb_compaction_service_options_override_set_merge_operator(
        o: &mut Override, operator: own Merger
    ) {
        if let Some(operator) = operator {
            o.options.rdb.db.cf.merge_operator = Some(operator.engine());
        }
    }

    fn rocksdb_compaction_service_options_override_set_compaction_filter(
        o: &mut Override, filter: ?CompactionFilter
    ) {
        if let Some(filter) = filter {
            o.options.rdb.db.cf.compaction_filter = Some(filter.engine());
        }
    }

    fn rocksdb_compaction_service_options_override_set_compaction_filter_factory(
        o: &mut Override, factory: own FilterFactory
    ) {
        if let Some(factory) = factory {
            o.options.rdb.db.cf.compaction_filter_factory = Some(factory.engine());
        }
    }

    fn rocksdb_compaction_service_options_override_set_prefix_extractor(
        o: &mut Override, transform: own SliceTransform
    ) {
        if let Some(transform) = transform {
            o.options.rdb.db.cf.prefix_extractor = Some(transform.engine());
        }
    }

    fn rocksdb_compaction_service_options_override_set_block_based_table_factory(
        o: &mut Override, tables: ?TableOptions
    ) {
        if let Some(tables) = tables {
            set_tables(&mut o.options, tables);
            o.has_tables = true;
        }
    }

    fn rocksdb_compaction_service_options_override_set_cuckoo_table_factory(
        o: &mut Override, _tables: ?Cuckoo
    ) {
        refuse_tables(&mut o.options, "cuckoo");
    }

    fn rocksdb_compaction_service_options_override_add_event_listener(
        o: &mut Override, listener: own Listener
    ) {
        if let Some(listener) = listener {
            o.options.rdb.db.listeners.push(listener.engine());
        }
    }

    fn rocksdb_compaction_service_options_override_set_statistics(
        o: &mut Override, counted: ?Options
    ) {
        if let Some(counted) = counted {
            o.statistics = counted.rdb.statistics_receiver();
        }
    }

    fn rocksdb_compaction_service_options_override_set_info_log(
        o: &mut Override, logger: ?Logger
    ) {
        if let Some(logger) = logger {
            o.options.rdb.set_info_logger(logger.engine());
        }
    }

    fn rocksdb_compaction_service_options_override_set_option(
        o: &mut Override, name: str, value: str
    ) {
        o.settings.push((name.to_string(), value.to_string()));
    }

    fn rocksdb_compaction_service_options_override_set_file_checksum_gen_factory(
        o: &mut Override, factory: ?FileChecksums
    ) {
        if factory.is_some() {
            let value = "FileChecksumGenCrc32cFactory".to_string();
            o.settings.push(("file_checksum_gen_factory".to_string(), value));
        }
    }

    fn rocksdb_compaction_service_options_override_set_sst_partitioner_factory(
        o: &mut Override, factory: ?Partitioner
    ) {
        if let Some(factory) = factory {
            o.options.rdb.db.cf.sst_partitioner_factory = Some(factory.engine());
        }
    }

    fn rocksdb_open_and_compact_canceled_set(canceled: &Canceled, value: flag) {
        canceled.0.set(value);
    }

    fn rocksdb_open_and_compact_options_set_canceled(
        o: &mut OpenAndCompact, canceled: ?Canceled
    ) {
        if let Some(canceled) = canceled {
            o.canceled = Some(canceled.clone());
        }
    }

    fn rocksdb_open_and_compact_options_set_allow_resumption(o: &mut OpenAndCompact, on: flag) {
        o.allow_resumption = on;
    }

    fn rocksdb_open_and_compact_options_get_allow_resumption(o: &OpenAndCompact) -> u8 {
        o.allow_resumption.into()
    }

    fn rocksdb_open_and_compact(
        path: path, output: path, input: [u8], output_len: Out<usize>, overrides: &Override, error
    ) -> *mut c_char {
        let options = OpenAndCompact::default();
        work(&options, path, output, input, overrides, output_len)?
    }

    fn rocksdb_open_and_compact_with_options(
        options: &OpenAndCompact, path: path, output: path, input: [u8], output_len: Out<usize>,
        overrides: &Override, error
    ) -> *mut c_char {
        work(options, path, output, input, overrides, output_len)?
    }
}
