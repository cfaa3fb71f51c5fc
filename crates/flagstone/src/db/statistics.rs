//! What the engine counts. Names follow RocksDB's tickers.

use crate::base::Counters;

macro_rules! tickers {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)*) => {
        /// A counter that only grows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Ticker {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Ticker {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// RocksDB's name for it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

tickers! {
    /// Keys written.
    KeysWritten => "rocksdb.number.keys.written",
    /// Keys asked for.
    KeysRead => "rocksdb.number.keys.read",
    /// Bytes of the batches written.
    BytesWritten => "rocksdb.bytes.written",
    /// Bytes of the values returned by point lookups.
    BytesRead => "rocksdb.bytes.read",
    /// Batches written. Each is a commit of its own.
    Writes => "rocksdb.write.self",
    /// Those of them that went to the WAL.
    LoggedWrites => "rocksdb.write.wal",
    /// Bytes appended to the WAL.
    WalBytes => "rocksdb.wal.bytes",
    /// Syncs of the WAL.
    WalSyncs => "rocksdb.wal.synced",
    /// Table bytes written by flushes.
    FlushWriteBytes => "rocksdb.flush.write.bytes",
    /// Table bytes read by compactions.
    CompactReadBytes => "rocksdb.compact.read.bytes",
    /// Table bytes written by compactions.
    CompactWriteBytes => "rocksdb.compact.write.bytes",
    /// Blob file bytes written by flushes, by compactions, and by writers before they commit.
    BlobWriteBytes => "rocksdb.blobdb.blob.file.bytes.written",
    /// Blob file bytes written by flushes alone.
    BlobFlushBytes => "rocksdb.blobdb.flush.bytes.written",
    /// Blob file bytes that compactions read to relocate.
    BlobGcRelocatedBytes => "rocksdb.blobdb.gc.bytes.relocated",
    /// Blobs that compactions relocated.
    BlobGcRelocatedKeys => "rocksdb.blobdb.gc.num.keys.relocated",
    /// Blob file bytes that were given back to the file system by punching holes.
    BlobPunchedBytes => "flagstone.blob.punched.bytes",
    /// Flushes done.
    Flushes => "flagstone.flushes",
    /// Compactions done.
    Compactions => "flagstone.compactions",
    /// Entries that stayed as they were, since what a compaction filter made of them could not be
    /// stored.
    FilterUnstorable => "flagstone.filter.unstorable",
    /// Keys whose operands flushes and compactions left unmerged, as the merge operator refuses
    /// them, or that were deleted both singly and plainly; each time.
    KeyFaults => "flagstone.key.faults",
    /// Parts that these compactions ran in: one each, or several at the same time.
    Subcompactions => "flagstone.subcompactions",
    /// Turns of flushes and compactions that did not give way to others (`background_niceness`), as
    /// somebody slept for them.
    PromptTurns => "flagstone.prompt.turns",
    /// Compactions that only moved files between levels.
    TrivialMoves => "flagstone.trivial.moves",
    /// Reads that lookups of several keys made together, of blocks and of values in blob files.
    ReadsTogether => "flagstone.reads.together",
    /// Of these, reads that the kernel had in hand together (io_uring): none where it does not
    /// permit that.
    ReadsInKernel => "flagstone.reads.in.kernel",
    /// Times that files which nobody needs any more could not be looked for or removed; it is tried
    /// again.
    RemovalsPutOff => "flagstone.removals.put.off",
    /// OPTIONS files that could not be written where column families were made or dropped or
    /// options changed, or again later; it is tried again.
    OptionsFilesPutOff => "flagstone.options.files.put.off",
    /// Flushes for the sake of deletions (`deletion_compaction_delay`) that could not begin, as no
    /// new WAL could; the next deletion or a full memtable brings them up again.
    FlushesPutOff => "flagstone.flushes.put.off",
    /// Tables that could not be opened or searched where nothing depends on it: ahead for readers
    /// to come, or for an estimate. Whoever needs them tries again, and meets what is wrong.
    TablesNotOpened => "flagstone.tables.not.opened",
    /// Column families that were looked at for flushes, compactions, and what they ask of writers.
    FamiliesLookedAt => "flagstone.families.looked.at",
    /// Microseconds that writers were held up.
    StallMicros => "rocksdb.stall.micros",
    /// Bytes that a rate limiter let pass.
    RateLimiterBytes => "flagstone.rate.limiter.bytes",
    /// Microseconds that a rate limiter made flushes, compactions, and writes that asked for it,
    /// wait.
    RateLimiterMicros => "flagstone.rate.limiter.micros",
    /// Seeks of iterators.
    Seeks => "rocksdb.number.db.seek",
}

/// The counters of one database.
///
/// Each lookup raises some, so threads do it on cache lines of their own.
#[derive(Debug, Default)]
pub struct Statistics {
    counters: Counters<{ Ticker::ALL.len() }>,
}

impl Statistics {
    /// Adds to a counter.
    #[inline]
    pub(crate) fn add(&self, ticker: Ticker, count: u64) {
        self.counters.add(ticker as usize, count);
    }

    /// Adds to a counter that is only ever raised with the commit lock held.
    #[inline]
    pub(in crate::db) fn add_committing(&self, ticker: Ticker, count: u64) {
        self.counters.add_alone(ticker as usize, count);
    }

    /// A counter's value.
    pub fn get(&self, ticker: Ticker) -> u64 {
        self.counters.get(ticker as usize)
    }
}
