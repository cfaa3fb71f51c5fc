//! Numbers that are no choice of their option. RocksDB keeps them and gives them back; here they
//! are kept for that, and what would use the option fails.

/// Such numbers, by the names of their options.
#[derive(Clone, Default)]
pub struct Refused(Vec<(&'static str, i32)>);

impl Refused {
    /// The option has this number, or again a choice that there is.
    pub fn keep(&mut self, name: &'static str, number: Option<i32>) {
        self.0.retain(|(refused, _)| *refused != name);
        self.0.extend(number.map(|number| (name, number)));
    }

    /// The number of an option.
    pub fn number(&self, name: &str) -> Option<i32> {
        self.0.iter().find(|(refused, _)| *refused == name).map(|(_, number)| *number)
    }

    /// The first of the options and its number.
    pub fn first(&self) -> Option<(&'static str, i32)> {
        self.0.first().copied()
    }
}

/// Options that take numbers for choices.
pub trait Refuses {
    /// What was refused.
    fn refused(&self) -> &Refused;

    /// What was refused, for a change of it.
    fn refused_mut(&mut self) -> &mut Refused;

    /// The option has no such choice.
    fn refuse_number(&mut self, name: &'static str, number: i32) {
        self.refused_mut().keep(name, Some(number));
    }

    /// The option has a choice that there is.
    fn accept(&mut self, name: &'static str) {
        self.refused_mut().keep(name, None);
    }
}

/// Says in which field the refused numbers are.
macro_rules! refuses {
    ($($type:ty: $field:tt,)*) => { $(
        impl $crate::refused::Refuses for $type {
            fn refused(&self) -> &$crate::refused::Refused {
                &self.$field
            }

            fn refused_mut(&mut self) -> &mut $crate::refused::Refused {
                &mut self.$field
            }
        }
    )* };
}
pub(crate) use refuses;
