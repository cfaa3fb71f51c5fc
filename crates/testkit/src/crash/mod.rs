//! Power losses: every directory that a crash may leave, opened and compared with what was
//! promised.
//!
//! A [`Scenario`] is a short life of a database on a file system that records every change
//! ([`CrashFs`]). After each change the power may fail: [`Disk`] knows what is then durable and
//! what is on the way, `choices` lists what may become of the latter, and each outcome is a
//! directory that is opened and judged by [`Promises`]. So is every change of the life after such a
//! recovery, and of the one after that.
//!
//! - `record`: the recording file system; `disk`: what is durable; `aftermath`: one way to come out
//!   of a crash, `choices`: all of them
//! - `followed`: what was handed out to who reads along
//! - `promises`: what was acknowledged when, and what must hence be found; `examine`: opening a
//!   directory and finding
//! - `life`: a database that notes its own promises; `side_by_side`: by several threads, which
//!   `stage` stops and lets go on; `scenarios`: such lives; `explore`: going through the moments;
//!   `beside_rocksdb`: what RocksDB finds at some of them
//!
//! # The disk's promises
//!
//! The weakest that POSIX allows and real file systems are known to use:
//! - **Bytes** of a file are durable once it was synced. Before that each sector of 512 bytes on
//!   its own is as it was at any moment since the last sync, whatever became of its neighbours,
//!   earlier or later, in this file or in others. So a write may be lost, kept, cut off, torn, or
//!   full of holes.
//! - **The length** is durable with the bytes, and before that independent of them: any that the
//!   file had since the last sync, or a page boundary (4 KiB) in between. Where it is longer than
//!   what was written, there are zeros; never bytes of other files. Reserving space without
//!   changing the size can be seen by nobody.
//! - **Names** in a directory (from creating, renaming, linking, removing, of files and of
//!   directories) are durable once the directory was synced; before that any of the changes may be
//!   lost on its own, and a journal loses all those after the first one lost. A rename happens as a
//!   whole. What lies in a directory whose name is lost is lost.
//! - **Holes** are on the disk as written zeros would be: any part of any of them, unless the file
//!   was synced since.
//! - A sync that fails, or lies, is another laboratory's (`fault`).
//!
//! The engine writes sums behind everything and relies on no size of sectors or pages. Half of all
//! lives therefore use pages of 128 and sectors of 16 bytes ([`Grain::FINE`]), which tears in small
//! files what is torn in large ones.
//!
//! What is copied into a mapping is a write like any other: the system may write the page back at
//! once, later or never, with what it held after any of the copies.
//!
//! # Scenarios
//!
//! | Scenario | Covers |
//! |---|---|
//! | creation | directories, IDENTITY, MANIFEST, CURRENT, families listed at creation |
//! | log | WAL: batches over families, synced and not, records larger than a block |
//! | flush | tables; a flush of one family of several, of all; memtables waiting to be merged; an unlogged flush |
//! | flush-together | `atomic_flush`: unlogged batches over families that come and go; groups synced one by one, and together |
//! | flush-together-blobs | the same with values in blob files, before and at the flush |
//! | compaction | rewriting, moving, deletions of ranges, the compaction cursor |
//! | subcompactions | compactions in parts, each with tables and blob files of its own |
//! | blobs | blob files, garbage, collection |
//! | holes | holes in blob files, under all kinds of files that refer to them, and checkpoints |
//! | blobs-at-commit | values in blob files before the WAL names them: synced and not, unlogged; checkpoints |
//! | blob-streams | values in pieces: committed, given up, recovered as they are |
//! | families | creating, dropping, creating again under the same name |
//! | recycled | WAL files used again, longer and shorter than before |
//! | log-plain, recycled-plain | the same without mappings |
//! | recycled-unlogged | the same, with writes that skip the WAL |
//! | compressed | compressed WALs |
//! | rollover | MANIFESTs that are begun anew every few changes |
//! | options | OPTIONS rewritten by live changes |
//! | checkpoint | the checkpoint's directory, opened as well as the original |
//! | reopen | closing, dying and opening with a flush at recovery |
//! | reopen-kept | the same without the flush: several WALs are replayed and kept |
//! | wal-dir | WALs in a directory of their own |
//! | wal-limit | families flushed because the WALs grew too large |
//! | updates | a replica reads along, out of the archive, too; whatever it was given and a crash took, it is told so |
//! | updates-recycled | the same with WALs that are used again |
//! | two-writers, three-writers | threads that write at once, synced and not: records that come during a sync, syncs that serve
//! several, a flush beside them |
//! | two-writers-plain, three-writers-plain | the same without mappings |
//! | three-writers-blobs | the same with values in blob files before the WAL names them |
//! | free-writers | three threads as they come: a flush that begins during a sync |
//! | transactions | commits over families, values in pieces, what is taken back, conflicts, dropped transactions |
//! | two-phase | transactions that are prepared, and decided before and after flushes, kills and openings |
//! | encrypted, encrypted-holes, encrypted-long | the like with encrypted files, prefixes that are torn included |
//! | long | a random history; sampled, not exhausted |

mod aftermath;
mod beside_rocksdb;
mod choices;
mod disk;
mod examine;
mod explore;
mod followed;
mod ingested;
mod life;
mod promises;
mod record;
mod scenarios;
mod side_by_side;
mod stage;
mod transactions;

pub use aftermath::{Aftermath, State};
pub use beside_rocksdb::compare_with_rocksdb;
pub use disk::{BLOCK_SIZE, Disk, Grain};
pub use explore::{Effort, Explorer, Figures, Finding, Trail};
pub use life::Life;
pub use promises::Promises;
pub use record::{CrashFs, Survival};
pub use scenarios::{SCENARIOS, Scenario, experiment, one_life};
