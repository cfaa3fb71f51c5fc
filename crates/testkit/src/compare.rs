//! Comparing a database with the model.

use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db, Iter};
use flagstone::options::ReadOptions;
use flagstone::{self as front, Transaction};

use crate::model::{Edit, Family, Losses, Model, are_columns_of, entity_columns};

/// Entries as a scan finds them.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A model's batch as the engine's.
///
/// # Panics
/// If the database has no family of a name in it.
pub fn to_batch(db: &Db, edits: &[(String, Edit)]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (name, edit) in edits {
        add(
            &mut batch,
            &db.column_family(name).expect("the batch names families that exist"),
            edit,
        );
    }
    batch
}

/// Adds an edit of a family to a batch.
pub fn add(batch: &mut WriteBatch, family: &ColumnFamily, edit: &Edit) {
    let added = match edit {
        Edit::Put { key, value } => batch.put_cf(family, key, value),
        Edit::PutEntity { key, value } => batch.put_entity_cf(family, key, entity_columns(value)),
        Edit::Delete { key } => batch.delete_cf(family, key),
        Edit::SingleDelete { key } => batch.single_delete_cf(family, key),
        Edit::Merge { key, operand } => batch.merge_cf(family, key, operand),
        Edit::DeleteRange { begin, end } => batch.delete_range_cf(family, begin, end),
    };
    added.expect("a small batch");
}

/// Makes a change in a transaction.
///
/// # Errors
/// As the transaction's methods.
///
/// # Panics
/// If it deletes a range, which transactions do not.
pub fn change(transaction: &mut Transaction, family: &front::Family, edit: &Edit) -> Result<()> {
    match edit {
        Edit::Put { key, value } => transaction.put(family, key, value),
        Edit::PutEntity { key, value } => {
            transaction.put_entity(family, key, entity_columns(value))
        }
        Edit::Delete { key } => transaction.delete(family, key),
        Edit::SingleDelete { key } => transaction.single_delete(family, key),
        Edit::Merge { key, operand } => transaction.merge(family, key, operand),
        Edit::DeleteRange { .. } => panic!("a transaction deletes no ranges"),
    }
}

/// [`change`], which writes values that are not short in pieces, to a blob file of their own.
///
/// # Errors
/// As [`change`].
///
/// # Panics
/// As [`change`].
pub fn change_in_pieces(
    transaction: &mut Transaction,
    family: &front::Family,
    edit: &Edit,
) -> Result<()> {
    const IN_MEMORY: usize = 60;
    let (key, value) = match edit {
        Edit::Put { key, value } if value.len() > IN_MEMORY => (key, value),
        edit => return change(transaction, family, edit),
    };
    let mut writer = transaction.put_in_pieces(family, key)?.with_buffer(IN_MEMORY);
    value.chunks(IN_MEMORY).try_for_each(|piece| writer.append(piece))?;
    writer.finish()
}

/// Scans forwards.
///
/// # Errors
/// What the iterator met.
pub fn scan(db: &Db, family: &ColumnFamily, options: &ReadOptions) -> Result<Entries> {
    let mut iter = db.iter_cf(family, options)?;
    let mut found = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        found.push(entry(&mut iter)?);
        iter.next();
    }
    iter.status()?;
    Ok(found)
}

/// The entry on which an iterator stands, whose columns must belong to its value.
fn entry(iter: &mut Iter) -> Result<(Vec<u8>, Vec<u8>)> {
    let (key, value) = (iter.key().to_vec(), iter.value()?.to_vec());
    let columns = iter.columns()?;
    assert!(
        are_columns_of(&columns, &value),
        "key {}: value {} with columns {columns:?}",
        key.escape_ascii(),
        show(&value)
    );
    Ok((key, value))
}

/// Scans backwards; in the family's order.
///
/// # Errors
/// What the iterator met.
pub fn scan_back(db: &Db, family: &ColumnFamily, options: &ReadOptions) -> Result<Entries> {
    let mut iter = db.iter_cf(family, options)?;
    let mut found = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        found.push(entry(&mut iter)?);
        iter.prev();
    }
    iter.status()?;
    found.reverse();
    Ok(found)
}

/// Compares a family by scans in both directions.
///
/// # Panics
/// At the first difference, with both sides.
pub fn check_scans(db: &Db, family: &ColumnFamily, model: &Family, options: &ReadOptions) {
    let name = family.name();
    check_entries(name, &scan(db, family, options).expect("a scan"), model);
    check_entries(name, &scan_back(db, family, options).expect("a scan back"), model);
}

/// Compares what a scan found.
///
/// # Panics
/// At the first difference.
pub fn check_entries(name: &str, found: &[(Vec<u8>, Vec<u8>)], model: &Family) {
    let mut expected = model.iter();
    for (key, value) in found {
        let next = model.stop(&mut expected, Some(key));
        let matches = next
            .is_some_and(|entry| *model.known_as(key) == **entry.0 && model.may_have(entry, value));
        assert!(
            matches,
            "family {name}: found {} = {}, expected {}",
            key.escape_ascii(),
            show(value),
            next.map_or("the end".to_string(), |(key, value)| format!(
                "{} = {}",
                key.escape_ascii(),
                show(value)
            ))
        );
    }
    if let Some((key, _)) = model.stop(&mut expected, None) {
        panic!("family {name}: {} is missing", key.escape_ascii());
    }
    let keys = found.iter().map(|(key, _)| model.known_as(key)).collect();
    assert!(
        model.may_lack_all_but(&keys),
        "family {name}: something is missing that is newer than what is there"
    );
}

/// The beginning of a value and its length.
fn show(value: &[u8]) -> String {
    format!("{}.. ({} bytes)", value[..value.len().min(30)].escape_ascii(), value.len())
}

/// Compares these keys by single and joint lookups; those that may look at no file may be refused.
///
/// # Panics
/// At the first difference.
pub fn check_lookups(
    db: &Db,
    family: &ColumnFamily,
    model: &Family,
    options: &ReadOptions,
    keys: &[Vec<u8>],
) {
    let joint = db.multi_get_with(options, family, keys);
    check_columns(db, family, options, keys);
    for (key, joint) in keys.iter().zip(joint) {
        check_part(db, family, model, options, key);
        let expected = model.get(key).map(Vec::as_slice);
        let single = db.get_with(options, family, key);
        for (way, found) in [("get", single), ("multi_get", joint)] {
            let found = match found {
                Err(error) if options.cache_only && error.code() == Code::Incomplete => continue,
                found => found.expect("a lookup"),
            };
            let found = found.as_deref();
            assert!(
                model.accepts(key, found),
                "{way}: family {}, key {}: found {}, expected {}",
                family.name(),
                key.escape_ascii(),
                found.map_or("nothing".to_string(), show),
                expected.map_or("nothing".to_string(), show)
            );
        }
    }
}

/// Compares the columns of these keys, looked up alone and together, with their values.
fn check_columns(db: &Db, family: &ColumnFamily, options: &ReadOptions, keys: &[Vec<u8>]) {
    if options.cache_only {
        return;
    }
    let joint = db.multi_get_entity(options, family, keys);
    for (key, joint) in keys.iter().zip(joint) {
        let joint = joint.expect("a lookup of columns");
        let single = db.get_entity(options, family, key).expect("a lookup of columns");
        assert!(
            single == joint,
            "family {}, key {}: columns {joint:?} were found among others; found alone: {single:?}",
            family.name(),
            key.escape_ascii()
        );
        let value = single.as_ref().and_then(|columns| columns.get(""));
        assert!(
            single.as_ref().is_none_or(|all| are_columns_of(all, value.unwrap_or_default())),
            "family {}, key {}: columns {single:?}",
            family.name(),
            key.escape_ascii()
        );
    }
}

/// Larger values are read in pieces.
const PIECE: usize = 1 << 16;

/// Compares a part of a value, another one for each length of value and key.
fn check_part(db: &Db, family: &ColumnFamily, model: &Family, options: &ReadOptions, key: &[u8]) {
    let expected = model.get(key).map(Vec::as_slice);
    let size = expected.map_or(0, <[u8]>::len);
    let start = (key.len() * 7 + size / 3) % (size + 2);
    let end = start + 1 + size / 2;
    let read = || db.get_range(options, family, key, start as u64..end as u64);
    // What the first call for a large value keeps of it in the cache, the second goes by.
    let part = match read().and_then(|first| if size > PIECE { read() } else { Ok(first) }) {
        Err(error) if options.cache_only && error.code() == Code::Incomplete => return,
        part => part.expect("a lookup of a part"),
    };
    if model.losses != Losses::default() {
        return;
    }
    let found = part.as_ref().map(|part| (&*part.bytes, part.value_size));
    let expected = expected.map(|value| (&value[start.min(size)..end.min(size)], size as u64));
    assert!(
        found == expected,
        "get_range: family {}, key {}, bytes {start} to {end} of {size}: found {}",
        family.name(),
        key.escape_ascii(),
        found.map_or("nothing".to_string(), |(bytes, size)| format!("{}, of {size}", show(bytes)))
    );
}

/// Compares all families by scans.
///
/// # Panics
/// At the first difference.
pub fn check_database(db: &Db, model: &Model) {
    let found: Vec<_> = db.column_families();
    let mut names: Vec<_> = found.iter().map(|family| family.name().to_string()).collect();
    names.sort();
    assert_eq!(names, model.families.keys().cloned().collect::<Vec<_>>(), "families");
    for family in found {
        check_scans(db, &family, &model.families[family.name()], &ReadOptions::default());
    }
}

/// Verifies every file.
///
/// # Panics
/// If anything is wrong.
pub fn check_files(db: &Db) {
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty(), "verify: {:?}", report.faults);
    let report = db.check().expect("a listing");
    assert!(report.faults.is_empty(), "check: {:?}", report.faults);
}
