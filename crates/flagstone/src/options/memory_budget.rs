//! `memory_budget`: none, a number of bytes, or a share of the machine's memory.

use super::value::{RandomBits, SettingValue};
use crate::base::{Error, Result};
use crate::env::{GroupMember, SharedGroup, memory_limit};

/// The smallest budget that the engine can work with.
const BUDGET_MIN: u64 = 8 << 20;

/// The open databases of this process with [`MemoryBudget::Auto`].
static AUTO: SharedGroup = SharedGroup::new();

/// How much memory the engine may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryBudget {
    /// No budget.
    None,
    /// Half of the memory that the process may have (`memory_limit`), divided equally among its
    /// open databases with this setting, and at least 8 MiB for each. The other half is left to the
    /// system's page cache and the program. No budget if the system does not report its memory.
    #[default]
    Auto,
    /// This many bytes.
    Bytes(u64),
}

impl MemoryBudget {
    /// The current budget in bytes; 0 for none.
    pub fn bytes(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Auto => memory_limit()
                .map_or(0, |all| (all / 2 / AUTO.count().max(1) as u64).max(BUDGET_MIN)),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// # Errors
    /// `InvalidArgument` for a budget that is too small.
    pub(super) fn check(self) -> Result<()> {
        match self {
            Self::Bytes(total @ ..BUDGET_MIN) => Err(Error::invalid_argument(format!(
                "memory_budget={total} is too small; use at least {BUDGET_MIN} bytes, 0 for no budget, or auto"
            ))),
            _ => Ok(()),
        }
    }

    /// Counts the database with this budget as open until the returned guard is dropped. `hear` is
    /// called when its share has changed.
    pub(crate) fn join(self, hear: impl Fn() + Send + Sync + 'static) -> Option<GroupMember> {
        // Under the scheduler of `tests/schedule` the databases of one schedule must not wait
        // for those of another.
        (self == Self::Auto && !cfg!(feature = "shuttle")).then(|| AUTO.join(hear))
    }
}

impl SettingValue for MemoryBudget {
    fn assign(&mut self, text: &str) -> Result<()> {
        *self = match text {
            "auto" => Self::Auto,
            _ => {
                let mut bytes = 0u64;
                bytes.assign(text)?;
                if bytes == 0 { Self::None } else { Self::Bytes(bytes) }
            }
        };
        Ok(())
    }

    fn text(&self) -> String {
        match self {
            Self::None => "0".to_string(),
            Self::Auto => "auto".to_string(),
            Self::Bytes(bytes) => bytes.to_string(),
        }
    }

    fn sample(random: RandomBits<'_>) -> Self {
        match random() % 3 {
            0 => Self::None,
            1 => Self::Auto,
            _ => Self::Bytes(u64::sample(random).max(1)),
        }
    }
}

#[cfg(test)]
mod tests;
