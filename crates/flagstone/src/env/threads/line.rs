//! Who is next: the members that wait for a thread, and those to be asked again after a while.
//! Plain data.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{Member, Next, Role};

/// How long a member rests whose work panicked.
const AFTER_PANIC: Duration = Duration::from_millis(500);

/// A member's number; none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(u64);

/// What a thread is to do.
pub(super) struct Job {
    pub(super) id: MemberId,
    pub(super) role: Role,
    member: Arc<dyn Member>,
}

impl Job {
    /// Does it, and lets go of the member.
    pub(super) fn run(self) -> Next {
        catch_unwind(AssertUnwindSafe(|| self.member.work(self.role))).unwrap_or_else(|_| {
            tracing::error!(role = ?self.role, "background work panicked");
            Next::After(AFTER_PANIC)
        })
    }
}

#[derive(Default)]
pub(super) struct Line {
    members: BTreeMap<MemberId, Known>,
    next_id: u64,
    /// Who waits, by role; the first is next.
    waiting: [VecDeque<MemberId>; 2],
    /// When to ask whom without being told to, by role.
    rings: [BTreeSet<(u64, MemberId)>; 2],
}

struct Known {
    member: Arc<dyn Member>,
    /// By role.
    places: [Place; 2],
    running: [usize; 2],
    is_leaving: bool,
}

/// Where a member stands for a role.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nobody is to look.
    None,
    InLine,
    /// It had its turn, but enough threads work for it.
    Blocked,
    /// Until that time.
    Resting(u64),
}

impl Known {
    /// Whether one more thread may work for it. Compactions that run make room for a flush.
    fn may_begin(&self, role: Role) -> bool {
        let most = self.member.jobs_at_most();
        self.running[role as usize] < most.by_role[role as usize]
            && (role == Role::Flush || self.running.iter().sum::<usize>() < most.together)
    }

    /// Other jobs run than before.
    fn note_running(&self) {
        let compactions = self.running[Role::Compaction as usize];
        self.member.seats().set_running(compactions, self.member.jobs_at_most().together);
    }
}

impl Line {
    /// A new member, of which nothing is known.
    pub(super) fn enter(&mut self, member: Arc<dyn Member>) -> MemberId {
        self.next_id += 1;
        let id = MemberId(self.next_id);
        let known = Known { member, places: [Place::None; 2], running: [0; 2], is_leaving: false };
        self.members.insert(id, known);
        id
    }

    /// Puts a member into the line; whether it was not there, and may be.
    pub(super) fn announce(&mut self, id: MemberId, role: Role) -> bool {
        let Some(known) = self.members.get_mut(&id).filter(|known| !known.is_leaving) else {
            return false;
        };
        match known.places[role as usize] {
            Place::InLine => return false,
            // It may have more jobs by now.
            Place::Blocked if !known.may_begin(role) => return false,
            Place::Resting(due) => {
                self.rings[role as usize].remove(&(due, id));
            }
            Place::Blocked | Place::None => {}
        }
        known.places[role as usize] = Place::InLine;
        self.waiting[role as usize].push_back(id);
        true
    }

    /// Puts those into the line whose time has come; how many.
    pub(super) fn ring(&mut self, role: Role, now: u64) -> usize {
        let mut count = 0;
        while let Some(&(due, id)) = self.rings[role as usize].first()
            && due <= now
        {
            self.announce(id, role);
            count += 1;
        }
        count
    }

    /// When the next one's time comes.
    pub(super) fn next_ring(&self, role: Role) -> Option<u64> {
        self.rings[role as usize].first().map(|(due, _)| *due)
    }

    /// How many are in line.
    pub(super) fn len(&self, role: Role) -> usize {
        self.waiting[role as usize].len()
    }

    /// The next job for a thread of that role, while so many of those for flushes are idle.
    pub(super) fn take(&mut self, role: Role, idle_for_flushes: usize) -> Option<Job> {
        if role == Role::Compaction {
            while self.len(Role::Flush) > idle_for_flushes {
                if let Some(job) = self.take_first(Role::Flush) {
                    return Some(job);
                }
            }
        }
        while self.len(role) > 0 {
            if let Some(job) = self.take_first(role) {
                return Some(job);
            }
        }
        None
    }

    /// The job of the first in line, unless enough threads work for it: then it is blocked, and
    /// another the first.
    fn take_first(&mut self, role: Role) -> Option<Job> {
        let id = self.waiting[role as usize].pop_front()?;
        let known = self.members.get_mut(&id).expect("who leaves is taken out of the lines");
        if !known.may_begin(role) {
            known.places[role as usize] = Place::Blocked;
            return None;
        }
        known.places[role as usize] = Place::None;
        known.running[role as usize] += 1;
        known.note_running();
        Some(Job { id, role, member: known.member.clone() })
    }

    /// A job has ended. Which roles of its member have gone into the line: its own, if there may be
    /// more, and what was blocked.
    pub(super) fn put_back(
        &mut self,
        id: MemberId,
        role: Role,
        next: Next,
        now: u64,
    ) -> [Option<Role>; 2] {
        let known = self.members.get_mut(&id).expect("it stays until nobody works for it");
        known.running[role as usize] -= 1;
        known.note_running();
        if known.is_leaving {
            return [None, None];
        }
        let place = &mut known.places[role as usize];
        // Not if somebody announced more meanwhile.
        if *place == Place::None
            && let Next::After(rest) = next
        {
            let due = now.saturating_add(rest.as_micros() as u64);
            *place = Place::Resting(due);
            self.rings[role as usize].insert((due, id));
        }
        Role::ALL.map(|other| {
            let place = &mut self.members.get_mut(&id).expect("seen above").places[other as usize];
            let was_blocked = *place == Place::Blocked;
            if was_blocked {
                *place = Place::None;
            }
            let is_next = was_blocked || (other == role && next == Next::Again);
            (is_next && self.announce(id, other)).then_some(other)
        })
    }

    /// Takes a member out of the lines, for good.
    pub(super) fn forbid(&mut self, id: MemberId) {
        let Some(known) = self.members.get_mut(&id) else { return };
        known.is_leaving = true;
        for role in Role::ALL {
            if let Place::Resting(due) =
                std::mem::replace(&mut known.places[role as usize], Place::None)
            {
                self.rings[role as usize].remove(&(due, id));
            }
            self.waiting[role as usize].retain(|waiting| *waiting != id);
        }
    }

    /// Whether a thread works for it.
    pub(super) fn is_served(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(|known| known.running.iter().any(|running| *running > 0))
    }

    /// Forgets a member that nobody works for.
    pub(super) fn remove(&mut self, id: MemberId) -> Option<Arc<dyn Member>> {
        self.members.remove(&id).map(|known| known.member)
    }
}
