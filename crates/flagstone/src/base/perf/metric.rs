//! What the counters of a thread have in common.

use super::PerfLevel;

/// A counter of each thread.
pub(crate) trait Metric: Copy {
    /// The lowest level that counts it.
    fn level(self) -> PerfLevel;

    /// Adds to the calling thread's counter.
    fn add(self, amount: u64);

    /// The calling thread's counter.
    fn value(self) -> u64;
}

/// Declares counters: `VARIANT = NAME, LEVEL;`, with what each counts.
macro_rules! metrics {
    ($(#[doc = $about:literal])+ $metric:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $level:ident;)*
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum $metric {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl $metric {
            /// All of them, in RocksDB's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            const LEVELS: [PerfLevel; Self::ALL.len()] = [$($level,)*];

            const HELP: [&str; Self::ALL.len()] = [$(concat!($($doc),+),)*];

            const NAMES: [&str; Self::ALL.len()] = [$($name,)*];

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// What it counts.
            pub fn help(self) -> &'static str {
                Self::HELP[self as usize].trim_ascii()
            }

            /// Whether nothing raises it, because the engine does not do what it counts.
            pub fn is_always_zero(self) -> bool {
                self.help().starts_with("Always 0")
            }

            /// The metric of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|metric| metric.name() == name)
            }

            /// The lowest level that counts it.
            #[inline]
            pub const fn level(self) -> PerfLevel {
                Self::LEVELS[self as usize]
            }

            /// The calling thread's counters.
            pub(super) fn of_thread() -> [u64; $metric::ALL.len()] {
                COUNTERS.with(|counters| std::array::from_fn(|at| counters[at].get()))
            }

            /// Sets the calling thread's counters to 0.
            pub(super) fn reset_thread() {
                COUNTERS.with(|counters| counters.iter().for_each(|counter| counter.set(0)));
            }
        }

        impl $crate::base::perf::metric::Metric for $metric {
            #[inline]
            fn level(self) -> PerfLevel {
                Self::LEVELS[self as usize]
            }

            #[cold]
            #[inline(never)]
            fn add(self, amount: u64) {
                COUNTERS.with(|counters| {
                    let counter = &counters[self as usize];
                    counter.set(counter.get().wrapping_add(amount));
                });
            }

            fn value(self) -> u64 {
                COUNTERS.with(|counters| counters[self as usize].get())
            }
        }

        thread_local! {
            static COUNTERS: [std::cell::Cell<u64>; $metric::ALL.len()] =
                const { [const { std::cell::Cell::new(0) }; $metric::ALL.len()] };
        }
    };
}
pub(super) use metrics;
