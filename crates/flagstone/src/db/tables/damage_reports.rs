//! Errors that readers have met, until somebody takes note of them.

use std::sync::Arc;

use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Code, Error, SubCode};
use crate::db::family::Family;
use crate::env::is_out_of_descriptors;

/// So many errors wait to be noted at most; what is left out is met again.
const REPORTS_MAX: usize = 64;

/// Errors of cursors, who do not know the engine's state. Whoever asks for damaged files takes note
/// of them, and each round of background work.
#[derive(Default)]
pub(in crate::db) struct DamageReports {
    met: Mutex<Vec<(Arc<Family>, Error)>>,
    any: AtomicBool,
}

impl DamageReports {
    /// A cursor over this family has met this error.
    #[cold]
    pub(in crate::db) fn add(&self, family: &Arc<Family>, error: &Error) {
        if !may_be_damage(error) {
            return;
        }
        let mut met = self.met.lock();
        let is_known = met.iter().any(|(_, known)| known.path() == error.path());
        if !is_known && met.len() < REPORTS_MAX {
            met.push((family.clone(), error.clone()));
            self.any.store(true, Ordering::Release);
        }
    }

    pub(in crate::db) fn take(&self) -> Vec<(Arc<Family>, Error)> {
        if self.any.load(Ordering::Acquire) && self.any.swap(false, Ordering::AcqRel) {
            std::mem::take(&mut *self.met.lock())
        } else {
            Vec::new()
        }
    }
}

/// Whether an error says that a file is not what was written, or cannot be read, be it only by this
/// engine.
pub(in crate::db) fn may_be_damage(error: &Error) -> bool {
    let is_unreadable =
        matches!(error.code(), Code::Corruption | Code::IoError | Code::NotSupported)
            || error.subcode() == SubCode::WrongKey;
    is_unreadable
        && error.subcode() != SubCode::MemoryChanged
        && !error.waits_for_space()
        && !is_out_of_descriptors(error)
}
