//! Command lines of `db_bench` as clap understands them.

use std::ffi::OsString;

use clap::{Args, Command};
use flagstone::base::Code;
use flagstone::options::Options;

use super::db_bench::{Meaning, NO, meaning};
use super::flags::Flags;
use crate::ldb::in_order;

/// Makes what `db_bench` understands and clap does not into what clap does: one dash instead of
/// two, any RocksDB option as a flag (it becomes `--set`), `--noNAME`, other names of options,
/// flags that say nothing here, and `--undefok`, by which those on its list need not be known.
pub fn translate(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments = in_order(arguments.collect());
    if arguments.get(1).is_none_or(|command| command != "bench") {
        return arguments;
    }
    let names = Names::new(&arguments);
    let mut translated = arguments[..2].to_vec();
    let mut rest = arguments[2..].iter().cloned().peekable();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().filter(|text| text.starts_with('-') && text.len() > 2);
        let Some(text) = text else {
            translated.push(argument);
            continue;
        };
        let flag = text.trim_start_matches('-');
        // In gflags --noNAME turns a switch off.
        let off =
            flag.strip_prefix("no").filter(|name| !names.is_known(flag) && names.is_known(name));
        let flag = off.map_or(flag.to_string(), |name| format!("{name}=false"));
        let (name, given) = flag
            .split_once('=')
            .map_or((&*flag, None), |(name, value)| (name, Some(value.to_string())));
        if names.is_own(name) || matches!(name, "set" | "json" | "help") {
            translated.push(format!("--{flag}").into());
            continue;
        }
        // As in gflags, a flag that is no switch has its value in the next argument where it has
        // none of its own.
        let takes_next = match meaning(name) {
            Some(Meaning::Option(option)) => !names.is_switch(option),
            Some(Meaning::Only(values)) => values != NO,
            Some(Meaning::Inert) => true,
            None => names.is_option(name) && !names.is_switch(name) || names.may_be_unknown(name),
        };
        let given = match given {
            None if takes_next => rest.next_if(is_value).and_then(|next| next.into_string().ok()),
            given => given,
        };
        let value = given.as_deref().unwrap_or("true");
        match meaning(name) {
            Some(Meaning::Option(option)) => {
                translated.extend(["--set".into(), format!("{option}={value}").into()]);
            }
            Some(Meaning::Inert) => translated.extend(["--inert".into(), name.into()]),
            Some(Meaning::Only(values)) if values.contains(&value) => {}
            Some(Meaning::Only(_)) => {
                let whole = given.map_or(name.to_string(), |value| format!("{name}={value}"));
                translated.extend(["--absent".into(), whole.into()]);
            }
            None if names.is_option(name) => {
                translated.extend(["--set".into(), format!("{name}={value}").into()])
            }
            None if name == "undefok" => {}
            None if names.may_be_unknown(name) => {
                translated.extend(["--inert".into(), name.into()]);
            }
            None => translated.push(argument),
        }
    }
    translated
}

/// Which names a command line may have.
struct Names<'a> {
    own: Command,
    options: Options,
    arguments: &'a [OsString],
}

impl<'a> Names<'a> {
    fn new(arguments: &'a [OsString]) -> Self {
        let own = Flags::augment_args(Command::new("bench"));
        Self { own, options: Options::default(), arguments }
    }

    fn is_known(&self, name: &str) -> bool {
        self.is_own(name) || meaning(name).is_some() || self.is_option(name)
    }

    /// Whether clap knows the flag.
    fn is_own(&self, name: &str) -> bool {
        self.own.get_arguments().any(|arg| arg.get_long() == Some(name))
    }

    /// Whether the engine knows the option. One that it does not act on has no value to show, but
    /// the engine says itself which of them it refuses.
    fn is_option(&self, name: &str) -> bool {
        let refused = || {
            let outcome = self.options.clone().set(name, "");
            outcome.is_err_and(|error| error.code() == Code::NotSupported)
        };
        self.options.get(name).is_some() || refused()
    }

    /// Whether the option is `true` or `false`.
    fn is_switch(&self, name: &str) -> bool {
        self.options.get(name).is_some_and(|value| value == "true" || value == "false")
    }

    /// Whether `--undefok` lists the name.
    fn may_be_unknown(&self, name: &str) -> bool {
        let lists = self.arguments.iter().filter_map(|argument| {
            argument.to_str()?.trim_start_matches('-').strip_prefix("undefok=")
        });
        lists.flat_map(|list| list.split(',')).any(|listed| listed == name)
    }
}

/// Whether an argument may be the value of the flag before it: it is no flag, but may be a negative
/// number.
fn is_value(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| !text.starts_with('-') || text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests;
