//! `laboratory experiments`: what the tests run, by name.

use testkit::laboratory::EXPERIMENTS;
use testkit::mutants::FINDING;

/// Runs the experiments of the tests, all or those named.
#[derive(clap::Args)]
pub struct Arguments {
    /// Which ones; all if none is named.
    names: Vec<String>,
    /// Only lists their names.
    #[arg(long)]
    list: bool,
}

/// How many failed.
pub fn run(arguments: &Arguments) -> usize {
    let is_known = |name: &&String| EXPERIMENTS.iter().any(|known| known.name == **name);
    if let Some(unknown) = arguments.names.iter().find(|name| !is_known(name)) {
        eprintln!("no experiment is called {unknown}; --list names them");
        return 1;
    }
    let asked = |name: &str| {
        arguments.names.is_empty() || arguments.names.iter().any(|asked| asked == name)
    };
    let mut failed = 0;
    for experiment in EXPERIMENTS.iter().filter(|experiment| asked(experiment.name)) {
        if arguments.list {
            println!("{}", experiment.name);
            continue;
        }
        match testkit::caught::catch(experiment.run) {
            Ok(()) => println!("{}: nothing found", experiment.name),
            Err(said) => {
                failed += 1;
                println!("{}{FINDING}{said}", experiment.name);
            }
        }
    }
    failed
}
