//! Which slot of a policy each cached object has.
//!
//! A slot is used again as soon as it is free, the one freed last first. So there are as many as
//! objects in the cache, and what a policy keeps for each lies close together; with a slot for each
//! object of a trace, it would be spread over more memory than a processor's caches hold, and most
//! steps would wait for it.

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots of objects.
pub struct Places {
    /// By object; [`NONE`] for those that are not in the cache.
    slots: Vec<u32>,
    /// By slot, also of those that are free again.
    objects: Vec<u32>,
    free: Vec<u32>,
}

impl Places {
    /// For so many objects, none of them in the cache.
    pub fn new(objects: usize) -> Self {
        Self { slots: vec![NONE; objects], objects: Vec::new(), free: Vec::new() }
    }

    /// Where an object is, if it is in the cache.
    #[inline]
    pub fn slot_of(&self, object: u32) -> Option<u32> {
        Some(self.slots[object as usize]).filter(|slot| *slot != NONE)
    }

    /// Reads ahead what [`Places::slot_of`] will look at.
    #[inline]
    pub fn touch(&self, object: u32) {
        std::hint::black_box(self.slots[object as usize]);
    }

    /// A slot for an object that has none.
    #[inline]
    pub fn take(&mut self, object: u32) -> u32 {
        let slot = self.free.pop().unwrap_or(self.objects.len() as u32);
        match self.objects.get_mut(slot as usize) {
            Some(held) => *held = object,
            None => self.objects.push(object),
        }
        self.slots[object as usize] = slot;
        slot
    }

    /// Takes a slot from its object.
    #[inline]
    pub fn free(&mut self, slot: u32) {
        self.slots[self.objects[slot as usize] as usize] = NONE;
        self.free.push(slot);
    }
}
