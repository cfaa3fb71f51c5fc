//! Compactions in another process: the database orders each from a child, which is this program
//! once more.
//!
//! Order and result are files here. Where workers run on other machines, these would go over a
//! network, and the database's directory would lie on a file system that both reach.
//!
//! ```sh
//! cargo run --example remote_compaction -- /tmp/remote_compaction
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a program's own files and processes are not the engine's"
)]

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flagstone::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, CompactionServiceScheduleResponse, Db, OpenAndCompactOptions,
    Result, Ticker, open_and_compact,
};

/// Set for a child: the directory with its order.
pub const ORDER: &str = "REMOTE_COMPACTION_ORDER";

fn main() -> Result<()> {
    if let Ok(order) = std::env::var(ORDER) {
        return work(Path::new(&order));
    }
    let path = std::env::args().nth(1).unwrap_or_else(|| "remote_compaction.db".to_string());
    let program = std::env::current_exe().unwrap_or_default();
    run(Path::new(&path), program, Vec::new()).map(|_| ())
}

/// Does what the order in a directory says, and puts the result beside it.
///
/// # Errors
/// Those of the compaction.
pub fn work(directory: &Path) -> Result<()> {
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap_or_default();
    let text = |name: &str| String::from_utf8(read(name)).unwrap_or_default();
    // A merge operator or compaction filter of the database would have to be given here, too.
    let components = CompactionServiceOptionsOverride::default();
    let options = OpenAndCompactOptions::default();
    let (db, output) = (text("database"), text("output"));
    let result = open_and_compact(db, output, &read("input"), &components, &options)?;
    // What cannot be written the database misses, and does the compaction itself.
    let _ = std::fs::write(directory.join("result"), result);
    Ok(())
}

/// Starts a child for each compaction.
struct Children {
    program: PathBuf,
    arguments: Vec<String>,
    /// Where orders and results go.
    directory: PathBuf,
    running: Mutex<HashMap<String, Child>>,
}

impl Children {
    fn start(&self, id: &str, info: &CompactionServiceJobInfo, input: &[u8]) -> io::Result<Child> {
        let directory = self.directory.join(id);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("input"), input)?;
        std::fs::write(directory.join("database"), info.db_path.display().to_string())?;
        std::fs::write(directory.join("output"), info.output_directory.display().to_string())?;
        Command::new(&self.program).args(&self.arguments).env(ORDER, directory).spawn()
    }
}

impl CompactionService for Children {
    fn name(&self) -> &str {
        "children"
    }

    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        let id = format!("{}-{}", info.db_session_id, info.job);
        match self.start(&id, info, input) {
            Ok(child) => {
                let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                running.insert(id.clone(), child);
                CompactionServiceScheduleResponse::scheduled(id)
            }
            Err(error) => {
                eprintln!("no child could be started: {error}");
                let status = CompactionServiceJobStatus::UseLocal;
                CompactionServiceScheduleResponse::not_scheduled(status)
            }
        }
    }

    fn wait(
        &self,
        scheduled_job_id: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> (CompactionServiceJobStatus, Vec<u8>) {
        let failed = (CompactionServiceJobStatus::Failure, Vec::new());
        let child = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.remove(scheduled_job_id)
        };
        let Some(mut child) = child else { return failed };
        loop {
            match child.try_wait() {
                Ok(None) if is_wanted() => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => {
                    let _ = child.kill().and_then(|()| child.wait());
                    return (CompactionServiceJobStatus::Aborted, Vec::new());
                }
                Ok(Some(status)) if status.success() => break,
                _ => return failed,
            }
        }
        match std::fs::read(self.directory.join(scheduled_job_id).join("result")) {
            Ok(result) => (CompactionServiceJobStatus::Success, result),
            Err(_) => failed,
        }
    }

    fn on_installation(&self, scheduled_job_id: &str, _status: CompactionServiceJobStatus) {
        let _ = std::fs::remove_dir_all(self.directory.join(scheduled_job_id));
    }
}

/// Writes until there is something to compact; how many bytes children have written.
///
/// # Errors
/// Those of the database.
pub fn run(path: &Path, program: PathBuf, arguments: Vec<String>) -> Result<u64> {
    let directory = path.with_extension("orders");
    let service = Children { program, arguments, directory, running: Mutex::default() };
    let db = Db::builder(path)
        .options(|options| {
            options.cf.write_buffer_size = 256 << 10;
            options.cf.level0_file_num_compaction_trigger = 2;
            options.compaction_service = Some(std::sync::Arc::new(service));
        })
        .open()?;
    for number in 0..40_000u32 {
        db.put(format!("key {:06}", number * 7919 % 20_000), format!("value {number}"))?;
    }
    db.flush()?;
    db.wait_for_compactions()?;
    let written = db.statistics().get(Ticker::RemoteCompactWriteBytes);
    println!("children have written {written} bytes");
    db.close()?;
    Ok(written)
}
