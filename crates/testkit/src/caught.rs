//! Panics as values: an experiment that fails is a finding, to be reported and shrunk, not noise on
//! the terminal.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// What has been said in this thread since the innermost [`catch`] began; `None` outside.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs `work`; a panic in this thread is not printed, but returned: its message and where it was
/// raised.
///
/// # Errors
/// The panic. If there were several (a worker's that was caught, and then what followed from it),
/// all, in their order.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let said = || format!("{panic}");
            let kept = HEARD.with(|heard| {
                heard.borrow_mut().as_mut().map(|heard| heard.push(said())).is_some()
            });
            if !kept {
                print(panic);
            }
        }));
    });
    let outer = HEARD.replace(Some(Vec::new()));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let heard = HEARD.replace(outer).unwrap_or_default();
    outcome.map_err(|_| heard.join("\n"))
}

/// Adds a line to what the innermost [`catch`] of this thread returns; prints it where there is
/// none.
pub fn tell(line: String) {
    let kept = HEARD.with(|heard| match heard.borrow_mut().as_mut() {
        Some(heard) => {
            heard.push(line.clone());
            true
        }
        None => false,
    });
    if !kept {
        eprintln!("{line}");
    }
}

#[cfg(test)]
mod tests;
