//! Databases of one process that share memory in equal parts.

use std::sync::Arc;

use parking_lot::Mutex;

type Hear = Arc<dyn Fn() + Send + Sync>;

/// Those that there are, and who hears when they become more or fewer.
#[derive(Default)]
pub(crate) struct SharedGroup(Mutex<Known>);

#[derive(Default)]
struct Known {
    last: u64,
    all: Vec<(u64, Hear)>,
}

impl SharedGroup {
    /// Nobody.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Known { last: 0, all: Vec::new() }))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().all.len()
    }

    /// One more, until what is returned is dropped. The others hear of both, in the thread that
    /// brings it about, and so does the new one of those who come and go after it. Whoever calls
    /// has no lock that they take to hear.
    pub(crate) fn join(&'static self, hear: impl Fn() + Send + Sync + 'static) -> GroupMember {
        let id = {
            let mut known = self.0.lock();
            known.last += 1;
            let id = known.last;
            known.all.push((id, Arc::new(hear)));
            id
        };
        self.tell_all_but(id);
        GroupMember { among: self, id }
    }

    fn tell_all_but(&self, id: u64) {
        // Without the lock: who hears may ask how many there are.
        let others: Vec<Hear> = self
            .0
            .lock()
            .all
            .iter()
            .filter(|(other, _)| *other != id)
            .map(|(_, hear)| hear.clone())
            .collect();
        others.iter().for_each(|hear| hear());
    }
}

/// One of several; dropped when it leaves.
pub(crate) struct GroupMember {
    among: &'static SharedGroup,
    id: u64,
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        self.among.0.lock().all.retain(|(id, _)| *id != self.id);
        self.among.tell_all_but(self.id);
    }
}

#[cfg(test)]
mod tests;
