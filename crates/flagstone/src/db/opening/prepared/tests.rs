use super::*;
use crate::batch::WriteBatch;

fn read(prepared: &mut Prepared, record: &WriteBatch) -> Result<SequenceNumber> {
    let batch = record.as_view();
    let summary = batch.validate()?;
    let marked = MarkedRecord { wal: FileNumber(1), offset: 7, batch, summary };
    let read = prepared.read(marked, || unreachable!("it has markers"), &mut |_| Ok(0));
    read.map_err(|refused| match refused {
        Refused::Record(error) | Refused::Elsewhere(error) => error,
    })
}

fn section(name: &[u8], value: &[u8]) -> WriteBatch {
    let mut operations = WriteBatch::new();
    operations.put("key", value).unwrap();
    WriteBatch::prepared_section(name, &operations).unwrap()
}

#[test]
fn what_is_undecided_takes_no_more_memory_than_it_may() {
    let mut prepared = Prepared::with_limit(10_000);
    read(&mut prepared, &section(b"a", &[b'v'; 4000])).unwrap();
    read(&mut prepared, &section(b"a", &[b'v'; 4000])).expect("one name counts once");
    let error = read(&mut prepared, &section(b"b", &[b'v'; 8000])).unwrap_err();
    assert!(error.message().contains("more than 10000 bytes"), "{error}");
}

#[test]
fn what_is_decided_takes_nothing() {
    for commits in [true, false] {
        let mut prepared = Prepared::default();
        read(&mut prepared, &section(b"a", b"value")).unwrap();
        assert!(prepared.bytes > 0 && prepared.is_used());
        let mut decision = WriteBatch::new();
        if commits {
            decision.push_commit(b"a").unwrap();
        } else {
            decision.push_rollback(b"a").unwrap();
        }
        read(&mut prepared, &decision).unwrap();
        assert_eq!(prepared.bytes, 0);
        assert!(prepared.into_undecided().is_empty());
    }
}
