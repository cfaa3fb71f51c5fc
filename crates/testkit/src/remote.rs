//! A compaction service whose workers are calls in the thread that waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use flagstone::options::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, CompactionServiceScheduleResponse, OpenAndCompactOptions,
    Options,
};
use flagstone::{Result, open_and_compact};
use parking_lot::Mutex;

/// What a worker has: components, by the job.
type Components =
    Box<dyn Fn(&CompactionServiceJobInfo) -> CompactionServiceOptionsOverride + Send + Sync>;

/// What becomes of a job that a worker has done.
pub type Fate = Box<
    dyn Fn(&CompactionServiceJobInfo, Result<Vec<u8>>) -> (CompactionServiceJobStatus, Vec<u8>)
        + Send
        + Sync,
>;

/// A compaction service in the process of the database.
pub struct Workers {
    components: Components,
    fate: Mutex<Arc<Fate>>,
    answer: Mutex<CompactionServiceJobStatus>,
    jobs: Mutex<Jobs>,
}

#[derive(Default)]
struct Jobs {
    scheduled: BTreeMap<String, (CompactionServiceJobInfo, Vec<u8>)>,
    count: usize,
    /// What the service was told of each job that has ended.
    ended: Vec<CompactionServiceJobStatus>,
}

impl Workers {
    /// Workers with these components, which do what they are told.
    pub fn new(
        components: impl Fn(&CompactionServiceJobInfo) -> CompactionServiceOptionsOverride
        + Send
        + Sync
        + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            components: Box::new(components),
            fate: Mutex::new(Arc::new(Box::new(|_, outcome| faithful(outcome)))),
            answer: Mutex::new(CompactionServiceJobStatus::Success),
            jobs: Mutex::default(),
        })
    }

    /// Workers with the components of these options, in the same world.
    pub fn with(options: &Options) -> Arc<Self> {
        let components = CompactionServiceOptionsOverride::of(options);
        Self::new(move |_| components.clone())
    }

    /// From now on something else becomes of what workers have done.
    pub fn meet(&self, fate: Fate) {
        *self.fate.lock() = Arc::new(fate);
    }

    /// From now on jobs are scheduled so.
    pub fn answer(&self, status: CompactionServiceJobStatus) {
        *self.answer.lock() = status;
    }

    /// What the service was told of jobs that have ended since this was called last.
    pub fn ended(&self) -> Vec<CompactionServiceJobStatus> {
        std::mem::take(&mut self.jobs.lock().ended)
    }
}

/// The options of a database, whose world is another now: so is that of its workers.
pub fn follow(options: &mut Options) {
    if options.compaction_service.is_some() {
        options.compaction_service = Some(Workers::with(options));
    }
}

/// The status and the result of a worker as they are.
pub fn faithful(outcome: Result<Vec<u8>>) -> (CompactionServiceJobStatus, Vec<u8>) {
    match outcome {
        Ok(result) => (CompactionServiceJobStatus::Success, result),
        Err(_) => (CompactionServiceJobStatus::Failure, Vec::new()),
    }
}

impl CompactionService for Workers {
    fn name(&self) -> &str {
        "Workers"
    }

    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        let answer = *self.answer.lock();
        if answer != CompactionServiceJobStatus::Success {
            return CompactionServiceScheduleResponse::not_scheduled(answer);
        }
        let mut jobs = self.jobs.lock();
        jobs.count += 1;
        let id = jobs.count.to_string();
        jobs.scheduled.insert(id.clone(), (info.clone(), input.to_vec()));
        CompactionServiceScheduleResponse::scheduled(id)
    }

    fn wait(
        &self,
        scheduled_job_id: &str,
        _is_wanted: &dyn Fn() -> bool,
    ) -> (CompactionServiceJobStatus, Vec<u8>) {
        let job = self.jobs.lock().scheduled.remove(scheduled_job_id);
        let Some((info, input)) = job else {
            return (CompactionServiceJobStatus::Failure, Vec::new());
        };
        let (components, options) = ((self.components)(&info), OpenAndCompactOptions::default());
        let outcome =
            open_and_compact(&info.db_path, &info.output_directory, &input, &components, &options);
        let fate = self.fate.lock().clone();
        fate(&info, outcome)
    }

    fn on_installation(&self, _scheduled_job_id: &str, status: CompactionServiceJobStatus) {
        self.jobs.lock().ended.push(status);
    }
}
