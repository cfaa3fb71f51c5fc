//! `laboratory faults`: every call of the file system fails, in every position of several lives of
//! a database.

use std::sync::Mutex;

use testkit::caught::catch;
use testkit::faults::{Campaign, Figures, SCENARIOS, Scenario, plan_from_text, run_case};

use crate::campaign::{Seeds, for_each_seed};

/// Makes every call of the file system fail, in every position of several lives of a database.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seeds: Seeds,
    /// Only the scenario of this name.
    #[arg(long)]
    scenario: Option<String>,
    /// Only every so many of the ways in which all calls can fail.
    #[arg(long, default_value_t = 1)]
    stride: usize,
    /// Findings of one seed that are told; the others are counted.
    #[arg(long, default_value_t = 3)]
    told: usize,
    /// Only this way of failing, as a finding names it: `once 17 Io`.
    #[arg(long)]
    plan: Option<String>,
}

/// How many seeds showed a fault.
pub fn run(arguments: &Arguments) -> usize {
    let scenarios: Vec<&Scenario> = match &arguments.scenario {
        None => SCENARIOS.iter().collect(),
        Some(name) => match Scenario::find(name) {
            Some(scenario) => vec![scenario],
            None => {
                let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
                eprintln!("no scenario is called {name}; there are: {}", names.join(", "));
                return 1;
            }
        },
    };
    let total = Mutex::new(Figures::default());
    let mut found = 0;
    for scenario in &scenarios {
        let name = format!("faults --scenario {}", scenario.name);
        found += for_each_seed(&name, &arguments.seeds, |seed| {
            let (figures, said) = one_seed(arguments, scenario, seed);
            total.lock().expect("no thread panics with it").add(&figures);
            if said.is_empty() { Ok(()) } else { Err(tell(&said, arguments.told)) }
        });
    }
    report(&total.into_inner().expect("no thread panicked with it"), scenarios.len());
    found
}

/// Lives one scenario with all its plans, whatever is found on the way.
fn one_seed(arguments: &Arguments, scenario: &Scenario, seed: u64) -> (Figures, Vec<String>) {
    let campaign = Campaign { seed, stride: arguments.stride.max(1) };
    let (mut figures, mut said) = (Figures::default(), Vec::new());
    let plans = match &arguments.plan {
        None => catch(|| campaign.plans(scenario)),
        Some(text) => plan_from_text(text).map(|plan| vec![plan]),
    };
    match plans {
        Err(error) => said.push(error),
        Ok(plans) => {
            for plan in plans {
                match catch(|| run_case(scenario, seed, plan)) {
                    Ok(more) => figures.add(&more),
                    Err(error) => said.push(error),
                }
            }
        }
    }
    (figures, said)
}

fn tell(said: &[String], told: usize) -> String {
    let mut text = said[..said.len().min(told)].join("\n\n");
    if said.len() > told {
        text += &format!("\n\nand {} more", said.len() - told);
    }
    text
}

fn report(figures: &Figures, scenarios: usize) {
    println!("{scenarios} scenarios, {} lives with a fault: {:?}", figures.faults(), figures.lives);
    println!("calls that failed: {}", figures.injected.values().sum::<u64>());
    for ((call, injection), count) in &figures.injected {
        println!("  {call:?} {injection:?}: {count}");
    }
    println!("of the lives with one failure a caller heard in {}", figures.surfaced);
    for (why, count) in &figures.swallowed {
        println!("  nobody in {count}: {why}");
    }
}
