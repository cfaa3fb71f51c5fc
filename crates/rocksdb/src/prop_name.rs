//! Names of properties: each is UTF-8 and a C string, so that it becomes either at no cost worth
//! naming.

use std::borrow::{Borrow, Cow};
use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::fmt;
use std::ops::Deref;

use crate::c_text::CStrLike;

/// The name of a property, borrowed from [`properties`](crate::properties) or a [`PropertyName`].
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PropName(Cow<'static, CStr>);

impl PropName {
    pub(crate) const fn of(name: &'static CStr) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name as a C string.
    pub fn as_c_str(&self) -> &CStr {
        &self.0
    }

    /// The name, without the NUL byte at the end of the C string.
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("names of properties are ASCII")
    }
}

impl Deref for PropName {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        self.as_c_str()
    }
}

impl AsRef<CStr> for PropName {
    fn as_ref(&self) -> &CStr {
        self.as_c_str()
    }
}

impl AsRef<str> for PropName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl ToOwned for PropName {
    type Owned = PropertyName;

    fn to_owned(&self) -> PropertyName {
        PropertyName(Self(self.0.clone()))
    }
}

impl fmt::Display for PropName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for PropName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl PartialEq<CStr> for PropName {
    fn eq(&self, other: &CStr) -> bool {
        self.as_c_str() == other
    }
}

impl PartialEq<str> for PropName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<PropName> for CStr {
    fn eq(&self, other: &PropName) -> bool {
        self == other.as_c_str()
    }
}

impl PartialEq<PropName> for str {
    fn eq(&self, other: &PropName) -> bool {
        self == other.as_str()
    }
}

impl<'a> CStrLike for &'a PropName {
    type Baked = &'a CStr;
    type Error = Infallible;

    fn bake(self) -> Result<&'a CStr, Infallible> {
        Ok(self.as_c_str())
    }

    fn into_c_string(self) -> Result<CString, Infallible> {
        Ok(self.as_c_str().to_owned())
    }
}

/// The name of a property, owned: one that ends in a level is made at run time.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PropertyName(PropName);

impl PropertyName {
    /// `rocksdb.NAME` and the number of a level.
    pub(crate) fn at_level(name: &str, level: usize) -> Self {
        let name = CString::new(format!("rocksdb.{name}{level}")).expect("it has no NUL byte");
        Self(PropName(Cow::Owned(name)))
    }

    /// The name as a C string.
    pub fn into_c_string(self) -> CString {
        self.0.0.into_owned()
    }

    /// The name, without the NUL byte at the end of the C string.
    pub fn into_string(self) -> String {
        self.as_str().to_string()
    }
}

impl Deref for PropertyName {
    type Target = PropName;

    fn deref(&self) -> &PropName {
        &self.0
    }
}

impl AsRef<CStr> for PropertyName {
    fn as_ref(&self) -> &CStr {
        self.as_c_str()
    }
}

impl AsRef<str> for PropertyName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<PropName> for PropertyName {
    fn borrow(&self) -> &PropName {
        &self.0
    }
}

impl fmt::Display for PropertyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for PropertyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl PartialEq<CString> for PropertyName {
    fn eq(&self, other: &CString) -> bool {
        self.as_c_str() == other.as_c_str()
    }
}

impl PartialEq<String> for PropertyName {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<PropertyName> for CString {
    fn eq(&self, other: &PropertyName) -> bool {
        other == self
    }
}

impl PartialEq<PropertyName> for String {
    fn eq(&self, other: &PropertyName) -> bool {
        other == self
    }
}

impl CStrLike for PropertyName {
    type Baked = CString;
    type Error = Infallible;

    fn bake(self) -> Result<CString, Infallible> {
        Ok(self.into_c_string())
    }

    fn into_c_string(self) -> Result<CString, Infallible> {
        Ok(self.0.0.into_owned())
    }
}

impl<'a> CStrLike for &'a PropertyName {
    type Baked = &'a CStr;
    type Error = Infallible;

    fn bake(self) -> Result<&'a CStr, Infallible> {
        Ok(self.as_c_str())
    }

    fn into_c_string(self) -> Result<CString, Infallible> {
        Ok(self.as_c_str().to_owned())
    }
}
