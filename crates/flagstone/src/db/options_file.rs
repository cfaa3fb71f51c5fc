//! The OPTIONS file. One that could not be written, as on a full disk, is tried again.

use std::sync::Arc;

use crate::base::sync::{Mutex, Ordering, Rank, ranked};
use crate::base::{Code, ColumnFamilyId, Result, SubCode, file_name};
use crate::db::context::Context;
use crate::db::family::Family;
use crate::db::statistics::Ticker;
use crate::db::tree::Tree;
use crate::options::{self, ColumnFamilyOptions};

/// The first pause between two attempts, in microseconds.
const PAUSE_MIN_US: u64 = 1_000_000;
/// The longest one.
const PAUSE_MAX_US: u64 = 30_000_000;

/// Whether a file is due. Each attempt takes a number and makes a file: pauses between them double.
#[derive(Debug, Default)]
pub(in crate::db) struct DueOptions {
    is_due: bool,
    pause_us: u64,
    next_us: u64,
}

impl DueOptions {
    /// Whether one is due.
    pub(in crate::db) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether one is due, and may be tried at this time of the clock.
    pub(in crate::db) fn may_be_tried(&self, now_us: u64) -> bool {
        self.is_due && now_us >= self.next_us
    }

    /// It could not be written at this time.
    pub(in crate::db) fn put_off(&mut self, now_us: u64) {
        self.is_due = true;
        self.pause_us = (2 * self.pause_us).clamp(PAUSE_MIN_US, PAUSE_MAX_US);
        self.next_us = now_us + self.pause_us;
    }

    /// A file was written, which says all.
    pub(in crate::db) fn settle(&mut self) {
        *self = Self::default();
    }
}

/// Writes OPTIONS files, one at a time.
pub(in crate::db) struct OptionsFile {
    context: Arc<Context>,
    tree: Arc<Tree>,
    /// Held while a file is written; taken before all other locks.
    due: Mutex<DueOptions>,
}

impl OptionsFile {
    pub(in crate::db) fn new(context: Arc<Context>, tree: Arc<Tree>) -> Self {
        Self { context, tree, due: ranked(Rank::OptionsFile, DueOptions::default()) }
    }

    /// At close: writes the file that is due. Who comes later is refused, and leaves none that is
    /// due.
    pub(in crate::db) fn close(&self) {
        let mut due = self.due.lock();
        if let Err(error) = self.write_due_options(&mut due) {
            tracing::warn!(%error, "closed without an up-to-date OPTIONS file");
        }
        self.context.closing.store(true, Ordering::Release);
    }

    /// Waits for who writes a file now.
    pub(in crate::db) fn wait(&self) {
        drop(self.due.lock());
    }

    /// The options in force as the text of an OPTIONS file.
    fn options_text(&self) -> String {
        self.text_of(|_| true, false)
    }

    /// The text for a copy of the database, or of `only` one of its families.
    pub(in crate::db) fn text_of_copy(&self, only: Option<ColumnFamilyId>) -> String {
        let is_in = |id| id == ColumnFamilyId::DEFAULT || only.is_none_or(|only| id == only);
        self.text_of(is_in, true)
    }

    /// The text for one of the families, and what belongs to all.
    pub(in crate::db) fn text_of_family(&self, only: ColumnFamilyId) -> String {
        self.text_of(|id| id == ColumnFamilyId::DEFAULT || id == only, false)
    }

    fn text_of(&self, is_in: impl Fn(ColumnFamilyId) -> bool, of_copy: bool) -> String {
        let mut options = self.context.settings.load_full().as_kept();
        let mut families: Vec<(Arc<Family>, ColumnFamilyOptions)> = self
            .tree
            .families
            .read()
            .values()
            .filter(|family| is_in(family.id))
            .map(|family| (family.clone(), (*family.options.load_full()).clone()))
            .collect();
        if of_copy {
            options.stand_alone();
            families.iter_mut().for_each(|(_, family)| family.stand_alone());
        }
        let listed: Vec<(&str, &ColumnFamilyOptions)> =
            families.iter().map(|(family, options)| (family.name.as_str(), options)).collect();
        options::file::print(&options, &listed)
    }

    /// Writes the options in force to a new OPTIONS file.
    pub(in crate::db) fn write_options_file(&self) -> Result<()> {
        self.write_options(&mut self.due.lock())
    }

    /// One at a time, so that the file with the highest number says what is in force.
    fn write_options(&self, due: &mut DueOptions) -> Result<()> {
        self.context.check_open()?;
        let text = self.options_text();
        let number = self.tree.file_numbers.allocate();
        let temporary = file_name::temporary(&self.context.path, number);
        let target = file_name::options(&self.context.path, number);
        let written = self.context.names.replace_file(&temporary, &target, text.as_bytes());
        written.inspect_err(|_| {
            // A name that a power loss may take is not to count among the newest two, which stay.
            let _ = self.context.names.fs().remove(&target);
        })?;
        due.settle();
        // It stands whatever becomes of older ones.
        self.tree.tidy_metadata();
        Ok(())
    }

    /// The same when families were made or dropped, which is durable by then, and not undone by a
    /// file that cannot be written: that is tried again.
    pub(in crate::db) fn write_options_of_families(&self) -> Result<()> {
        let mut due = self.due.lock();
        match self.write_options(&mut due) {
            Err(error) if error.code() == Code::IoError => {
                if !due.is_due() || error.subcode() != SubCode::NoSpace {
                    tracing::warn!(%error, "an OPTIONS file could not be written and will be retried");
                }
                self.put_off_options(&mut due);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// The same when options were changed, which are in force by then: it is tried again as well,
    /// and the caller told.
    pub(in crate::db) fn write_changed_options(&self) -> Result<()> {
        let mut due = self.due.lock();
        self.write_options(&mut due).map_err(|error| match error.code() {
            Code::IoError => {
                self.put_off_options(&mut due);
                error.context("the change is in force, but not in an OPTIONS file yet")
            }
            _ => error,
        })
    }

    fn put_off_options(&self, due: &mut DueOptions) {
        due.put_off(self.context.env.clock.now_us());
        self.context.statistics.add(Ticker::OptionsFilesPutOff, 1);
    }

    /// Writes the OPTIONS file that could not be written before; not again right after an attempt.
    pub(in crate::db) fn write_due_options_file(&self) {
        // Who writes one now writes what is due, or it is due still.
        if let Some(mut due) = self.due.try_lock()
            && due.is_due()
            && due.may_be_tried(self.context.env.clock.now_us())
            && let Err(error) = self.write_due_options(&mut due)
            // That there is no room was said.
            && error.subcode() != SubCode::NoSpace
        {
            tracing::warn!(%error, "no OPTIONS file");
        }
    }

    /// Writes the OPTIONS file if one is due.
    fn write_due_options(&self, due: &mut DueOptions) -> Result<()> {
        if !due.is_due() {
            return Ok(());
        }
        let written = self.context.poison.check_fatal().and_then(|()| self.write_options(due));
        written.inspect_err(|_| self.put_off_options(due))
    }
}
