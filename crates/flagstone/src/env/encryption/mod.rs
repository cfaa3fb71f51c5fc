//! Files that are encrypted on the disk, in the layout of RocksDB's `NewEncryptedEnv` with its
//! `CTREncryptionProvider`: each engine reads the other's files, given the same cipher and key.
//!
//! - `format`: the prefix of each file, with the first counter and the nonce
//! - `keystream`: the bytes that a file's contents are combined with
//! - `cipher`: the block cipher that makes them
//! - `file`: a file whose contents are decrypted and encrypted on the way
//!
//! **Algorithm.** A new file gets a prefix with a random counter and nonce. Whatever is written or
//! read is combined, by exclusive or, with the keystream of that prefix at its offset. So any range
//! can be read or written, and sizes and offsets are those of the contents plus the prefix.
//!
//! **What it protects.** Someone who finds a disk learns names, sizes and times of files, and
//! nothing of what is in them. Nothing protects against someone who *changes* the disk: a changed
//! bit of the disk is a changed bit of the contents, and only the engine's checksums may notice.
//! Two texts under one piece of a keystream betray each other: someone who has the disk from before
//! and from after learns how they differ. So bytes must not be written over with others: WALs are
//! neither recycled nor mapped, and nothing is published (FIGURES). What is left:
//! - what a crash, or a write that failed, leaves at the end of a WAL, a MANIFEST or a blob file is
//!   cut off and written again
//! - a hole that a write which failed left in a blob file, with a part of its bytes perhaps, is
//!   filled with zeros
//! - ingestion with `write_global_seqno` writes a table's sequence number into its place
//! - the last block of a file that is written directly is written again when it is longer; the
//!   bytes that it had stay, and follow-up bytes come in the place of its padding of zeros
//!
//! **Not encrypted** are LOCK and the names of files.

mod cipher;
mod file;
mod format;
mod keystream;

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "encryption")]
pub use cipher::AesCipher;
pub use cipher::BlockCipher;

use self::file::EncryptedFile;
use self::format::PREFIX_SIZE;
use super::{
    AnyFile, Env, FileSystem, FileSystemAround, Metadata, OpenMode, PublishedFile, Random,
};
use crate::base::{Error, Result};

/// A [`FileSystem`] that encrypts the contents of all files of another one.
///
/// # Examples
/// ```
/// # #[cfg(feature = "encryption")]
/// # fn main() -> flagstone::Result<()> {
/// use std::sync::Arc;
///
/// use flagstone::env::{AesCipher, Env};
/// use flagstone::Db;
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path();
/// let key = [7; 32]; // 32 random bytes that are kept elsewhere
/// let env = Env::os().encrypted(Arc::new(AesCipher::new(&key)?))?;
/// let db = Db::builder(path).options(|options| options.env = env).open()?;
/// db.put("secret", "stone")?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "encryption"))]
/// # fn main() {}
/// ```
pub struct EncryptedFileSystem {
    fs: Arc<dyn FileSystem>,
    random: Arc<dyn Random>,
    cipher: Arc<dyn BlockCipher>,
}

impl EncryptedFileSystem {
    /// The files of `env`, encrypted with `cipher`. Counters and nonces come from `env`'s
    /// randomness: two files with the same ones betray each other.
    ///
    /// # Errors
    /// `InvalidArgument` if the cipher's blocks have fewer than 16 or more than 1,024 bytes.
    pub fn new(env: &Env, cipher: Arc<dyn BlockCipher>) -> Result<Self> {
        format::check_block_size(cipher.block_size())?;
        Ok(Self { fs: env.fs.clone(), random: env.random.clone(), cipher })
    }

    /// Writes the prefix of a file that is empty, or as good as that.
    fn begin(&self, file: &AnyFile) -> Result<keystream::Keystream> {
        let (prefix, keystream) = format::new_prefix(&self.cipher, &*self.random);
        file::write_copied(file, 0, &prefix)?;
        Ok(keystream)
    }

    fn encrypted(&self, file: AnyFile, keystream: Option<keystream::Keystream>) -> AnyFile {
        AnyFile::around(EncryptedFile::new(file, self.cipher.clone(), keystream))
    }

    fn create(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&*self.fs, path)?;
        let begun = self.begin(&file).inspect_err(|_| {
            // Callers take a file that could not be created for one that is not there.
            let _ = self.fs.remove(path);
        });
        Ok(self.encrypted(file, Some(begun?)))
    }

    /// # Errors
    /// Those of [`file::load`]; `Corruption` if the file is shorter than a prefix and may be one
    /// that is not encrypted.
    fn reopen(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&*self.fs, path)?;
        let keystream = match file::load(&file, &self.cipher)? {
            Some(keystream) => keystream,
            None => {
                file::check_as_good_as_empty(&file)?;
                file.truncate(0)?;
                self.begin(&file)?
            }
        };
        Ok(self.encrypted(file, Some(keystream)))
    }
}

impl FileSystemAround for EncryptedFileSystem {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        match mode {
            OpenMode::CreateWritable(_) | OpenMode::CreateLog => self.create(path, mode),
            OpenMode::ReopenWritable => self.reopen(path, mode),
            OpenMode::ReopenLog => Err(Error::not_supported(
                "an encrypted log is not written over: two texts under one keystream betray each other",
            )
            .at(path)),
            OpenMode::RandomAccess(_) | OpenMode::Reclaimable => {
                let file = mode.open(&*self.fs, path)?;
                let keystream = file::load(&file, &self.cipher)?;
                Ok(self.encrypted(file, keystream))
            }
        }
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let found = self.fs.metadata(path)?;
        Ok(if found.is_directory { found } else { file::without_prefix(found) })
    }

    fn may_write_over(&self) -> bool {
        false
    }

    /// A published file is written over again and again, which nothing here can hide.
    fn publish(&self, _path: &Path) -> Result<Option<Box<dyn PublishedFile>>> {
        Ok(None)
    }
}

const _: () = assert!(PREFIX_SIZE.is_multiple_of(super::DIRECT_BLOCK));

#[cfg(test)]
mod tests;
