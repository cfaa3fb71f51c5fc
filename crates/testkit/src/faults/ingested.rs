//! Batches that a life has ingested.

use std::path::Path;
use std::sync::Arc;

use flagstone::env::{Env, FileSystem};

use super::life::Life;
use super::past::{Batch, Fate, LASTING};
use crate::external;

/// Ingests one batch over several families, as tables that a healthy disk has.
pub(super) fn ingest(life: &mut Life) -> bool {
    let Some(db) = life.db.clone() else { return false };
    if db.column_family(LASTING[1]).is_none() {
        return false;
    }
    let number = life.past.batches.len();
    let edits = life.edits(200, false);
    let fs: Arc<dyn FileSystem> = Arc::new(life.disk.clone());
    let env = Env { fs, ..life.options.env.clone() };
    let mut groups =
        external::tables(&db, &env, Path::new("/outside"), &edits).expect("a healthy disk");
    groups.iter_mut().for_each(|group| group.options.link_files = number.is_multiple_of(2));
    let begun = life.now();
    let outcome = db.ingest_together(&groups);
    let fate = Life::fate(&outcome);
    let is_acknowledged = fate == Fate::Acknowledged;
    assert!(
        !is_acknowledged || !life.wal_is_lost,
        "batch {number} is acknowledged after a failed sync of a WAL"
    );
    life.past.batches.push(Batch {
        edits,
        unlogged: false,
        fate,
        taken: is_acknowledged.then_some(life.past.processes),
        logged: is_acknowledged,
        begun,
        durable: None,
        settled: None,
    });
    if is_acknowledged {
        life.past.all_synced(life.now());
    }
    external::remove(&env, &groups);
    life.hear("ingest", outcome).is_some()
}
