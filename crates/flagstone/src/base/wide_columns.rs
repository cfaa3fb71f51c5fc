//! The columns of an entity, as a program sees them.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::entity::{Column, StoredColumn, decode, encode};
use super::{Error, Result};

/// The name of the default column: what [`get`](crate::View::get) returns of an entity, and the
/// only column of a plain value.
pub const DEFAULT_COLUMN_NAME: &[u8] = b"";

/// The columns of one key, in the order of their names, compared as bytes.
///
/// What comes from a cached block is not copied: the columns keep that block in memory.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = flagstone::Db::open(directory.path())?;
/// db.put_entity("ada", [("name", "Ada Lovelace"), ("born", "1815")])?;
/// let ada = db.get_entity("ada")?.expect("it was put");
/// assert_eq!(ada.get("born"), Some(&b"1815"[..]));
/// assert_eq!(ada.iter().map(|(name, _)| name).collect::<Vec<_>>(), [&b"born"[..], b"name"]);
/// assert_eq!(ada.get("died"), None);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "PinnableWideColumns")]
#[derive(Clone, Default)]
pub struct WideColumns {
    /// What is stored; names and most values are parts of it.
    stored: Bytes,
    /// In the order of the names.
    columns: Vec<Place>,
}

#[derive(Clone)]
struct Place {
    name: Range<usize>,
    value: ValuePlace,
}

#[derive(Clone)]
enum ValuePlace {
    Stored(Range<usize>),
    /// It lay in a blob file.
    Apart(Bytes),
}

impl WideColumns {
    /// The columns of an encoded entity: what a batch's
    /// [`Operation::PutEntity`](crate::Operation::PutEntity) and a compaction filter are shown.
    ///
    /// # Errors
    /// `Corruption` if it is malformed; `NotSupported` for a newer version, or if a column lies in
    /// a blob file.
    pub fn decode(entity: &[u8]) -> Result<Self> {
        Self::of_entity(Bytes::copy_from_slice(entity), |_| {
            Err(Error::not_supported("a column of the entity lies in a blob file"))
        })
    }

    /// A plain value: one column, the default one.
    pub(crate) fn of_value(value: Bytes) -> Self {
        let place = Place { name: 0..0, value: ValuePlace::Stored(0..value.len()) };
        Self { stored: value, columns: vec![place] }
    }

    /// The columns of a stored entity. `fetch` reads what a blob index leads to.
    ///
    /// # Errors
    /// `Corruption` or `NotSupported` for an entity that cannot be decoded; those of `fetch`.
    pub(crate) fn of_entity(
        stored: Bytes,
        mut fetch: impl FnMut(&[u8]) -> Result<Bytes>,
    ) -> Result<Self> {
        let part = |bytes: &[u8]| {
            // What is empty may lie elsewhere.
            let start = match bytes {
                [] => 0,
                _ => bytes.as_ptr() as usize - stored.as_ptr() as usize,
            };
            start..start + bytes.len()
        };
        let place = |column: StoredColumn<'_>| {
            let value = if column.is_blob {
                ValuePlace::Apart(fetch(column.value)?)
            } else {
                ValuePlace::Stored(part(column.value))
            };
            Ok(Place { name: part(column.name), value })
        };
        let columns = decode(&stored)?.into_iter().map(place).collect::<Result<_>>()?;
        Ok(Self { stored, columns })
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no column: an entity may have none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The value of the column called `name`, if there is one. Costs a binary search.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        let name = name.as_ref();
        let at = self.columns.binary_search_by(|place| self.stored[place.name.clone()].cmp(name));
        at.ok().map(|at| self.column(&self.columns[at]).1)
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Column<'_>> + ExactSizeIterator {
        self.columns.iter().map(|place| self.column(place))
    }

    /// Copies of all names and values, in the order of the names.
    pub fn to_vec(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
    }

    /// Bytes of all names and values.
    pub fn byte_size(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// The value, if the default column is the only one.
    pub(crate) fn only_default(&self) -> Option<&[u8]> {
        if self.len() == 1 { self.get(DEFAULT_COLUMN_NAME) } else { None }
    }

    /// The columns as an entity is stored that has all its values inside.
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(&self.iter().collect::<Vec<_>>())
    }

    fn column<'a>(&'a self, place: &'a Place) -> Column<'a> {
        let value = match &place.value {
            ValuePlace::Stored(range) => &self.stored[range.clone()],
            ValuePlace::Apart(value) => value,
        };
        (&self.stored[place.name.clone()], value)
    }
}

impl PartialEq for WideColumns {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for WideColumns {}

/// Equal if names, values and their order are.
impl<N: AsRef<[u8]>, V: AsRef<[u8]>, const COUNT: usize> PartialEq<[(N, V); COUNT]>
    for WideColumns
{
    fn eq(&self, other: &[(N, V); COUNT]) -> bool {
        self.iter().eq(other.iter().map(|(name, value)| (name.as_ref(), value.as_ref())))
    }
}

impl fmt::Debug for WideColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        f.debug_map().entries(self.iter().map(|(name, value)| (text(name), text(value)))).finish()
    }
}
