//! Blob files and references into them.

use flagstone::base::{ColumnFamilyId, FileNumber};
use flagstone::blob::{
    BlobFileFooter, BlobFileHeader, BlobFileReader, BlobFileScan, BlobIndex, BlobRequest,
    RecordHeader, get_together,
};

use super::input::{Input, file_of, ok};
use super::mend;

/// Decodes a reference; encoded again it must be the same.
pub fn blob_index(data: &[u8]) {
    let Some(index) = ok(BlobIndex::decode(data)) else { return };
    index.record_bytes(data.len());
    let mut encoded = Vec::new();
    index.encode(&mut encoded);
    assert_eq!(BlobIndex::decode(&encoded).expect("what was encoded"), index);
}

/// Scans and reads a blob file, as it is and with its checksums put right: a hostile reference,
/// then the file.
pub fn blob_file(data: &[u8]) {
    let mut input = Input::new(data);
    let hostile = BlobIndex {
        file: FileNumber(7),
        offset: u64::from(input.u16()),
        size: if input.u8() & 1 == 0 { u64::from(input.u16()) } else { input.u64() },
        compression: input.u8(),
    };
    let key = input.piece();
    let raw = input.rest();
    ok(BlobFileHeader::decode(raw));
    ok(RecordHeader::decode(raw));
    ok(BlobFileFooter::decode(raw));
    let mut mended = raw.to_vec();
    mend::blob_file(&mut mended);
    for bytes in [raw, &mended] {
        scan_and_read(bytes, key, hostile);
    }
}

fn scan_and_read(bytes: &[u8], key: &[u8], hostile: BlobIndex) {
    let Some(mut scan) = ok(BlobFileScan::new(file_of(bytes))) else { return };
    let family = scan.header().column_family;
    let mut records = Vec::new();
    for _ in 0..=bytes.len() {
        let Some(record) = scan.next() else { break };
        let Some(record) = ok(record) else { continue };
        assert!(record.offset + record.size() <= bytes.len() as u64);
        ok(scan.value(&record));
        records.push(record);
    }
    assert!(scan.next().is_none(), "a scan ends");
    let readers = [
        BlobFileReader::open(file_of(bytes), family),
        BlobFileReader::open_unsealed(file_of(bytes), family),
    ];
    ok(BlobFileReader::open(file_of(bytes), ColumnFamilyId(family.0.wrapping_add(1))));
    for reader in readers {
        let Some(reader) = ok(reader) else { continue };
        for verify in [true, false] {
            ok(reader.get(key, &hostile, verify));
            let indexes: Vec<_> = records.iter().map(|record| record.index(hostile.file)).collect();
            let requests: Vec<_> = records
                .iter()
                .zip(&indexes)
                .map(|(record, index)| BlobRequest {
                    reader: &reader,
                    user_key: &record.key,
                    index: *index,
                })
                .collect();
            for (record, (request, joint)) in
                records.iter().zip(requests.iter().zip(get_together(&requests, verify).0))
            {
                let single = ok(reader.get(request.user_key, &request.index, verify));
                let joint = ok(joint);
                let sound = ok(scan.value(record));
                assert_eq!(
                    single.map(|value| value.into_bytes()),
                    joint.map(|value| value.into_bytes())
                );
                if let (Some(value), true) = (sound, verify) {
                    ok(reader.get_range(
                        request.user_key,
                        &request.index,
                        0..value.len() as u64 / 2,
                    ));
                }
            }
        }
        ok(reader.get_range(key, &hostile, hostile.offset..hostile.size));
        ok(reader.get_verified_range(key, &hostile, hostile.offset..hostile.size, None));
    }
}
