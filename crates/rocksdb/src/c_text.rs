//! Texts that the rocksdb crate hands to C.

use std::ffi::{CStr, CString};

/// A text that can become a C string: names of properties, operators and comparators.
///
/// A text with a NUL byte in it cannot.
pub trait CStrLike {
    /// A C string, borrowed where it was one before.
    type Baked: std::ops::Deref<Target = CStr>;
    /// What is wrong with the text.
    type Error: std::fmt::Debug + std::fmt::Display;

    /// The text as a C string, without a copy where that is possible.
    ///
    /// # Errors
    /// If there is a NUL byte in the text.
    fn bake(self) -> Result<Self::Baked, Self::Error>;

    /// The text as a C string of its own.
    ///
    /// # Errors
    /// If there is a NUL byte in the text.
    fn into_c_string(self) -> Result<CString, Self::Error>;
}

impl CStrLike for &str {
    type Baked = CString;
    type Error = std::ffi::NulError;

    fn bake(self) -> Result<CString, Self::Error> {
        self.into_c_string()
    }

    fn into_c_string(self) -> Result<CString, Self::Error> {
        CString::new(self)
    }
}

impl CStrLike for &String {
    type Baked = CString;
    type Error = std::ffi::NulError;

    fn bake(self) -> Result<CString, Self::Error> {
        self.into_c_string()
    }

    fn into_c_string(self) -> Result<CString, Self::Error> {
        CString::new(self.as_str())
    }
}

impl CStrLike for &CStr {
    type Baked = Self;
    type Error = std::convert::Infallible;

    fn bake(self) -> Result<Self, Self::Error> {
        Ok(self)
    }

    fn into_c_string(self) -> Result<CString, Self::Error> {
        Ok(self.to_owned())
    }
}

impl CStrLike for CString {
    type Baked = Self;
    type Error = std::convert::Infallible;

    fn bake(self) -> Result<Self, Self::Error> {
        Ok(self)
    }

    fn into_c_string(self) -> Result<Self, Self::Error> {
        Ok(self)
    }
}

impl<'a> CStrLike for &'a CString {
    type Baked = &'a CStr;
    type Error = std::convert::Infallible;

    fn bake(self) -> Result<&'a CStr, Self::Error> {
        Ok(self)
    }

    fn into_c_string(self) -> Result<CString, Self::Error> {
        Ok(self.clone())
    }
}

/// The text as UTF-8, as the engine wants names.
///
/// # Panics
/// If there is a NUL byte in the text, as in the rocksdb crate.
pub(crate) fn name_of(text: impl CStrLike) -> String {
    match text.into_c_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(error) => panic!("a name must have no NUL byte: {error}"),
    }
}
