//! Every workload, tiny, on every engine that the program was built with.

use std::path::Path;
use std::process::{Command, Output};

fn peers(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_peers")).args(arguments).output().expect("peers starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn every_workload_runs_on_every_engine() {
    let directory = tempfile::tempdir().expect("a directory");
    let (results, work) = (directory.path().join("results.jsonl"), directory.path().join("work"));
    let run = [
        ["run", text(&results)],
        ["--directory", text(&work)],
        ["--sizes", "100,1000,4096"],
        ["--scale", "0.0001"],
        ["--seconds", "0.02"],
        ["--rounds", "1"],
    ];
    let run = run.concat();
    let first = peers(&run);
    assert!(first.status.success(), "{}", said(&first));
    let made = said(&first);
    assert!(made.contains("(0 failed), 0 were there already"), "{made}");

    // A second start finds nothing left to do.
    let again = peers(&run);
    assert!(said(&again).starts_with("0 runs made"), "{}", said(&again));
    assert!(!work.join("peers-work").exists(), "databases were left behind");

    let page = directory.path().join("page.md");
    let marks = |name| {
        format!(
            "<!-- {name} begin: written by `peers report`, do not edit -->\n<!-- {name} end -->\n"
        )
    };
    std::fs::write(&page, ["glance", "figures"].map(marks).concat()).expect("the page is written");
    let report = peers(&["report", text(&results), "--page", text(&page)]);
    assert!(report.status.success(), "{}", said(&report));
    let page = std::fs::read_to_string(&page).expect("the page is there");
    let listed = said(&peers(&["list", "--sizes", "100,1000,4096"]));
    let mut cells = 0;
    for cell in listed.lines().filter(|line| line.contains(": ") && !line.contains("/quarter/")) {
        let workload = cell.split('/').next().expect("a workload");
        assert!(page.contains(&format!("| {workload}")), "{workload} is not on the page");
        cells += 1;
    }
    assert!(cells > 50, "{listed}");
    // Ratios need a rival.
    assert_eq!(directory.path().join("page/tuned-writes.svg").exists(), cfg!(feature = "rocksdb"));
}

#[cfg(feature = "rocksdb")]
#[test]
fn both_engines_read_the_same_files() {
    let directory = tempfile::tempdir().expect("a directory");
    for maker in ["flagstone", "rocksdb"] {
        let results = directory.path().join(maker);
        let run = [
            ["run", text(&results)],
            ["--directory", text(directory.path())],
            ["--sizes", "100"],
            ["--memories", "ample"],
            ["--tracks", "tuned"],
            ["--workloads", "readseq,multiread64,fillseq"],
            ["--scale", "0.0001"],
            ["--seconds", "0.02"],
            ["--rounds", "1"],
            ["--database-of", maker],
        ];
        let made = said(&peers(&run.concat()));
        assert!(made.contains("4 runs made (0 failed)"), "what writes is left out: {made}");
        let report = said(&peers(&["report", text(&results)]));
        assert!(report.contains(&format!("the same files for both, of {maker}")), "{report}");
    }
}

#[test]
fn amplification_is_measured_once_and_comes_to_the_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let (results, work) = (directory.path().join("results.jsonl"), directory.path().join("work"));
    let page = directory.path().join("page.md");
    for (command, begin, row) in [
        (
            "space",
            "<!-- space begin: written by `peers space`, do not edit -->",
            "| 4K | Flagstone |",
        ),
        ("steady", "<!-- steady begin: written by `peers steady`, do not edit -->", "ratio |\n"),
    ] {
        std::fs::write(&page, format!("Before.\n{begin}\n<!-- {command} end -->\nAfter.\n"))
            .expect("a page");
        let run = [
            [command, text(&results)],
            ["--directory", text(&work)],
            ["--sizes", "4096"],
            ["--live", "1000000"],
            ["--page", text(&page)],
        ];
        let first = peers(&run.concat());
        assert!(first.status.success(), "{}", said(&first));
        let written = std::fs::read_to_string(&page).expect("the page is there");
        assert!(written.contains(row) && written.ends_with("After.\n"), "{written}");
        assert!(!work.join("peers-work").exists(), "databases were left behind");
        // Nothing is measured again: the directory is not even made.
        std::fs::remove_dir_all(&work).expect("it is there");
        assert!(peers(&run.concat()).status.success() && !work.exists());
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = directory.path().join("results.jsonl");
    let none =
        peers(&["run", text(&results), "--directory", text(directory.path()), "--sizes", "7"]);
    assert!(!none.status.success() && said(&none).contains("no cell fits"), "{}", said(&none));
    let missing = peers(&["report", text(&results)]);
    assert!(
        !missing.status.success() && said(&missing).contains("no results"),
        "{}",
        said(&missing)
    );
}

/// Lives of some turns each.
#[cfg(feature = "rocksdb")]
#[test]
fn flagstone_and_rocksdb_lead_databases_by_turns() {
    let directory = tempfile::tempdir().expect("a directory");
    let agree = peers(&["agree", "--directory", text(directory.path()), "--count", "4"]);
    assert!(agree.status.success() && said(&agree).contains("they agree"), "{}", said(&agree));
    assert!(
        std::fs::read_dir(directory.path()).expect("it is there").next().is_none(),
        "a database was left"
    );
}

#[test]
fn another_build_of_the_program_makes_an_engines_runs() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().expect("a directory");
    let (results, work) = (directory.path().join("results.jsonl"), directory.path().join("work"));
    let (program, calls) = (directory.path().join("program"), directory.path().join("calls"));
    let program_that_is = |version: &str| {
        let script = format!(
            "#!/bin/sh\necho $1 >> {}\n[ $1 = --version ] && echo '{version}' && exit\nexec {} \"$@\"\n",
            text(&calls),
            env!("CARGO_BIN_EXE_peers")
        );
        std::fs::write(&program, script).expect("the program is written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))
            .expect("and may be run");
    };
    let run = |more: &[&str]| {
        let cell =
            ["--workloads", "fillseq", "--sizes", "100", "--threads", "1", "--tracks", "tuned"];
        let effort = ["--scale", "0.0001", "--seconds", "0.02", "--rounds", "2"];
        let place = ["run", text(&results), "--directory", text(&work)];
        peers(&[&place[..], &cell, &effort, more].concat())
    };
    let of = format!("flagstone={}", text(&program));
    let with = ["--program", &of];
    program_that_is("peers of another commit");
    let refused = said(&run(&with));
    assert!(refused.contains("it is peers of another commit, this one peers "), "{refused}");

    let own = said(&peers(&["-V"]));
    program_that_is(&format!("{own}Built with flagstone and a script"));
    std::fs::remove_file(&calls).expect("it was asked");
    let made = run(&with);
    if own.contains("with local changes") || own.contains("unknown") {
        assert!(
            said(&made).contains("whether they are the same cannot be told"),
            "{}",
            said(&made)
        );
        return;
    }
    assert!(made.status.success(), "{}", said(&made));
    let calls = std::fs::read_to_string(&calls).expect("it was asked");
    let cells = calls.lines().filter(|call| *call == "cell").count();
    let runs = std::fs::read_to_string(&results).expect("results");
    let (by_flagstone, by_others): (Vec<&str>, Vec<&str>) = runs
        .lines()
        .filter(|line| line.starts_with("{\"run\":"))
        .partition(|line| line.contains("\"engine\":\"flagstone\""));
    assert!(cells == 2 && by_flagstone.len() == 2, "{calls}");
    let is_marked = |line: &&str| line.contains("\"program\":\"flagstone and a script\"");
    assert!(by_flagstone.iter().all(is_marked) && !by_others.iter().any(is_marked), "{runs}");
    let report = said(&peers(&["report", text(&results)]));
    assert!(report.contains("`flagstone in a program with flagstone and a script`"), "{report}");

    // This program's runs are others, and do not go with these.
    let again = said(&run(&[]));
    assert!(again.starts_with("2 runs made (0 failed)"), "{again}");
    let mixed = peers(&["report", text(&results)]);
    assert!(
        !mixed.status.success() && said(&mixed).contains("made by a program with"),
        "{}",
        said(&mixed)
    );
}
