//! Compaction of chosen tables, for whoever runs a policy of his own.

use std::collections::BTreeSet;

use crate::base::{Error, FileNumber, Result};
use crate::compaction::pick::{
    CompactionPlan, OutputCompression, in_the_way, path_of_level, plan_files,
};
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::settings::leveled_settings;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::paused_work;
use crate::db::tree::state::State;
use crate::manifest::Version;
use crate::options::{CompactFilesOptions, CompactionStyle, JobInfo};

impl Db {
    /// Compacts tables of a family into `output_level`, with those that must go with them: all
    /// between them and, in the levels on the way, all that overlap. Returns the numbers of the
    /// tables that were written. [`Db::live_files`] lists what there is; with
    /// `disable_auto_compactions` nobody else compacts.
    ///
    /// ```
    /// # use flagstone::db::Db;
    /// # use flagstone::env::Env;
    /// # use flagstone::options::{CompactFilesOptions, Options};
    /// # fn main() -> flagstone::base::Result<()> {
    /// let mut options = Options { env: Env::memory(), ..Options::default() };
    /// options.create_if_missing = true;
    /// options.set("disable_auto_compactions", "true")?;
    /// let db = Db::open("/db", &options)?;
    /// for value in ["one", "another"] {
    ///     db.put("key", value)?;
    ///     db.flush_all()?;
    /// }
    /// let tables: Vec<_> = db.live_files().iter().map(|file| file.number).collect();
    /// let (family, how) = (db.default_column_family(), CompactFilesOptions::default());
    /// let written = db.compact_files(family, &tables, 1, &how)?;
    /// assert_eq!((tables.len(), written.len()), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: no table, one that is not there or lies below the output level, a level
    /// or directory that is not there; a level other than 0 in FIFO compaction. `Aborted`: another
    /// compaction is in the way (in universal compaction also one that takes the room that is there
    /// once for merging the oldest run). `Incomplete`: canceled. `Corruption` or `IoError` of the
    /// rewriting. `ColumnFamilyDropped`.
    pub fn compact_files(
        &self,
        family: &ColumnFamily,
        tables: &[FileNumber],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<Vec<FileNumber>> {
        Ok(self.compact_chosen(family, tables, (output_level, options), false)?.0)
    }

    /// [`Db::compact_files`] that returns what listeners are told of the compaction. Opens the
    /// tables that it reads once more, for their properties.
    ///
    /// # Errors
    /// As [`Db::compact_files`].
    pub fn compact_files_reported(
        &self,
        family: &ColumnFamily,
        tables: &[FileNumber],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<JobInfo> {
        let done = self.compact_chosen(family, tables, (output_level, options), true)?;
        Ok(done.1.unwrap_or_default())
    }

    fn compact_chosen(
        &self,
        family: &ColumnFamily,
        tables: &[FileNumber],
        (output_level, options): (usize, &CompactFilesOptions),
        is_reported: bool,
    ) -> Result<(Vec<FileNumber>, Option<JobInfo>)> {
        let inner = self.inner();
        inner.disk.check_changeable()?;
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        let requested = paused_work::begin_requested(&inner.tree)?;
        let planned = inner.tree.begin_planned(|state| {
            inner.disk.check_changeable()?;
            let job = self.job_for_files(state, family, tables, output_level, options)?;
            Ok(Some((CompactionJob { is_reported, ..job }, ())))
        })?;
        let Some((job, ())) = planned else { return Ok((Vec::new(), None)) };
        if let Some(control) = &options.control {
            control.begin(job.plan.input_bytes());
        }
        let (family, takes_turn) = (job.family.id, job.plan.takes_turn);
        let outcome = inner.jobs.run_compaction(&job);
        let report = job.told.lock().take().filter(|_| is_reported);
        drop(job);
        if takes_turn {
            // Its turn ends when what it replaced is removed, and before anybody is told of it, who
            // may ask for another.
            inner.jobs.purge_all_obsolete_files();
            inner.tree.end_turn(family, true);
        }
        drop(requested);
        Ok((inner.jobs.end_asked_for(outcome)?, report))
    }

    pub(in crate::db) fn job_for_files(
        &self,
        state: &State,
        family: &ColumnFamily,
        tables: &[FileNumber],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<CompactionJob> {
        family.0.check_alive()?;
        let known = &state.families[&family.0.id];
        let settings = family.0.options.load();
        if settings.compaction_style == CompactionStyle::Fifo && output_level != 0 {
            return Err(Error::invalid_argument("FIFO compaction keeps tables in level 0 only"));
        }
        let version = family.0.current.load().version.clone();
        let common = leveled_settings(&settings, &version.paths);
        let paths = family.0.paths.directories().len();
        let path_id =
            options.output_path_id.unwrap_or_else(|| path_of_level(&common, output_level));
        if path_id as usize >= paths {
            return Err(Error::invalid_argument(format!(
                "output_path_id {path_id} is too large: the column family has {paths} path(s)"
            )));
        }
        let chosen: BTreeSet<_> = tables.iter().copied().collect();
        let context = self.inner().tree.pick_context(state, known);
        let mut plan = plan_files(&version, &common, &context, &chosen, (output_level, path_id))?;
        if settings.compaction_style == CompactionStyle::Universal && plan.rewrites() {
            plan.takes_turn = holds_oldest(&plan, &version);
            if plan.takes_turn && known.compacting.in_turn > 0 {
                return Err(in_the_way());
            }
        }
        let proximal = plan.proximal.as_mut().map(|proximal| &mut proximal.form);
        for form in std::iter::once(&mut plan.form).chain(proximal) {
            if let Some(codec) = options.compression {
                form.compression = OutputCompression { codec, is_bottommost: false };
            }
            if options.output_temperature_override.is_known() {
                form.temperature = options.output_temperature_override;
            }
        }
        if options.output_file_size_limit > 0 {
            if let Some(proximal) = &mut plan.proximal {
                proximal.table_bytes = options.output_file_size_limit;
            }
            plan.sizes.target = options.output_file_size_limit;
            plan.sizes.max = options.output_file_size_limit;
        }
        let mut job = CompactionJob::new(family.0.clone(), version, plan);
        job.is_manual = true;
        job.max_subcompactions = Some(options.max_subcompactions).filter(|most| *most > 0);
        job.control.clone_from(&options.control);
        Ok(job)
    }
}

/// Whether tables of the oldest run are among the inputs: as all runs, or a piece or part of them,
/// they may be as large as all others together.
fn holds_oldest(plan: &CompactionPlan, version: &Version) -> bool {
    let Some(bottom) = version.last_level_with_files() else { return false };
    let oldest = version.levels[0].last().map(|file| file.number());
    plan.files()
        .any(|(level, file)| level == bottom && (bottom > 0 || Some(file.number()) == oldest))
}
