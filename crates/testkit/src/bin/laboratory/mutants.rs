//! `laboratory mutants`: builds the engine with each patch of `crates/testkit/mutants`, one at a
//! time, and searches for the fault.
//!
//! 1. The tree is copied to a directory of its own, so that nothing else is built from a broken
//!    one. What is there already and the same stays, so that little is built again.
//! 2. A patch is applied, the laboratory built, and what the head of the patch names is run.
//! 3. The patch is taken back, and the outcome noted: a run that was interrupted goes on there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flagstone::env::{Env, IoMode};
use testkit::laboratory::PATCH;
use testkit::mutants::{By, Caught, FINDING, Patch, patches, search};

/// Breaks a copy of the engine by patches, one at a time, and searches for each fault.
#[derive(clap::Args)]
#[command(after_help = "Example: laboratory mutants MiscountBlobGarbage ReorderManifestWrites")]
pub struct Arguments {
    /// Which ones; all if none is named.
    names: Vec<String>,
    /// Only lists them, and what each breaks.
    #[arg(long)]
    list: bool,
    /// Where the copy is kept, and what was found; by default below the folder `target`.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Searches also for those of which the directory says that they were caught.
    #[arg(long)]
    again: bool,
}

/// How many survived, or could not be searched for.
pub fn run(arguments: &Arguments) -> usize {
    let known = patches();
    if let Some(unknown) =
        arguments.names.iter().find(|name| !known.iter().any(|patch| patch.name == **name))
    {
        eprintln!("no patch is called {unknown}; --list names them");
        return 1;
    }
    let is_asked =
        |patch: &&Patch| arguments.names.is_empty() || arguments.names.contains(&patch.name);
    let asked: Vec<_> = known.iter().filter(is_asked).collect();
    if arguments.list {
        asked.iter().for_each(|patch| println!("{}: {}", patch.name, patch.breaks()));
        return 0;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository");
    let directory = arguments.directory.clone().unwrap_or_else(|| root.join("target/mutants"));
    let workshop = Workshop::new(&root, &directory);
    let mut survived = 0;
    for patch in asked {
        let noted = directory.join(format!("{}.caught", patch.name));
        if noted.exists() && !arguments.again {
            println!("{}: was caught before", patch.name);
            continue;
        }
        let begun = Env::os().clock.now_us();
        let outcome = workshop.search(patch);
        let seconds = (Env::os().clock.now_us() - begun) / 1_000_000;
        match outcome {
            Ok(()) => {
                write(&noted, b"");
                println!("{}: caught, {seconds} s", patch.name);
            }
            Err(why) => {
                survived += 1;
                println!("{}: SURVIVED, {seconds} s: {why}", patch.name);
            }
        }
    }
    survived
}

/// A copy of the tree, to be broken.
struct Workshop {
    tree: PathBuf,
    target: PathBuf,
}

impl Workshop {
    fn new(root: &Path, directory: &Path) -> Self {
        let workshop = Self { tree: directory.join("tree"), target: directory.join("target") };
        std::fs::create_dir_all(&workshop.tree).expect("a directory for the copy");
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .expect("git");
        assert!(listed.status.success(), "git does not list the tree: {listed:?}");
        let names = String::from_utf8(listed.stdout).expect("plain names");
        let names: BTreeSet<&Path> = names.split_terminator('\0').map(Path::new).collect();
        for name in &names {
            // One that was removed is listed until that is committed.
            let Some(bytes) = read(&root.join(name)) else { continue };
            let copy = workshop.tree.join(name);
            if read(&copy).as_ref() != Some(&bytes) {
                let parent = copy.parent().expect("it is below the tree");
                std::fs::create_dir_all(parent).expect("a folder of the copy");
                write(&copy, &bytes);
            }
        }
        remove_others(&workshop.tree, &workshop.tree, root, &names);
        workshop
    }

    fn search(&self, patch: &Patch) -> Result<(), String> {
        self.apply(patch, &[])?;
        let finders = patch.caught();
        let outcome = finders.iter().try_for_each(|row| self.search_by(row));
        self.apply(patch, &["--reverse"])?;
        outcome
    }

    fn search_by(&self, row: &Caught<'_>) -> Result<(), String> {
        let schedule = ["test", "-p", "flagstone", "--features", "shuttle", "--test", "schedule"];
        let sound = std::env::current_exe().expect("this program");
        match row.by {
            By::Experiment(name) => {
                let built = ["build", "-p", "testkit", "--bin", "laboratory"];
                succeed(self.cargo().args(built))?;
                let mut command = Command::new(self.target.join("debug/laboratory"));
                command.args(["experiments", name]).env(PATCH, row.mutant);
                search(row, FINDING, &mut command, &sound)
            }
            By::Story(name) => {
                succeed(self.cargo().args(schedule).arg("--no-run"))?;
                let mut command = self.cargo();
                command.args(schedule).args(["--", "--exact", name]);
                search(row, "panicked at", &mut command, &sound)
            }
        }
    }

    fn apply(&self, patch: &Patch, options: &[&str]) -> Result<(), String> {
        let mut git = Command::new("git");
        // In a folder of a repository git leaves out what a patch changes elsewhere.
        git.env("GIT_CEILING_DIRECTORIES", self.tree.parent().expect("it was made in one"));
        succeed(git.arg("apply").args(options).arg(&patch.path).current_dir(&self.tree))
    }

    /// Cargo, for builds that are quick to make and not slow to run.
    fn cargo(&self) -> Command {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        cargo
    }
}

/// Runs it to its end.
fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().expect("it can be run");
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} fails: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Removes below `folder` of the copy the files that the tree does not have any more.
fn remove_others(folder: &Path, copy: &Path, root: &Path, names: &BTreeSet<&Path>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the copy") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            remove_others(&path, copy, root, names);
            continue;
        }
        let name = path.strip_prefix(copy).expect("it is below the tree");
        if !names.contains(name) || !root.join(name).exists() {
            std::fs::remove_file(&path).expect("what is left over goes");
        }
    }
}

/// The bytes of a file, if it is there.
fn read(path: &Path) -> Option<Vec<u8>> {
    let file = Env::os().fs.open_random_access(path, IoMode::Buffered).ok()?;
    let (mut bytes, size) = (Vec::new(), file.size().expect("its size"));
    file.read_onto(0, size as usize, &mut bytes).expect("its bytes");
    Some(bytes)
}

fn write(path: &Path, bytes: &[u8]) {
    let file = Env::os().fs.create_writable(path, IoMode::Buffered).expect("a new file");
    file.write_at(0, bytes).expect("its bytes");
}
