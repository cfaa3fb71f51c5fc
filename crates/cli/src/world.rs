//! The world in which databases lie: the operating system's, with encrypted files if the command
//! line names a key. Files of the user's own, which are imported or exported, are not encrypted.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use flagstone::base::Error;
use flagstone::env::{AesCipher, Env, IoMode, read_until_end};

use crate::failure::Failure;
use crate::text::from_hex;

/// Bytes of the longest key, as hexadecimal digits with a line's end.
const KEY_FILE_MAX: usize = 66;

static ENCRYPTED: OnceLock<Env> = OnceLock::new();

/// The world of databases.
pub fn env() -> Env {
    ENCRYPTED.get().cloned().unwrap_or_else(Env::os)
}

/// Has all databases of this process encrypted with the key in a file.
///
/// # Errors
/// What is wrong with the file.
pub fn encrypt_by(key_file: &Path) -> Result<(), Failure> {
    let cipher = AesCipher::new(&read_key(key_file)?).map_err(|error| error.at(key_file))?;
    let env = Env::os().encrypted(Arc::new(cipher))?;
    // The command line is read once.
    let _ = ENCRYPTED.set(env);
    Ok(())
}

fn read_key(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = Env::os().fs.open_random_access(path, IoMode::Buffered)?;
    let mut bytes = vec![0; KEY_FILE_MAX + 1];
    let read = read_until_end(&*file, 0, &mut bytes)?;
    bytes.truncate(read);
    Ok(decode(&bytes).map_err(|error| error.at(path))?)
}

/// A key as hexadecimal digits, or as it is.
fn decode(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let digits = bytes.trim_ascii();
    if matches!(digits.len(), 32 | 48 | 64) && digits.iter().all(u8::is_ascii_hexdigit) {
        let key = std::str::from_utf8(digits).ok().and_then(from_hex);
        return Ok(key.expect("pairs of digits"));
    }
    if matches!(bytes.len(), 16 | 24 | 32) {
        return Ok(bytes.to_vec());
    }
    let message = "a key file has 16, 24 or 32 bytes, or 32, 48 or 64 hexadecimal digits";
    Err(Error::invalid_argument(message))
}

#[cfg(test)]
mod tests;
