//! Copies of files.

use std::path::Path;
use std::sync::Arc;

use super::{BufferedWriter, FileSystem, IoMode, WritableFile};
use crate::base::{Error, Result, Sometimes};

/// Copies go through a buffer of up to this many bytes.
const COPY_BUFFER: u64 = 1 << 20;

/// Copies the first `size` bytes of a file to a new one, and syncs that. The file may end before
/// them if it `may_shrink`.
///
/// # Errors
/// `Corruption` if the file is shorter; `IoError`.
pub fn copy_file(
    fs: &dyn FileSystem,
    source: &Path,
    target: &Path,
    size: u64,
    may_shrink: bool,
) -> Result<()> {
    copy_unsynced(fs, source, target, size, may_shrink)?.sync()
}

/// [`copy_file`], whose caller syncs the new file.
///
/// # Errors
/// As [`copy_file`].
pub fn copy_unsynced(
    fs: &dyn FileSystem,
    source: &Path,
    target: &Path,
    size: u64,
    may_shrink: bool,
) -> Result<Arc<dyn WritableFile>> {
    let input = fs.open_random_access(source, IoMode::Buffered)?;
    let mut buffer = vec![0; COPY_BUFFER.min(size.max(1)) as usize];
    let output = fs.create_writable(target, IoMode::Buffered)?;
    let mut output = BufferedWriter::new(output, 0, buffer.len());
    let mut offset = 0;
    while offset < size {
        let wanted = (buffer.len() as u64).min(size - offset) as usize;
        let read = input.read_at(offset, &mut buffer[..wanted])?;
        if read == 0 && may_shrink {
            Sometimes::CopiedFileShrank.reached();
            break;
        }
        if read == 0 {
            let message = format!("the file ends before its {size} bytes");
            return Err(Error::corruption(message).at(source).at_offset(offset));
        }
        output.append(&buffer[..read])?;
        offset += read as u64;
    }
    output.flush()?;
    Ok(output.file().clone())
}
