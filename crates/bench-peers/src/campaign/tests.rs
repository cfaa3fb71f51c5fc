use super::*;
use crate::testing;
use crate::workload::Workload;

fn shell(script: &str, limit: Duration) -> Result<String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    output_of(&mut command, limit)
}

#[test]
fn a_child_is_heard_and_stopped() {
    let long = Duration::from_secs(60);
    assert_eq!(shell("echo figures", long).unwrap(), "figures\n");
    let failed = shell("echo 'it broke' >&2; exit 3", long).unwrap_err().to_string();
    assert!(failed.contains('3') && failed.ends_with("it broke"), "{failed}");
    let late = shell("exec sleep 60", Duration::from_millis(1)).unwrap_err().to_string();
    assert!(late.starts_with("not done"), "{late}");
}

#[test]
fn a_memory_group_has_its_limit() {
    let parent = tempfile::tempdir().unwrap();
    let group = MemoryGroup::new(Some(parent.path()), 12345).unwrap();
    let limit = fs::read_to_string(group.path.join("memory.limit_in_bytes")).unwrap();
    assert!(group.path.starts_with(parent.path()) && limit == "12345", "{limit}");
    assert!(MemoryGroup::new(None, 12345).is_err());
}

fn campaign(duels: Vec<Duel>) -> Campaign {
    Campaign {
        duels,
        effort: Effort { scale: 1.0, seconds: 1.0 },
        rounds: 2,
        peer_rounds: 1,
        directory: PathBuf::new(),
        results: PathBuf::new(),
        limit: Duration::ZERO,
        memory_group: None,
        options: vec![(EngineName::Flagstone, "a".to_string(), "b".to_string())],
        look: Look::Pages,
        database_of: None,
        programs: Vec::new(),
        is_quiet: true,
    }
}

#[test]
fn engines_of_a_round_have_the_same_seed() {
    let duel = Duel {
        cell: testing::cell(Workload::FillSeq, 100),
        engines: vec![EngineName::Flagstone, EngineName::Rocksdb],
    };
    let campaign = campaign(vec![duel]);
    let runs = campaign.assignments().concat();
    let told: Vec<_> =
        runs.iter().map(|run| (run.engine, run.round, run.seed, run.options.len())).collect();
    use EngineName::{Flagstone as F, Rocksdb as R};
    assert_eq!(told, [(F, 0, 1, 1), (R, 0, 1, 0), (R, 1, 2, 0), (F, 1, 2, 1)]);
    let identities: HashSet<_> = runs.iter().map(identity).collect();
    assert_eq!(identities.len(), 4);
}

#[test]
fn only_readers_share_a_database() {
    let duels = [Workload::FillSeq, Workload::ReadRandom].map(|workload| Duel {
        cell: testing::cell(workload, 100),
        engines: vec![EngineName::Flagstone, EngineName::Rocksdb, EngineName::Leveldb],
    });
    let mut campaign = campaign(duels.to_vec());
    campaign.database_of = Some(EngineName::Rocksdb);
    campaign.share_a_database().unwrap();
    let runs = campaign.assignments().concat();
    let told: Vec<_> =
        runs.iter().map(|run| (run.cell.workload, run.engine, run.maker())).collect();
    use EngineName::{Flagstone as F, Rocksdb as R};
    let read = Workload::ReadRandom;
    assert_eq!(told, [(read, F, R), (read, R, R), (read, R, R), (read, F, R)]);
    campaign.duels.truncate(0);
    assert!(campaign.share_a_database().is_err());
}

/// Whichever engine ran first made the database: RocksDB's run made Flagstone's without its
/// options.
#[test]
fn who_makes_a_database_for_another_has_its_own_options() {
    use EngineName::{Flagstone as F, Rocksdb as R};
    let duel = Duel { cell: testing::cell(Workload::ReadRandom, 100), engines: vec![F, R] };
    let mut campaign = campaign(vec![duel]);
    campaign.database_of = Some(F);
    for run in campaign.assignments().concat() {
        let told = [F, R].map(|engine| run.options_of(engine).len());
        assert_eq!(told, [1, 0], "a run of {:?}", run.engine);
    }
    let with = identity(&campaign.assignments().concat()[1]);
    campaign.options.clear();
    assert_ne!(identity(&campaign.assignments().concat()[1]), with);
}

#[test]
fn runs_of_other_builds_are_other_runs() {
    let duel = Duel {
        cell: testing::cell(Workload::FillSeq, 100),
        engines: vec![EngineName::Flagstone, EngineName::Rocksdb],
    };
    let mut campaign = campaign(vec![duel]);
    let [ours, theirs] = [0, 1].map(|index| identity(&campaign.assignments().concat()[index]));
    let (engine, engines) = (EngineName::Flagstone, "flagstone and no other".to_string());
    campaign.programs = vec![Program { engine, path: PathBuf::new(), engines }];
    let runs = campaign.assignments().concat();
    assert_eq!([&runs[0].program, &runs[1].program], ["flagstone and no other", program::ENGINES]);
    assert_ne!(identity(&runs[0]), ours);
    assert_eq!(identity(&runs[1]), theirs);
}

#[test]
fn what_an_interrupted_campaign_has_left_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let left = directory.path().join("peers-program.rocksdb-blob");
    fs::write(&left, "a program").unwrap();
    let workshop = Workshop::open(directory.path()).unwrap();
    assert!(!left.exists() && workshop.program().exists());
}

#[test]
fn one_campaign_works_in_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let first = Workshop::open(directory.path()).unwrap();
    let kept = first.directory_for(EngineName::Flagstone, true).unwrap();
    let sizes = [first.program(), &std::env::current_exe().unwrap()]
        .map(|path| fs::metadata(path).unwrap().len());
    assert_eq!(sizes[0], sizes[1], "runs are made with a copy of this program");
    fs::write(kept.join("file"), "").unwrap();
    assert!(Workshop::open(directory.path()).is_err());
    assert!(first.directory_for(EngineName::Flagstone, true).unwrap().join("file").exists());
    let program = first.program().to_path_buf();
    drop(first);
    assert!(!kept.exists() && !program.exists());
    Workshop::open(directory.path()).unwrap();
}
