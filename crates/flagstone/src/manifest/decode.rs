//! Reading a version edit; every byte is taken for hostile.

use super::edit::{CompactCursor, VersionEdit, WalAddition};
use super::format::{
    BLOB_TERMINATE, CUSTOM_MUST_UNDERSTAND, MAX_FILE_NUMBER, MAX_LEVEL, MAX_PATH_ID,
    WAL_SYNCED_SIZE, WAL_TERMINATE, file_tag, tag,
};
use super::metadata::{
    BlobFileAddition, BlobFileGarbage, BlobReferences, EntryStats, FileMetadata,
};
use crate::base::coding::Decoder;
use crate::base::{
    ColumnFamilyId, Error, FileNumber, InternalKeyBuf, MAX_SEQUENCE_NUMBER, Result, SequenceNumber,
    Temperature, UniqueId,
};

impl VersionEdit {
    /// Reads an edit that takes up all of `bytes`.
    ///
    /// # Errors
    /// `Corruption` that names the field, `NotSupported` for names that are not UTF-8; the caller
    /// adds file and offset.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut edit = Self::default();
        let mut fields = Fields(Decoder::new(bytes));
        while !fields.0.is_empty() {
            let tag = fields.v32("tag")?;
            if !edit.decode_scalar(tag, &mut fields)?
                && !edit.decode_files(tag, &mut fields)?
                && !edit.decode_other(tag, &mut fields)?
            {
                if tag & tag::IGNORABLE == 0 {
                    return Err(Error::corruption(format!("version edit: unknown tag {tag}")));
                }
                fields.lps("ignorable field")?;
            }
        }
        Ok(edit)
    }

    fn decode_scalar(&mut self, tag: u32, fields: &mut Fields<'_>) -> Result<bool> {
        match tag {
            tag::COMPARATOR => self.comparator = Some(fields.text("comparator name")?),
            tag::LOG_NUMBER => self.log_number = Some(fields.number("log number")?),
            tag::PREV_LOG_NUMBER => {
                self.prev_log_number = Some(fields.number("previous log number")?)
            }
            tag::NEXT_FILE_NUMBER => {
                self.next_file_number = Some(fields.number("next file number")?)
            }
            tag::LAST_SEQUENCE => self.last_sequence = Some(fields.sequence("last sequence")?),
            tag::MIN_LOG_NUMBER_TO_KEEP => {
                self.min_log_number_to_keep = Some(fields.number("min log number to keep")?);
            }
            tag::MAX_COLUMN_FAMILY => {
                self.max_column_family = Some(ColumnFamilyId(fields.v32("max column family")?));
            }
            tag::COLUMN_FAMILY => self.family = ColumnFamilyId(fields.v32("column family")?),
            tag::COLUMN_FAMILY_ADD => self.family_added = Some(fields.text("column family name")?),
            tag::COLUMN_FAMILY_DROP => self.family_dropped = true,
            tag::IN_ATOMIC_GROUP => self.atomic_group_remaining = Some(fields.v32("atomic group")?),
            tag::DB_ID => self.db_id = Some(fields.text("database id")?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn decode_files(&mut self, tag: u32, fields: &mut Fields<'_>) -> Result<bool> {
        match tag {
            tag::COMPACT_CURSOR => {
                let level = fields.level("compact cursor")?;
                self.compact_cursors
                    .push(CompactCursor { level, key: fields.key("compact cursor")? });
            }
            tag::DELETED_FILE => {
                let level = fields.level("deleted file")?;
                self.deleted_files.push((level, fields.number("deleted file")?));
            }
            tag::NEW_FILE | tag::NEW_FILE_2 | tag::NEW_FILE_3 => {
                let new_file = decode_old_file(tag, fields)?;
                self.new_files.push(new_file);
            }
            tag::NEW_FILE_4 => {
                let new_file = self.decode_file(fields)?;
                self.new_files.push(new_file);
            }
            tag::BLOB_FILE_ADDITION => self.blob_file_additions.push(decode_blob_addition(fields)?),
            tag::BLOB_FILE_GARBAGE => self.blob_file_garbages.push(decode_blob_garbage(fields)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn decode_other(&mut self, tag: u32, fields: &mut Fields<'_>) -> Result<bool> {
        match tag {
            tag::WAL_ADDITION => self.wal_additions.push(decode_wal_addition(fields)?),
            tag::WAL_DELETION => self.wal_deletion = Some(fields.number("WAL deletion")?),
            tag::WAL_ADDITION_2 => {
                let mut inner = Fields(Decoder::new(fields.lps("WAL addition")?));
                self.wal_additions.push(decode_wal_addition(&mut inner)?);
            }
            tag::WAL_DELETION_2 => {
                let mut inner = Fields(Decoder::new(fields.lps("WAL deletion")?));
                self.wal_deletion = Some(inner.number("WAL deletion")?);
            }
            tag::FULL_HISTORY_TS_LOW => {
                self.full_history_ts_low = Some(fields.lps("full history timestamp")?.to_vec());
            }
            tag::PERSIST_USER_TIMESTAMPS => {
                let flag = fields.lps("persist user timestamps")?;
                self.persist_user_timestamps =
                    Some(one_byte(flag, "persist user timestamps")? != 0);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn decode_file(&mut self, fields: &mut Fields<'_>) -> Result<(usize, FileMetadata)> {
        let level = fields.level("new file")?;
        let mut file =
            FileMetadata { number: fields.number("new file")?, ..FileMetadata::default() };
        file.size = fields.v64("file size")?;
        decode_bounds(fields, &mut file)?;
        decode_seqnos(fields, &mut file)?;
        loop {
            let tag = fields.v32("custom tag of a new file")?;
            if tag == file_tag::TERMINATE {
                return Ok((level, file));
            }
            let value = fields.lps("custom field of a new file")?;
            if tag == file_tag::MIN_LOG_NUMBER_TO_KEEP {
                let number = Decoder::new(value)
                    .fixed64()
                    .ok_or_else(|| malformed("min log number to keep"))?;
                self.min_log_number_to_keep = Some(file_number(number, "min log number to keep")?);
            } else {
                decode_custom_field(&mut file, tag, value)?;
            }
        }
    }
}

fn decode_old_file(tag: u32, fields: &mut Fields<'_>) -> Result<(usize, FileMetadata)> {
    let level = fields.level("new file")?;
    let mut file = FileMetadata { number: fields.number("new file")?, ..FileMetadata::default() };
    if tag == tag::NEW_FILE_3 {
        file.path_id = path_id(fields.v32("path id")?)?;
    }
    file.size = fields.v64("file size")?;
    decode_bounds(fields, &mut file)?;
    // LevelDB records no seqnos. With none, level 0 is ordered by file number, as LevelDB and
    // RocksDB read it; those of the bounding keys say nothing of the keys between, and RocksDB
    // would not open what they order otherwise.
    if tag != tag::NEW_FILE {
        decode_seqnos(fields, &mut file)?;
    }
    Ok((level, file))
}

fn decode_bounds(fields: &mut Fields<'_>, file: &mut FileMetadata) -> Result<()> {
    file.smallest = fields.key("smallest key")?;
    file.largest = fields.key("largest key")?;
    Ok(())
}

fn decode_seqnos(fields: &mut Fields<'_>, file: &mut FileMetadata) -> Result<()> {
    file.smallest_seqno = fields.sequence("smallest seqno")?;
    file.largest_seqno = fields.sequence("largest seqno")?;
    if file.smallest_seqno <= file.largest_seqno {
        Ok(())
    } else {
        Err(Error::corruption(format!(
            "version edit: smallest seqno {} of file {} exceeds its largest {}",
            file.smallest_seqno, file.number, file.largest_seqno
        )))
    }
}

fn decode_custom_field(file: &mut FileMetadata, tag: u32, value: &[u8]) -> Result<()> {
    match tag {
        file_tag::NEED_COMPACTION => {
            file.marked_for_compaction = one_byte(value, "need compaction")? == 1
        }
        file_tag::OLDEST_BLOB_FILE => {
            let number = file_number(one_v64(value, "oldest blob file")?, "oldest blob file")?;
            file.oldest_blob_file = (number.0 != 0).then_some(number);
        }
        file_tag::OLDEST_ANCESTOR_TIME => {
            file.oldest_ancestor_time = one_v64(value, "oldest ancestor time")?
        }
        file_tag::FILE_CREATION_TIME => {
            file.file_creation_time = one_v64(value, "file creation time")?
        }
        file_tag::FILE_CHECKSUM => file.file_checksum = value.to_vec(),
        file_tag::FILE_CHECKSUM_FUNCTION => {
            file.file_checksum_function = text(value, "checksum function")?
        }
        file_tag::TEMPERATURE => {
            file.temperature = Temperature::from_byte(one_byte(value, "temperature")?)
        }
        file_tag::MIN_TIMESTAMP => file.min_timestamp = value.to_vec(),
        file_tag::MAX_TIMESTAMP => file.max_timestamp = value.to_vec(),
        file_tag::UNIQUE_ID => {
            let id: [u8; 16] = value.try_into().map_err(|_| malformed("unique id"))?;
            // Zeros stand for a file without one.
            file.unique_id = (id != [0; 16]).then_some(UniqueId(id));
        }
        file_tag::EPOCH_NUMBER => file.epoch_number = one_v64(value, "epoch number")?,
        file_tag::COMPENSATED_RANGE_DELETION_SIZE => {
            file.compensated_range_deletion_size =
                one_v64(value, "compensated range deletion size")?;
        }
        file_tag::TAIL_SIZE => file.tail_size = one_v64(value, "tail size")?,
        file_tag::USER_TIMESTAMPS_PERSISTED => {
            file.user_timestamps_persisted = one_byte(value, "user timestamps persisted")? != 0;
        }
        file_tag::BLOB_REFERENCES => file.blob_references = blob_references(value)?,
        file_tag::ENTRY_STATS => file.entry_stats = Some(entry_stats(value)?),
        file_tag::PATH_ID => file.path_id = path_id(u32::from(one_byte(value, "path id")?))?,
        _ if tag & CUSTOM_MUST_UNDERSTAND != 0 => {
            return Err(Error::corruption(format!(
                "version edit: new file with unknown custom field {tag}"
            )));
        }
        _ => {}
    }
    Ok(())
}

fn entry_stats(payload: &[u8]) -> Result<EntryStats> {
    let mut decoder = Decoder::new(payload);
    let mut number = || decoder.varint64().ok_or_else(|| malformed("entry statistics"));
    Ok(EntryStats {
        entries: number()?,
        deletions: number()?,
        range_deletions: number()?,
        value_bytes: number()?,
    })
}

fn blob_references(payload: &[u8]) -> Result<Option<BlobReferences>> {
    let mut decoder = Decoder::new(payload);
    let number =
        |decoder: &mut Decoder<'_>| decoder.varint64().ok_or_else(|| malformed("blob references"));
    let others = number(&mut decoder)?;
    let (mut files, mut before) = (Vec::new(), 0u64);
    while !decoder.is_empty() {
        let (step, bytes) = (number(&mut decoder)?, number(&mut decoder)?);
        // Each has its place after the one before.
        let next = before
            .checked_add(step)
            .filter(|_| step > 0)
            .ok_or_else(|| malformed("blob references"))?;
        files.push((file_number(next, "blob references")?, bytes));
        before = next;
    }
    Ok(BlobReferences::new(others, files))
}

fn decode_blob_addition(fields: &mut Fields<'_>) -> Result<BlobFileAddition> {
    let addition = BlobFileAddition {
        number: fields.number("blob file addition")?,
        total_count: fields.v64("blob count")?,
        total_bytes: fields.v64("blob bytes")?,
        checksum_method: fields.text("blob checksum method")?,
        checksum_value: fields.lps("blob checksum")?.to_vec(),
    };
    skip_blob_custom_fields(fields)?;
    Ok(addition)
}

fn decode_blob_garbage(fields: &mut Fields<'_>) -> Result<BlobFileGarbage> {
    let garbage = BlobFileGarbage {
        number: fields.number("blob file garbage")?,
        count: fields.v64("garbage count")?,
        bytes: fields.v64("garbage bytes")?,
    };
    skip_blob_custom_fields(fields)?;
    Ok(garbage)
}

fn skip_blob_custom_fields(fields: &mut Fields<'_>) -> Result<()> {
    loop {
        let tag = fields.v32("custom tag of a blob file")?;
        if tag == BLOB_TERMINATE {
            return Ok(());
        }
        if tag & CUSTOM_MUST_UNDERSTAND != 0 {
            return Err(Error::corruption(format!(
                "version edit: blob file with unknown custom field {tag}"
            )));
        }
        fields.lps("custom field of a blob file")?;
    }
}

fn decode_wal_addition(fields: &mut Fields<'_>) -> Result<WalAddition> {
    let mut wal = WalAddition { number: fields.number("WAL addition")?, synced_size: None };
    loop {
        match fields.v32("tag of a WAL addition")? {
            WAL_TERMINATE => return Ok(wal),
            WAL_SYNCED_SIZE => wal.synced_size = Some(fields.v64("synced size of a WAL")?),
            other => {
                return Err(Error::corruption(format!(
                    "version edit: WAL with unknown field {other}"
                )));
            }
        }
    }
}

fn malformed(what: &str) -> Error {
    Error::corruption(format!("version edit: malformed {what}"))
}

fn file_number(number: u64, what: &str) -> Result<FileNumber> {
    if number <= MAX_FILE_NUMBER { Ok(FileNumber(number)) } else { Err(malformed(what)) }
}

fn path_id(id: u32) -> Result<u32> {
    if id <= MAX_PATH_ID { Ok(id) } else { Err(malformed("path id")) }
}

/// RocksDB takes any bytes for a name.
fn text(bytes: &[u8], what: &str) -> Result<String> {
    let unsupported = || {
        let name = bytes.escape_ascii();
        Error::not_supported(format!("version edit: the {what} '{name}' is not UTF-8"))
    };
    String::from_utf8(bytes.to_vec()).map_err(|_| unsupported())
}

fn one_byte(value: &[u8], what: &str) -> Result<u8> {
    match value {
        [byte] => Ok(*byte),
        _ => Err(malformed(what)),
    }
}

fn one_v64(value: &[u8], what: &str) -> Result<u64> {
    Decoder::new(value).varint64().ok_or_else(|| malformed(what))
}

/// A decoder whose every method says what it could not read.
struct Fields<'a>(Decoder<'a>);

impl<'a> Fields<'a> {
    fn v32(&mut self, what: &str) -> Result<u32> {
        self.0.varint32().ok_or_else(|| malformed(what))
    }

    fn v64(&mut self, what: &str) -> Result<u64> {
        self.0.varint64().ok_or_else(|| malformed(what))
    }

    fn lps(&mut self, what: &str) -> Result<&'a [u8]> {
        self.0.lps().ok_or_else(|| malformed(what))
    }

    fn text(&mut self, what: &str) -> Result<String> {
        text(self.lps(what)?, what)
    }

    fn number(&mut self, what: &str) -> Result<FileNumber> {
        file_number(self.v64(what)?, what)
    }

    fn sequence(&mut self, what: &str) -> Result<SequenceNumber> {
        self.v64(what).ok().filter(|&s| s <= MAX_SEQUENCE_NUMBER).ok_or_else(|| malformed(what))
    }

    fn level(&mut self, what: &str) -> Result<usize> {
        self.v32(what)
            .ok()
            .filter(|&l| l < MAX_LEVEL)
            .map(|l| l as usize)
            .ok_or_else(|| malformed(what))
    }

    fn key(&mut self, what: &str) -> Result<InternalKeyBuf> {
        InternalKeyBuf::parse_bound(self.lps(what)?).ok_or_else(|| malformed(what))
    }
}
