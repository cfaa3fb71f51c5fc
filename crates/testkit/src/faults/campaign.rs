//! Which call fails how, one life after the other.
//!
//! A scenario is lived once without a fault, which tells its calls. Then each of them fails in each
//! of its ways, in a life of its own: the same seed makes the same calls, so that a position is
//! always the same call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::allowed;
use super::judge;
use super::life::Life;
use super::scenarios::Scenario;
use crate::fault::{Call, Failure, Injection, Plan};
use crate::seeds::Telling;

/// No life makes more calls than these times those of the one without a fault.
const CALLS_FACTOR: u64 = 20;

/// How much of all that could be tried is tried.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// Of the order of background work, the contents of the batches, and the options.
    pub seed: u64,
    /// Every so many of the ways to fail.
    pub stride: usize,
}

/// What a campaign did.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Calls of the life without a fault.
    pub positions: u64,
    /// Lives with a fault, by its kind.
    pub lives: BTreeMap<&'static str, u64>,
    /// Calls that failed, by call and injection.
    pub injected: BTreeMap<(Call, Injection), u64>,
    /// Single failures that a caller heard of.
    pub surfaced: u64,
    /// Single failures that nobody heard of, with the reason why that may be.
    pub swallowed: BTreeMap<&'static str, u64>,
}

impl Figures {
    /// Adds those of another campaign.
    pub fn add(&mut self, other: &Self) {
        self.positions += other.positions;
        self.surfaced += other.surfaced;
        let Self { lives, injected, swallowed, .. } = other;
        lives.iter().for_each(|(kind, count)| *self.lives.entry(kind).or_default() += count);
        injected.iter().for_each(|(kind, count)| *self.injected.entry(*kind).or_default() += count);
        swallowed
            .iter()
            .for_each(|(kind, count)| *self.swallowed.entry(kind).or_default() += count);
    }

    /// Lives with a fault.
    pub fn faults(&self) -> u64 {
        self.lives.values().sum()
    }
}

/// What came of one life.
struct Outcome {
    failed: Vec<Failure>,
    heard: Vec<String>,
}

impl Campaign {
    /// All plans for a scenario: each position with each way of failing.
    pub fn plans(&self, scenario: &Scenario) -> Vec<Plan> {
        let calls = calls_of(scenario, self.seed);
        let positions = calls.iter().enumerate();
        let plans = positions.flat_map(|(at, (call, _))| plans_at(*call, at as u64, self.seed));
        // Each seed begins elsewhere, so that with a stride all are visited by and by.
        plans.skip(self.seed as usize % self.stride).step_by(self.stride).collect()
    }

    /// Lives a scenario once for each of its plans.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn run(&self, scenario: &Scenario) -> Figures {
        let calls = calls_of(scenario, self.seed).len() as u64;
        let mut figures = Figures { positions: calls, ..Figures::default() };
        for plan in self.plans(scenario) {
            figures.add(&run_case(scenario, self.seed, plan));
        }
        figures
    }
}

/// The calls of a scenario in which nothing fails.
pub fn calls_of(scenario: &Scenario, seed: u64) -> Vec<(Call, PathBuf)> {
    let mut life = Life::new(seed, &scenario.changes(seed));
    (scenario.prepare)(&mut life);
    life.fs.record();
    life.begin(Plan::Nothing);
    (scenario.live)(&mut life);
    life.close();
    life.fs.recorded()
}

/// The ways in which one call may fail; the numbers are drawn from position and seed.
fn plans_at(call: Call, at: u64, seed: u64) -> Vec<Plan> {
    let mut plans: Vec<Plan> =
        call.injections().iter().map(|&injection| Plan::Once { at, injection }).collect();
    plans.push(Plan::Lasting { at, injection: Injection::Io });
    if call == Call::Read {
        plans.push(Plan::Lasting { at, injection: Injection::Short });
    }
    if call.takes_space() {
        plans.push(Plan::Full { at });
    }
    if call.changes() {
        plans.push(Plan::ReadOnly { at });
        let injection = call.injections()[(at + seed) as usize % call.injections().len()];
        plans.push(Plan::Twice { at, injection, gap: 1 + (at * 7 + seed) % 5 });
    }
    plans
}

fn kind_of(plan: Plan) -> &'static str {
    match plan {
        Plan::Nothing | Plan::Next { .. } => "none",
        Plan::Once { .. } => "one call",
        Plan::Twice { .. } => "two calls",
        Plan::Lasting { .. } => "all calls of a kind from one on",
        Plan::Full { .. } => "full disk from one call on",
        Plan::ReadOnly { .. } => "read-only disk from one call on",
    }
}

/// Lives a scenario with one plan, and judges what is left.
///
/// # Panics
/// When something does not hold.
pub fn run_case(scenario: &Scenario, seed: u64, plan: Plan) -> Figures {
    let _telling = Telling(format!(
        "laboratory faults --scenario {} --seed {seed} --plan '{}'",
        scenario.name,
        to_text(plan)
    ));
    let outcome = live(scenario, seed, plan);
    let mut figures = Figures::default();
    *figures.lives.entry(kind_of(plan)).or_default() += 1;
    for failure in &outcome.failed {
        *figures.injected.entry((failure.call, failure.injection)).or_default() += 1;
    }
    let Some(first) = outcome.failed.first() else {
        // What is written last may have its space.
        assert!(matches!(plan, Plan::Full { .. }), "the planned call never came: {plan:?}");
        return figures;
    };
    if matches!(plan, Plan::Once { .. }) {
        match (outcome.heard.is_empty(), allowed::reason(first)) {
            (false, _) => figures.surfaced += 1,
            (true, Some(why)) => *figures.swallowed.entry(why).or_default() += 1,
            (true, None) => panic!("nobody heard of {first:?}"),
        }
    }
    figures
}

fn live(scenario: &Scenario, seed: u64, plan: Plan) -> Outcome {
    let mut life = Life::new(seed, &scenario.changes(seed));
    (scenario.prepare)(&mut life);
    assert_eq!(life.heard, [""; 0], "the preparation has no fault");
    life.fs.limit_calls(CALLS_FACTOR * 1000);
    life.begin(plan);
    (scenario.live)(&mut life);
    let at = plan.position();
    if plan.lasts_to_the_end() || life.fs.failed().is_empty() {
        life.close();
    }
    life.heal();
    judge::check_open(&mut life, plan);
    life.close();
    let heard = std::mem::take(&mut life.heard);
    let outcome = Outcome { failed: life.fs.failed(), heard };
    {
        let heard = &outcome.heard[..outcome.heard.len().min(5)];
        let _telling = Telling(format!("failed: {:?}\nheard: {heard:?}", outcome.failed.first()));
        judge::check_ends(&mut life, seed + at);
    }
    outcome
}

/// A plan as the command line takes it.
pub fn to_text(plan: Plan) -> String {
    match plan {
        Plan::Nothing | Plan::Next { .. } => format!("{plan:?}"),
        Plan::Once { at, injection } => format!("once {at} {injection:?}"),
        Plan::Twice { at, injection, gap } => format!("twice {at} {injection:?} {gap}"),
        Plan::Lasting { at, injection } => format!("lasting {at} {injection:?}"),
        Plan::Full { at } => format!("full {at}"),
        Plan::ReadOnly { at } => format!("read-only {at}"),
    }
}

/// The plan that [`to_text`] wrote.
///
/// # Errors
/// What is wrong with the text.
pub fn from_text(text: &str) -> Result<Plan, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |index: usize| -> Result<u64, String> {
        let word = words.get(index).ok_or("a number is missing")?;
        word.parse().map_err(|error| format!("{word}: {error}"))
    };
    let injection = || match words.get(2).copied() {
        Some("Io") => Ok(Injection::Io),
        Some("NoSpace") => Ok(Injection::NoSpace),
        Some("Short") => Ok(Injection::Short),
        Some("Late") => Ok(Injection::Late),
        other => Err(format!("{other:?} is no way to fail")),
    };
    match words.first().copied() {
        Some("once") => Ok(Plan::Once { at: number(1)?, injection: injection()? }),
        Some("twice") => {
            Ok(Plan::Twice { at: number(1)?, injection: injection()?, gap: number(3)? })
        }
        Some("lasting") => Ok(Plan::Lasting { at: number(1)?, injection: injection()? }),
        Some("full") => Ok(Plan::Full { at: number(1)? }),
        Some("read-only") => Ok(Plan::ReadOnly { at: number(1)? }),
        other => Err(format!("{other:?} is no plan: once, twice, lasting, full, read-only")),
    }
}
