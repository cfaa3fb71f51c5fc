//! The part of a log that is mapped next. A writer makes it without holding the log, while others
//! copy records into the part before.
//!
//! **Protocol.** The log asks for a part ([`Next::ask`]) and hands out a task that makes it
//! ([`FetchAhead`]). Before the log writes to that part by other means, or ends before it, it calls
//! [`Next::dismiss`]. That waits for a task that is running, and a task that starts later does
//! nothing.

use std::ops::Range;
use std::sync::Arc;

use super::space::Window;
use crate::base::sync::Mutex;
use crate::base::{Error, Result};
use crate::env::{LogFile, PAGE_RUN, PageRuns};

/// How far the next part is.
#[derive(Default)]
enum Stage {
    /// Nobody wants one.
    #[default]
    Dismissed,
    /// Nobody makes it yet.
    Asked,
    Ready(Window),
    /// It could not be made: whoever wants it next, or wants it no longer, hears why.
    Failed(Error),
}

/// The next part, as the log sees it.
#[derive(Default)]
pub(super) struct Next {
    stage: Arc<Mutex<Stage>>,
    /// The part that was asked for.
    asked: Option<Asked>,
}

struct Asked {
    part: Range<u64>,
    /// Nothing is written to what lies before, though it is mapped.
    writes_from: u64,
}

/// Makes the next part of a log, without the log.
#[must_use]
pub struct FetchAhead {
    stage: Arc<Mutex<Stage>>,
    log: Arc<dyn LogFile>,
    part: Range<u64>,
    zeros: Option<Range<u64>>,
    /// Given back on the same occasion.
    left: Option<Window>,
}

impl Next {
    /// Whether no part is asked for.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.asked.is_none()
    }

    /// Asks for a part of the file, with zeros in a range of it first, which begins at
    /// `writes_from` or behind it. Nobody has been asked for another. `left` is a part that nobody
    /// needs any more.
    pub fn ask(
        &mut self,
        log: Arc<dyn LogFile>,
        part: Range<u64>,
        writes_from: u64,
        zeros: Option<Range<u64>>,
        left: Option<Window>,
    ) -> FetchAhead {
        debug_assert!(self.is_wanted());
        // One of its own: who was asked earlier may still come.
        self.stage = Arc::new(Mutex::new(Stage::Asked));
        self.asked = Some(Asked { part: part.clone(), writes_from });
        FetchAhead { stage: self.stage.clone(), log, part, zeros, left }
    }

    /// The part, if it is ready and has `wanted`; else it is dismissed.
    ///
    /// # Errors
    /// Why it could not be made.
    pub fn take(&mut self, wanted: &Range<u64>) -> Result<Option<Window>> {
        let Some(asked) = self.asked.take() else { return Ok(None) };
        match std::mem::take(&mut *self.stage.lock()) {
            Stage::Ready(window)
                if asked.part.start <= wanted.start && wanted.end <= asked.part.end =>
            {
                Ok(Some(window))
            }
            Stage::Failed(error) => Err(error),
            _ => Ok(None),
        }
    }

    /// Lets go of the part if somebody writes up to `end`, to where whoever makes it writes, too.
    ///
    /// # Errors
    /// As [`Self::take`].
    #[inline]
    pub fn dismiss_before(&mut self, end: u64) -> Result<()> {
        let is_meant = self.asked.as_ref().is_some_and(|asked| end > asked.writes_from);
        if is_meant { self.dismiss() } else { Ok(()) }
    }

    /// Lets go of the part.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn dismiss(&mut self) -> Result<()> {
        self.take(&(0..u64::MAX)).map(drop)
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        // Nobody wants the log any longer.
        self.dismiss().ok();
    }
}

impl FetchAhead {
    /// Makes it, unless it was dismissed.
    pub fn fetch(mut self) {
        drop(self.left.take());
        let mut stage = self.stage.lock();
        if matches!(*stage, Stage::Asked) {
            *stage = match self.window() {
                Ok(Some(window)) => Stage::Ready(window),
                Ok(None) => Stage::Dismissed,
                Err(error) => Stage::Failed(error),
            };
        }
    }

    fn window(&self) -> Result<Option<Window>> {
        if let Some(zeros) = &self.zeros {
            PageRuns::write_zeros(&*self.log, zeros.clone(), PAGE_RUN)?;
        }
        Window::map(&*self.log, self.part.clone())
    }
}

#[cfg(test)]
mod tests;
