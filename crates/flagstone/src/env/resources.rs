//! CPU time that the process has used, and free memory.

/// Processors and memory, as the system tells of them.
pub trait Resources: Send + Sync {
    /// Microseconds that all threads of the process together have run so far.
    fn processor_us(&self) -> u64;

    /// What is left of memory. The answer may be a second old.
    fn memory(&self) -> MemoryState;
}

/// What is left of memory: of the machine's, or of what the tightest cgroup allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryState {
    /// Bytes that there are, or that the cgroup allows.
    pub limit_bytes: u64,
    /// Bytes of these that are free, or that hold what the system can read again from files.
    pub free_bytes: u64,
    /// The part of the last ten seconds, in percent, in which threads waited for memory, in the
    /// cgroup or on the whole machine (`some avg10` of Linux's pressure stall information).
    pub stalled_percent: f64,
}

impl Default for MemoryState {
    /// That of a system that does not tell.
    fn default() -> Self {
        Self { limit_bytes: u64::MAX, free_bytes: u64::MAX, stalled_percent: 0.0 }
    }
}

/// A world in which nothing is short and nothing takes the processors' time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plenty;

impl Resources for Plenty {
    fn processor_us(&self) -> u64 {
        0
    }

    fn memory(&self) -> MemoryState {
        MemoryState::default()
    }
}
