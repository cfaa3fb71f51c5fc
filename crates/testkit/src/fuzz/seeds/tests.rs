use flagstone::base::FileNumber;
use flagstone::batch::BatchView;
use flagstone::wal::{DamageKind, Event, Reader, ReaderOptions};

use super::super::input::file_of;
use super::super::mend;
use super::super::wals::DECOMPRESSED_MAX;
use super::*;

/// When the targets got a limit for compressed records, all of these were beyond it: no batch was
/// read any more.
#[test]
fn bombs_reach_the_batches() {
    let mut bytes = wal_of_bombs();
    mend::log(&mut bytes);
    let options =
        ReaderOptions { decompressed_size_max: DECOMPRESSED_MAX, ..ReaderOptions::default() };
    let mut reader = Reader::with_options(file_of(&bytes), FileNumber(1), options);
    let (mut uncounted, mut marks) = (0, 0);
    loop {
        match reader.next_event().expect("a read") {
            Event::Record(record) => match BatchView::parse(record).expect("a header").validate() {
                Ok(summary) => marks += usize::from(summary.ends_in_noop),
                Err(error) => uncounted += usize::from(error.message().contains("or more")),
            },
            Event::Damage(damage) => assert_eq!(damage.kind, DamageKind::Decompression),
            Event::End => break,
        }
    }
    assert_eq!((uncounted, marks), (4, 4));
}
