//! Settings of the engine as C's numbers.

use std::time::Duration;

use flagstone::backup::{RestoreMode, ShareFilesNaming};
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, ChecksumType, CompactionPri,
    CompactionStopStyle, CompactionStyle, CompressionType, DataBlockIndexType, IndexShortening,
    IndexType, IoPriority, PrepopulateBlobCache, PrepopulateBlockCache, ProtectionBytes,
    RateLimiterMode, RecoveryMode,
};
use flagstone::wal::WalCompression;

/// A setting that is a number in C. One that it cannot hold becomes the nearest that it can.
pub trait Setting<C> {
    /// The setting for a number.
    fn from_c(value: C) -> Self;
    /// The number.
    fn to_c(&self) -> C;
}

macro_rules! numbers {
    ($($setting:ty = $($c:ty),+;)*) => { $($(
        impl Setting<$c> for $setting {
            fn from_c(value: $c) -> Self {
                nearest(value.into_wide(), <$setting>::MIN.into_wide(), <$setting>::MAX.into_wide())
                    as Self
            }

            fn to_c(&self) -> $c {
                nearest(self.into_wide(), <$c>::MIN.into_wide(), <$c>::MAX.into_wide()) as $c
            }
        }
    )+)* };
}

fn nearest(value: i128, least: i128, most: i128) -> i128 {
    value.clamp(least, most)
}

trait Wide {
    fn into_wide(self) -> i128;
}

macro_rules! wide {
    ($($type:ty),*) => { $(impl Wide for $type {
        fn into_wide(self) -> i128 {
            self as i128
        }
    })* };
}
wide!(u8, i32, u32, i64, u64, usize);

numbers! {
    i32 = i32, u8;
    u32 = i32, u32;
    u64 = u64, usize, u32, i32, i64;
    i64 = i64;
    usize = usize, i64, i32, u64;
}

impl Setting<f64> for f64 {
    fn from_c(value: f64) -> Self {
        value
    }

    fn to_c(&self) -> f64 {
        *self
    }
}

macro_rules! flags {
    ($($c:ty),*) => { $(
        impl Setting<$c> for bool {
            fn from_c(value: $c) -> Self {
                value != 0
            }

            fn to_c(&self) -> $c {
                <$c>::from(*self)
            }
        }
    )* };
}
flags!(u8, i32);

/// Settings that follow from others until they are set.
macro_rules! perhaps {
    ($($setting:ty = $c:ty),*) => { $(
        impl Setting<$c> for Option<$setting> {
            fn from_c(value: $c) -> Self {
                Some(<$setting>::from_c(value))
            }

            fn to_c(&self) -> $c {
                self.unwrap_or_default().to_c()
            }
        }
    )* };
}
perhaps!(bool = u8, u64 = u64);

/// Milliseconds; negative for none.
impl Setting<i64> for Option<Duration> {
    fn from_c(milliseconds: i64) -> Self {
        u64::try_from(milliseconds).ok().map(Duration::from_millis)
    }

    fn to_c(&self) -> i64 {
        self.map_or(-1, |duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Milliseconds; negative for ever.
impl Setting<i64> for Duration {
    fn from_c(milliseconds: i64) -> Self {
        u64::try_from(milliseconds).map_or(Self::MAX, Self::from_millis)
    }

    fn to_c(&self) -> i64 {
        i64::try_from(self.as_millis()).unwrap_or(-1)
    }
}

/// A number as a smaller one; all that are narrowed are small.
pub fn narrow<T: TryFrom<i32> + Default>(number: i32) -> T {
    T::try_from(number).unwrap_or_default()
}

/// A setting that is one of several numbers in C.
pub trait Choice: Sized {
    /// The choice of a number, if it is one.
    fn from_number(number: i32) -> Option<Self>;
    /// Its number.
    fn number(&self) -> i32;
}

macro_rules! choices {
    ($($type:ty { $($number:literal = $choice:expr,)* })*) => { $(
        impl Choice for $type {
            fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some($choice),)*
                    _ => None,
                }
            }

            fn number(&self) -> i32 {
                const ALL: &[(i32, $type)] = &[$(($number, $choice),)*];
                let found = ALL.iter().find(|(_, choice)| choice == self);
                found.map_or(0, |(number, _)| *number)
            }
        }
    )* };
}

choices! {
    CompressionType {
        0 = CompressionType::None,
        1 = CompressionType::Snappy,
        2 = CompressionType::Zlib,
        3 = CompressionType::Bzip2,
        4 = CompressionType::Lz4,
        5 = CompressionType::Lz4hc,
        7 = CompressionType::Zstd,
    }
    WalCompression { 0 = WalCompression::None, 7 = WalCompression::Zstd, }
    CompactionStyle {
        0 = CompactionStyle::Level,
        1 = CompactionStyle::Universal,
        2 = CompactionStyle::Fifo,
    }
    CompactionPri {
        0 = CompactionPri::ByCompensatedSize,
        1 = CompactionPri::OldestLargestSeqFirst,
        2 = CompactionPri::OldestSmallestSeqFirst,
        3 = CompactionPri::MinOverlappingRatio,
        4 = CompactionPri::RoundRobin,
    }
    CompactionStopStyle {
        0 = CompactionStopStyle::SimilarSize,
        1 = CompactionStopStyle::TotalSize,
    }
    RecoveryMode {
        0 = RecoveryMode::TolerateCorruptedTailRecords,
        1 = RecoveryMode::AbsoluteConsistency,
        2 = RecoveryMode::PointInTimeRecovery,
        3 = RecoveryMode::SkipAnyCorruptedRecords,
    }
    ProtectionBytes {
        0 = ProtectionBytes::None,
        1 = ProtectionBytes::One,
        2 = ProtectionBytes::Two,
        4 = ProtectionBytes::Four,
        8 = ProtectionBytes::Eight,
    }
    PrepopulateBlobCache {
        0 = PrepopulateBlobCache::Disable,
        1 = PrepopulateBlobCache::FlushOnly,
    }
    PrepopulateBlockCache {
        0 = PrepopulateBlockCache::Disable,
        1 = PrepopulateBlockCache::FlushOnly,
        2 = PrepopulateBlockCache::FlushAndCompaction,
    }
    ChecksumType {
        0 = ChecksumType::None,
        1 = ChecksumType::Crc32c,
        2 = ChecksumType::XxHash,
        3 = ChecksumType::XxHash64,
        4 = ChecksumType::Xxh3,
    }
    IndexType {
        0 = IndexType::BinarySearch,
        1 = IndexType::HashSearch,
        2 = IndexType::TwoLevel,
        3 = IndexType::BinarySearchWithFirstKey,
    }
    IndexShortening {
        0 = IndexShortening::None,
        1 = IndexShortening::Separators,
        2 = IndexShortening::SeparatorsAndSuccessor,
    }
    DataBlockIndexType {
        0 = DataBlockIndexType::BinarySearch,
        1 = DataBlockIndexType::BinaryAndHash,
    }
    BottommostLevelCompaction {
        0 = BottommostLevelCompaction::Skip,
        1 = BottommostLevelCompaction::IfHaveCompactionFilter,
        2 = BottommostLevelCompaction::Force,
        3 = BottommostLevelCompaction::ForceOptimized,
    }
    BlobGarbageCollectionPolicy {
        0 = BlobGarbageCollectionPolicy::Force,
        1 = BlobGarbageCollectionPolicy::Disable,
        2 = BlobGarbageCollectionPolicy::UseDefault,
    }
    ShareFilesNaming {
        1 = ShareFilesNaming::LegacyCrc32cAndFileSize,
        2 = ShareFilesNaming::UseDbSessionId,
        // With the flag that includes the size of the file, the highest bit.
        -2_147_483_646 = ShareFilesNaming::UseDbSessionIdAndFileSize,
    }
    RestoreMode {
        1 = RestoreMode::KeepLatestDbSessionIdFiles,
        2 = RestoreMode::VerifyChecksum,
        0xffff = RestoreMode::PurgeAllFiles,
    }
    RateLimiterMode {
        0 = RateLimiterMode::ReadsOnly,
        1 = RateLimiterMode::WritesOnly,
        2 = RateLimiterMode::AllIo,
    }
    Option<IoPriority> {
        0 = Some(IoPriority::Low),
        1 = Some(IoPriority::Mid),
        2 = Some(IoPriority::High),
        3 = Some(IoPriority::User),
        4 = None,
    }
}

/// RocksDB's number for "no compression of its own".
const DISABLE_COMPRESSION: i32 = 0xff;

impl Choice for Option<CompressionType> {
    fn from_number(number: i32) -> Option<Self> {
        match number {
            DISABLE_COMPRESSION => Some(None),
            number => CompressionType::from_number(number).map(Some),
        }
    }

    fn number(&self) -> i32 {
        self.as_ref().map_or(DISABLE_COMPRESSION, Choice::number)
    }
}

/// Whether a text is RocksDB's default of an option that the engine knows.
pub fn is_default(name: &str, value: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let is = |default: &&str| {
        *default == value || (number(value).is_some() && number(default) == number(value))
    };
    flagstone::options::known::find(name).is_some_and(|known| known.defaults.iter().any(is))
}

/// A number as the text of an option in an OPTIONS file.
pub trait Known {
    /// The text.
    fn text(self) -> String;
    /// The number of a text; 0 for one that is none.
    fn parse(text: &str) -> Self;
}

macro_rules! known_numbers {
    ($($type:ty),*) => { $(impl Known for $type {
        fn text(self) -> String {
            self.to_string()
        }

        fn parse(text: &str) -> Self {
            text.parse().unwrap_or_default()
        }
    })* };
}
known_numbers!(i32, u32, i64, u64, usize);

/// A truth value.
impl Known for u8 {
    fn text(self) -> String {
        (self != 0).to_string()
    }

    fn parse(text: &str) -> Self {
        matches!(text, "true" | "1").into()
    }
}

impl Known for f64 {
    fn text(self) -> String {
        format!("{self:.6}")
    }

    fn parse(text: &str) -> Self {
        text.parse().unwrap_or_default()
    }
}
