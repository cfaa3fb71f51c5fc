//! Where threads that write at once are stopped and let go on, so that the same seed makes the same
//! life again.
//!
//! An actor is a thread that does the calls which a director gives it. It stops between the begin
//! and the end of each sync that its [`Stops`] name, until it is let go. The director decides who
//! goes next when nobody can go on alone.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use flagstone::base::file_name::FileKind;
use parking_lot::{Condvar, Mutex};

use crate::caught::catch;

/// At which syncs a call stops: at those during which the engine lets others write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stops {
    /// Of WALs and of the blob files that they name.
    Logs,
    /// Of tables and the MANIFEST.
    Outputs,
    /// At none; but during each, other threads have time to go on.
    Nowhere,
}

impl Stops {
    fn include(self, kind: &FileKind) -> bool {
        match self {
            Self::Logs => matches!(kind, FileKind::Wal(_) | FileKind::Blob(_)),
            Self::Outputs => matches!(kind, FileKind::Table(_) | FileKind::Manifest(_)),
            Self::Nowhere => true,
        }
    }
}

/// How often a thread that stops nowhere yields during a sync.
const BREATHS: usize = 40;

/// Where an actor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Before its next call.
    Rest,
    /// In a call; perhaps it waits for another actor.
    Call,
    /// Within a sync, until it is let go.
    Stop,
}

/// A call for an actor, and where it stops.
pub(super) struct Call<T> {
    pub stops: Stops,
    pub work: Box<dyn FnOnce() -> T + Send>,
}

#[derive(Default)]
struct State {
    actors: Vec<At>,
    /// No actor stops any more.
    is_over: bool,
}

/// The actors of one life.
pub(super) struct Stage {
    state: Mutex<State>,
    changed: Condvar,
}

/// What makes this thread stop.
struct Role {
    stage: Arc<Stage>,
    actor: usize,
    stops: Stops,
}

thread_local! {
    static ROLE: RefCell<Option<Role>> = const { RefCell::new(None) };
}

impl Stage {
    pub(super) fn new(actors: usize) -> Arc<Self> {
        let state = State { actors: vec![At::Rest; actors], is_over: false };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Does calls until there are no more; for each, what it returns or how it panicked.
    pub(super) fn act<T>(
        self: Arc<Self>,
        actor: usize,
        calls: Receiver<Call<T>>,
        outcomes: Sender<Result<T, String>>,
    ) {
        for Call { stops, work } in calls {
            ROLE.replace(Some(Role { stage: self.clone(), actor, stops }));
            let outcome = catch(work);
            ROLE.replace(None);
            // Where the director has gone, nobody wants to know.
            outcomes.send(outcome).ok();
            self.put(actor, At::Rest);
        }
    }

    /// Where an actor is.
    pub(super) fn at(&self, actor: usize) -> At {
        self.state.lock().actors[actor]
    }

    /// Begins a call, or lets an actor go on from where it has stopped.
    pub(super) fn let_go(&self, actor: usize) {
        self.put(actor, At::Call);
    }

    /// Waits until the actors are so.
    pub(super) fn wait_until(&self, is_so: impl Fn(&[At]) -> bool) {
        self.changed.wait_while(&mut self.state.lock(), |state| !is_so(&state.actors));
    }

    /// Lets all actors go on to their end when it is dropped, however the director ends.
    pub(super) fn ending(&self) -> Ending<'_> {
        Ending(self)
    }

    fn put(&self, actor: usize, at: At) {
        self.state.lock().actors[actor] = at;
        self.changed.notify_all();
    }

    fn stop(&self, actor: usize) {
        let mut state = self.state.lock();
        if !state.is_over {
            state.actors[actor] = At::Stop;
            self.changed.notify_all();
            self.changed
                .wait_while(&mut state, |state| state.actors[actor] == At::Stop && !state.is_over);
        }
    }
}

/// See [`Stage::ending`].
pub(super) struct Ending<'a>(&'a Stage);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Whether this thread may stop at a sync of this file.
pub(super) fn stops_at(path: &Path) -> bool {
    let kind = path.file_name().and_then(|name| FileKind::parse(name.to_str()?));
    ROLE.with_borrow(|role| {
        role.as_ref().zip(kind).is_some_and(|(role, kind)| role.stops.include(&kind))
    })
}

/// Stops this thread until it is let go, or gives others time.
pub(super) fn stop() {
    let of = |role: &Role| (role.stage.clone(), role.actor, role.stops);
    match ROLE.with_borrow(|role| role.as_ref().map(of)) {
        Some((.., Stops::Nowhere)) => (0..BREATHS).for_each(|_| std::thread::yield_now()),
        Some((stage, actor, _)) => stage.stop(actor),
        None => {}
    }
}
