//! `memory_budget`: none, a number, or what suits the machine.

use super::value::{RandomBits, SettingValue};
use crate::base::Result;
use crate::env::memory_limit;

/// How much memory the engine keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryBudget {
    /// There is no budget.
    #[default]
    None,
    /// Half of what the process may have ([`memory_limit`]); the system's page cache and the program have the other.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

impl MemoryBudget {
    /// The budget in bytes; 0 for none, and for `Auto` where the system does not tell what there is.
    pub fn bytes(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Auto => memory_limit().unwrap_or(0) / 2,
            Self::Bytes(bytes) => bytes,
        }
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
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_none_or_a_number_or_half_of_what_there_is() {
        let parse = |text: &str| {
            let mut budget = MemoryBudget::default();
            budget.assign(text).map(|()| budget)
        };
        assert_eq!(parse("0").unwrap(), MemoryBudget::None);
        assert_eq!(parse("2g").unwrap().bytes(), 2 << 30);
        assert_eq!(parse("auto").unwrap().bytes(), memory_limit().unwrap_or(0) / 2);
        for text in ["0", "auto", "12345"] {
            assert_eq!(parse(text).unwrap().text(), text);
        }
        assert!(parse("half").unwrap_err().to_string().contains("whole number"));
    }
}
