//! A message queue: messages with leases, counters, workers that are forgotten when they are
//! silent, a report as of one moment, and reads in tasks of tokio.
//!
//! `cargo run --example message_queue DIRECTORY`

use std::path::Path;
use std::time::Duration;

use flagstone::{Db, Family, Result, WriteOptions};

/// How long a worker has for a message before another gets it.
const LEASE: Duration = Duration::from_secs(30);
/// How long a silent worker is known.
const SILENCE: Duration = Duration::from_secs(60);

struct Queue {
    db: Db,
    /// Queue, a zero byte, number: the body.
    messages: Family,
    /// Messages that a worker has, by the same keys: until when.
    leases: Family,
    /// Sums by name.
    counters: Family,
    /// Names of workers, which expire.
    workers: Family,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

fn now() -> u64 {
    flagstone::Env::os().clock.unix_seconds()
}

impl Queue {
    fn open(path: &Path) -> Result<Self> {
        let db = Db::builder(path)
            .column_family("messages", |_| {})
            .column_family("leases", |_| {})
            .column_family("counters", |family| {
                family.merge_with("sum", |_name, sum, more| {
                    let all = sum.into_iter().chain(more.iter().copied());
                    Some(all.map(number).sum::<u64>().to_be_bytes().to_vec())
                });
            })
            .expiring_family("workers", SILENCE, |_| {})
            .open()?;
        Ok(Self {
            messages: db.column_family("messages")?,
            leases: db.column_family("leases")?,
            counters: db.column_family("counters")?,
            workers: db.column_family("workers")?,
            db,
        })
    }

    /// Adds a message, which survives a loss of power when this returns.
    fn push(&self, queue: &str, body: &str) -> Result<()> {
        let options =
            flagstone::TransactOptions { write: WriteOptions::synced(), ..Default::default() };
        let next = format!("next of {queue}");
        self.db.transact_with(&options, |change| {
            let id = change.get_for_update(&self.db, &next)?.map_or(0, |id| number(&id));
            change.put(&self.db, &next, (id + 1).to_be_bytes())?;
            let key = [queue.as_bytes(), &[0], &id.to_be_bytes()].concat();
            change.put(&self.messages, key, body)
        })?;
        self.counters.merge(format!("pushed to {queue}"), 1u64.to_be_bytes())
    }

    /// The first message of a queue that no worker has: its key and body.
    fn take(&self, queue: &str, worker: &str) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.workers.put(worker, queue)?;
        self.db.transact(|change| {
            for message in change.family(&self.messages)?.prefix([queue.as_bytes(), &[0]].concat())
            {
                let (key, body) = message?;
                let lease = change.get_for_update(&self.leases, &key)?;
                if lease.is_none_or(|until| number(&until) <= now()) {
                    change.put(&self.leases, &key, (now() + LEASE.as_secs()).to_be_bytes())?;
                    return Ok(Some((key, body)));
                }
                change.undo_get_for_update(&self.leases, &key)?;
            }
            Ok(None)
        })
    }

    /// Removes a message that is done with.
    fn done(&self, key: &[u8]) -> Result<()> {
        self.db.transact(|change| {
            change.delete(&self.messages, key)?;
            change.delete(&self.leases, key)
        })
    }

    /// How many messages wait, and how many a worker has, as of one moment.
    fn report(&self) -> Result<(usize, usize)> {
        let moment = self.db.snapshot();
        let count = |family| {
            moment.family(family)?.iter().keys().try_fold(0, |sum, key| key.map(|_| sum + 1))
        };
        let (all, taken) = (count(&self.messages)?, count(&self.leases)?);
        Ok((all - taken, taken))
    }
}

/// Three messages come, and one is worked on.
pub async fn run(path: &Path) -> Result<(usize, usize)> {
    let queue = Queue::open(path)?;
    for body in ["resize photo 7", "resize photo 8", "send mail to ada"] {
        queue.push("jobs", body)?;
    }
    let Some((key, body)) = queue.take("jobs", "worker 1")? else { return queue.report() };
    println!("worker 1 does: {}", String::from_utf8_lossy(&body));
    let (again, pushed) =
        tokio::join!(queue.messages.get_async(&key), queue.counters.get_async("pushed to jobs"));
    println!("still there: {}, pushed: {:?}", again?.is_some(), pushed?.map(|sum| number(&sum)));
    queue.done(&key)?;
    println!("workers: {}", queue.workers.iter().keys().count());
    queue.report()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "queue.db".into());
    println!("(waiting, taken): {:?}", run(Path::new(&path)).await?);
    Ok(())
}
