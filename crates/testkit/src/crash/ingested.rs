//! Batches that a life has ingested.

use std::path::Path;

use super::life::{How, Life};
use super::promises::{Batch, NEVER};
use crate::external;
use crate::model::Edit;

/// A batch of some keys and a range deletion of each of these families, as tables that are
/// ingested together: durable, and so is what was logged before.
pub(super) fn ingest(life: &mut Life, families: &[&str]) {
    let mut edits = Vec::new();
    for name in families {
        let begin = format!("k{:02}", life.random.u8(..18)).into_bytes();
        edits.push((*name, Edit::DeleteRange { end: [&begin[..], b"~"].concat(), begin }));
        edits.extend((0..life.random.usize(1..5)).map(|_| (*name, life.put_edit())));
    }
    let (number, batch) = life.numbered(How::Logged, &edits);
    let (env, outside) = (life.options.env.clone(), Path::new("/outside"));
    let mut groups = external::tables(life.db(), &env, outside, &batch).expect("tables");
    for group in &mut groups {
        let kind = life.random.u8(..4);
        group.options.move_files = kind == 0;
        group.options.link_files = kind == 1;
        group.options.write_global_seqno = kind == 2;
    }
    let earliest = life.earliest();
    life.db().ingest_together(&groups).expect("an ingestion");
    let edits = batch.into_iter().map(|(name, edit)| (life.family(&name), edit)).collect();
    let span = life.done(earliest);
    let is_logged = true;
    life.promises.batches.push(Batch { number, is_logged, edits, span, durable: NEVER });
    life.note_durable(|batch| batch.is_logged);
    external::remove(&env, &groups);
}
