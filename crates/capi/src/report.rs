//! What a database tells of itself: properties, sizes, files.

use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};

use flagstone::db::ColumnFamily;
use flagstone::options::SizeApproximationOptions;
use flagstone_rocksdb as rdb;

use crate::abi::{
    Array, Bytes, Out, Result, Tagged, copied, copied_text, count, handles, keys, make,
};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::db::{Db, Family};

/// A table.
#[derive(Clone, Default)]
pub struct File {
    pub(crate) family: Vec<u8>,
    name: Vec<u8>,
    directory: Vec<u8>,
    level: i32,
    size: u64,
    smallest: Vec<u8>,
    largest: Vec<u8>,
    sequences: (u64, u64),
    entries: u64,
    deletions: u64,
}

/// Tables.
#[derive(Default)]
pub struct Files(pub Vec<File>);

/// A family's tables, by level.
pub struct FamilyMetadata {
    name: String,
    levels: Vec<LevelMetadata>,
}

/// A level's tables.
#[derive(Clone, Default)]
pub struct LevelMetadata {
    level: i32,
    files: Vec<File>,
}

/// What an estimate of sizes counts.
#[derive(Default)]
pub struct SizeOptions(SizeApproximationOptions);

/// A table of a level.
pub struct FileMetadata(File);

handles! {
    File = "livefile",
    Files = "livefiles",
    FamilyMetadata = "column_family_metadata",
    LevelMetadata = "level_metadata",
    FileMetadata = "sst_file_metadata",
    SizeOptions = "size_approximation_options",
}

creates! {
    rocksdb_livefile_create: File,
    rocksdb_livefiles_create: Files,
    rocksdb_size_approximation_options_create: SizeOptions,
}

c_settings! { "rocksdb_size_approximation_options", SizeOptions, |o| {
    value u8, include_memtables: o.0.include_memtables;
    value u8, include_files: o.0.include_files;
    value u8, include_blob_files: o.0.include_blob_files;
    value f64, files_size_error_margin: o.0.files_size_error_margin;
} }

destroys! {
    rocksdb_livefile_destroy: File,
    rocksdb_livefiles_destroy: Files,
    rocksdb_column_family_metadata_destroy: FamilyMetadata,
    rocksdb_level_metadata_destroy: LevelMetadata,
    rocksdb_sst_file_metadata_destroy: FileMetadata,
    rocksdb_size_approximation_options_destroy: SizeOptions,
}

/// The tables of all families.
pub fn tables(db: &flagstone::db::Db) -> Vec<File> {
    let files = db.live_files().into_iter();
    let tables = files.filter_map(|file| file.level.map(|level| (level, file)));
    let described = tables.map(|(level, file)| {
        let (entries, deletions) = file.entries.unwrap_or_default();
        let directory = file.path.parent().map(std::path::Path::as_os_str).unwrap_or_default();
        // Names of directories go in texts, and so have no NUL byte. The others get one below.
        File {
            family: with_nul(file.column_family.as_bytes()),
            name: with_nul(format!("/{:06}.sst", file.number.0).as_bytes()),
            directory: with_nul(directory.as_encoded_bytes()),
            level: level as i32,
            size: file.size,
            smallest: file.smallest,
            largest: file.largest,
            sequences: file.sequences,
            entries,
            deletions,
        }
    });
    described.collect()
}

/// A text as C reads it.
pub fn with_nul(text: &[u8]) -> Vec<u8> {
    [text, b"\0"].concat()
}

impl File {
    /// Its name, after a slash.
    pub fn name(&self) -> &[u8] {
        without_nul(&self.name)
    }

    /// Its directory.
    pub fn directory_name(&self) -> &[u8] {
        without_nul(&self.directory)
    }

    /// The same file in an export, which as in RocksDB does not say which family it was.
    pub fn exported_to(self, directory: &std::path::Path) -> Self {
        let directory = with_nul(directory.as_os_str().as_encoded_bytes());
        Self { family: with_nul(b""), directory, ..self }
    }
}

fn without_nul(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\0").unwrap_or(text)
}

impl Files {
    fn at(&self, index: c_int) -> Option<&File> {
        usize::try_from(index).ok().and_then(|index| self.0.get(index))
    }

    fn text(&self, index: c_int, field: impl Fn(&File) -> &Vec<u8>) -> *const c_char {
        self.at(index).map_or(null(), |file| field(file).as_ptr().cast())
    }

    fn key(
        &self,
        index: c_int,
        len: Out<usize>,
        field: impl Fn(&File) -> &Vec<u8>,
    ) -> *const c_char {
        len.set(self.at(index).map_or(0, |file| field(file).len()));
        self.at(index).map_or(null(), |file| field(file).as_ptr().cast())
    }

    fn number<T: Default>(&self, index: c_int, field: impl Fn(&File) -> T) -> T {
        self.at(index).map(field).unwrap_or_default()
    }
}

/// A property as a text; NULL for none.
pub fn property(
    db: &flagstone::db::Db,
    family: &ColumnFamily,
    name: &std::ffi::CStr,
) -> *mut c_char {
    db.property(family, &name.to_string_lossy()).map_or(null_mut(), copied_text)
}

/// A property as a number; -1 for none.
pub fn int_property(
    db: &flagstone::db::Db,
    family: &ColumnFamily,
    name: &std::ffi::CStr,
    value: Out<u64>,
) -> i32 {
    match db.int_property(family, &name.to_string_lossy()) {
        Some(found) => {
            value.set(found);
            0
        }
        None => -1,
    }
}

/// The ranges of an estimate: `len` keys to begin with, and as many to end before.
struct Ranges {
    len: i32,
    begins: (Array<Bytes>, Array<usize>),
    ends: (Array<Bytes>, Array<usize>),
}

impl Ranges {
    fn sizes(
        &self,
        db: &Db,
        family: Option<&Family>,
        options: SizeApproximationOptions,
        sizes: Array<u64>,
    ) -> Result<()> {
        if !(options.include_memtables || options.include_files || options.include_blob_files) {
            return Err(rdb::Error::invalid_argument("Invalid options"));
        }
        let len = count(self.len);
        let begins = keys(self.begins.0, self.begins.1, len)?;
        let ends = keys(self.ends.0, self.ends.1, len)?;
        let ranges: Vec<_> = begins.into_iter().zip(ends).collect();
        let found = db.engine().approximate_sizes(db.family(family), &ranges, &options)?;
        for (at, size) in found.into_iter().enumerate() {
            sizes.set(at, size);
        }
        Ok(())
    }
}

fn with_flags(flags: u8) -> SizeApproximationOptions {
    SizeApproximationOptions {
        include_memtables: flags & 1 != 0,
        include_files: flags & 2 != 0,
        include_blob_files: flags & 4 != 0,
        ..SizeApproximationOptions::default()
    }
}

/// A family's tables, by level.
pub fn metadata_of(db: &Db, family: &ColumnFamily) -> FamilyMetadata {
    let name = family.name().to_string();
    let of_family = with_nul(name.as_bytes());
    let all = tables(db.engine()).into_iter().filter(|file| file.family == of_family);
    let levels = family.options().settings.num_levels.max(1);
    let mut levels: Vec<LevelMetadata> =
        (0..levels).map(|level| LevelMetadata { level, files: Vec::new() }).collect();
    for file in all {
        if let Some(level) = levels.get_mut(file.level as usize) {
            level.files.push(file);
        }
    }
    FamilyMetadata { name, levels }
}

impl FamilyMetadata {
    /// The bounds of the tables of level 0.
    pub fn of_level_0(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let first = self.levels.iter().filter(|level| level.level == 0);
        first.flat_map(|level| &level.files).map(|file| (&*file.smallest, &*file.largest))
    }

    /// Leaves out the tables that `stays` does not want, by level and bounds, and levels without
    /// any.
    pub fn retain(&mut self, stays: impl Fn(i32, &[u8], &[u8]) -> bool) {
        for of_level in &mut self.levels {
            let level = of_level.level;
            of_level.files.retain(|file| stays(level, &file.smallest, &file.largest));
        }
        self.levels.retain(|level| !level.files.is_empty());
    }
}

impl LevelMetadata {
    fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

c_api! {
    fn rocksdb_property_value(db: &Db, name: cstr) -> *mut c_char {
        property(db.engine(), db.store.default_family(), name)
    }

    fn rocksdb_property_value_cf(db: &Db, family: &Family, name: cstr) -> *mut c_char {
        property(db.engine(), &family.engine, name)
    }

    fn rocksdb_property_int(db: &Db, name: cstr, value: Out<u64>) -> i32 {
        int_property(db.engine(), db.store.default_family(), name, value)
    }

    fn rocksdb_property_int_cf(db: &Db, family: &Family, name: cstr, value: Out<u64>) -> i32 {
        int_property(db.engine(), &family.engine, name, value)
    }

    fn rocksdb_get_db_identity(db: &Db, len: Out<usize>) -> *mut c_char {
        let identity = db.engine().identity();
        len.set(identity.len());
        copied(identity.as_bytes())
    }

    fn rocksdb_approximate_sizes(
        db: &Db, len: i32, begins: Array<Bytes>, begin_sizes: Array<usize>, ends: Array<Bytes>,
        end_sizes: Array<usize>, sizes: Array<u64>, error
    ) {
        let ranges = Ranges { len, begins: (begins, begin_sizes), ends: (ends, end_sizes) };
        ranges.sizes(db, None, SizeApproximationOptions::default(), sizes)?
    }

    fn rocksdb_approximate_sizes_cf(
        db: &Db, family: &Family, len: i32, begins: Array<Bytes>, begin_sizes: Array<usize>,
        ends: Array<Bytes>, end_sizes: Array<usize>, sizes: Array<u64>, error
    ) {
        let ranges = Ranges { len, begins: (begins, begin_sizes), ends: (ends, end_sizes) };
        ranges.sizes(db, Some(family), SizeApproximationOptions::default(), sizes)?
    }

    fn rocksdb_approximate_sizes_cf_with_flags(
        db: &Db, family: &Family, len: i32, begins: Array<Bytes>, begin_sizes: Array<usize>,
        ends: Array<Bytes>, end_sizes: Array<usize>, flags: u8, sizes: Array<u64>, error
    ) {
        let ranges = Ranges { len, begins: (begins, begin_sizes), ends: (ends, end_sizes) };
        ranges.sizes(db, Some(family), with_flags(flags), sizes)?
    }

    fn rocksdb_approximate_sizes_with_options(
        db: &Db, options: &SizeOptions, len: i32, begins: Array<Bytes>, begin_sizes: Array<usize>,
        ends: Array<Bytes>, end_sizes: Array<usize>, sizes: Array<u64>, error
    ) {
        let ranges = Ranges { len, begins: (begins, begin_sizes), ends: (ends, end_sizes) };
        ranges.sizes(db, None, options.0, sizes)?
    }

    fn rocksdb_approximate_sizes_cf_with_options(
        db: &Db, family: &Family, options: &SizeOptions, len: i32, begins: Array<Bytes>,
        begin_sizes: Array<usize>, ends: Array<Bytes>, end_sizes: Array<usize>, sizes: Array<u64>,
        error
    ) {
        let ranges = Ranges { len, begins: (begins, begin_sizes), ends: (ends, end_sizes) };
        ranges.sizes(db, Some(family), options.0, sizes)?
    }

    fn rocksdb_livefiles(db: &Db) -> *const Tagged<Files> {
        make(Files(tables(db.engine())))
    }

    fn rocksdb_livefiles_count(files: &Files) -> i32 {
        i32::try_from(files.0.len()).unwrap_or(i32::MAX)
    }

    fn rocksdb_livefiles_add(files: &mut Files, file: own File) {
        files.0.extend(file);
    }

    fn rocksdb_livefiles_column_family_name(files: &Files, index: i32) -> *const c_char {
        files.text(index, |file| &file.family)
    }

    fn rocksdb_livefiles_name(files: &Files, index: i32) -> *const c_char {
        files.text(index, |file| &file.name)
    }

    fn rocksdb_livefiles_directory(files: &Files, index: i32) -> *const c_char {
        files.text(index, |file| &file.directory)
    }

    fn rocksdb_livefiles_level(files: &Files, index: i32) -> i32 {
        files.number(index, |file| file.level)
    }

    fn rocksdb_livefiles_size(files: &Files, index: i32) -> usize {
        files.number(index, |file| file.size as usize)
    }

    fn rocksdb_livefiles_entries(files: &Files, index: i32) -> u64 {
        files.number(index, |file| file.entries)
    }

    fn rocksdb_livefiles_deletions(files: &Files, index: i32) -> u64 {
        files.number(index, |file| file.deletions)
    }

    fn rocksdb_livefiles_smallest_seqno(files: &Files, index: i32) -> u64 {
        files.number(index, |file| file.sequences.0)
    }

    fn rocksdb_livefiles_largest_seqno(files: &Files, index: i32) -> u64 {
        files.number(index, |file| file.sequences.1)
    }

    fn rocksdb_livefiles_smallestkey(files: &Files, index: i32, len: Out<usize>) -> *const c_char {
        files.key(index, len, |file| &file.smallest)
    }

    fn rocksdb_livefiles_largestkey(files: &Files, index: i32, len: Out<usize>) -> *const c_char {
        files.key(index, len, |file| &file.largest)
    }

    fn rocksdb_livefile_set_column_family_name(file: &mut File, name: cstr) {
        file.family = name.to_bytes_with_nul().to_vec();
    }

    fn rocksdb_livefile_set_level(file: &mut File, level: i32) {
        file.level = level;
    }

    fn rocksdb_livefile_set_name(file: &mut File, name: cstr) {
        file.name = name.to_bytes_with_nul().to_vec();
    }

    fn rocksdb_livefile_set_directory(file: &mut File, directory: cstr) {
        file.directory = directory.to_bytes_with_nul().to_vec();
    }

    fn rocksdb_livefile_set_size(file: &mut File, size: usize) {
        file.size = size as u64;
    }

    fn rocksdb_livefile_set_smallest_key(file: &mut File, key: [u8]) {
        file.smallest = key.to_vec();
    }

    fn rocksdb_livefile_set_largest_key(file: &mut File, key: [u8]) {
        file.largest = key.to_vec();
    }

    fn rocksdb_livefile_set_smallest_seqno(file: &mut File, sequence: u64) {
        file.sequences.0 = sequence;
    }

    fn rocksdb_livefile_set_largest_seqno(file: &mut File, sequence: u64) {
        file.sequences.1 = sequence;
    }

    fn rocksdb_livefile_set_num_entries(file: &mut File, entries: u64) {
        file.entries = entries;
    }

    fn rocksdb_livefile_set_num_deletions(file: &mut File, deletions: u64) {
        file.deletions = deletions;
    }

    fn rocksdb_get_column_family_metadata(db: &Db) -> *mut Tagged<FamilyMetadata> {
        make(metadata_of(db, db.store.default_family()))
    }

    fn rocksdb_get_column_family_metadata_cf(
        db: &Db, family: &Family
    ) -> *mut Tagged<FamilyMetadata> {
        make(metadata_of(db, &family.engine))
    }

    fn rocksdb_column_family_metadata_get_size(family: &FamilyMetadata) -> u64 {
        family.levels.iter().map(LevelMetadata::size).sum()
    }

    fn rocksdb_column_family_metadata_get_file_count(family: &FamilyMetadata) -> usize {
        family.levels.iter().map(|level| level.files.len()).sum()
    }

    fn rocksdb_column_family_metadata_get_name(family: &FamilyMetadata) -> *mut c_char {
        copied_text(&family.name)
    }

    fn rocksdb_column_family_metadata_get_level_count(family: &FamilyMetadata) -> usize {
        family.levels.len()
    }

    fn rocksdb_column_family_metadata_get_level_metadata(
        family: &FamilyMetadata, index: usize
    ) -> *mut Tagged<LevelMetadata> {
        family.levels.get(index).map_or(null_mut(), |level| make(level.clone()))
    }

    fn rocksdb_level_metadata_get_level(level: &LevelMetadata) -> i32 {
        level.level
    }

    fn rocksdb_level_metadata_get_size(level: &LevelMetadata) -> u64 {
        level.size()
    }

    fn rocksdb_level_metadata_get_file_count(level: &LevelMetadata) -> usize {
        level.files.len()
    }

    fn rocksdb_level_metadata_get_sst_file_metadata(
        level: &LevelMetadata, index: usize
    ) -> *mut Tagged<FileMetadata> {
        level.files.get(index).map_or(null_mut(), |file| make(FileMetadata(file.clone())))
    }

    fn rocksdb_sst_file_metadata_get_relative_filename(file: &FileMetadata) -> *mut c_char {
        // Without the slash; the text ends with a NUL byte already.
        copied(&file.0.name[1..])
    }

    fn rocksdb_sst_file_metadata_get_directory(file: &FileMetadata) -> *mut c_char {
        copied(&file.0.directory)
    }

    fn rocksdb_sst_file_metadata_get_size(file: &FileMetadata) -> u64 {
        file.0.size
    }

    fn rocksdb_sst_file_metadata_get_smallestkey(
        file: &FileMetadata, len: Out<usize>
    ) -> *mut c_char {
        len.set(file.0.smallest.len());
        copied(&file.0.smallest)
    }

    fn rocksdb_sst_file_metadata_get_largestkey(
        file: &FileMetadata, len: Out<usize>
    ) -> *mut c_char {
        len.set(file.0.largest.len());
        copied(&file.0.largest)
    }
}
