use std::sync::Arc;

use super::record::Encoder;
use super::*;
use crate::base::{Code, ColumnFamilyId, Error, Result};
use crate::batch::WriteBatch;
use crate::env::Env;

/// Takes records into memory, as many bytes as there is room for.
struct InMemory {
    records: Arc<crate::base::sync::Mutex<Vec<Vec<u8>>>>,
    size: u64,
    room: u64,
}

impl TraceWriter for InMemory {
    fn write(&mut self, record: &[u8]) -> Result<()> {
        if self.size + record.len() as u64 > self.room {
            return Err(Error::invalid_argument("no room"));
        }
        self.size += record.len() as u64;
        self.records.lock().push(record.to_vec());
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }

    fn size(&self) -> u64 {
        self.size
    }
}

type Records = Arc<crate::base::sync::Mutex<Vec<Vec<u8>>>>;

fn in_memory(room: u64) -> (Box<InMemory>, Records) {
    let records = Records::default();
    (Box::new(InMemory { records: records.clone(), size: 0, room }), records)
}

const DEFAULT: ColumnFamilyId = ColumnFamilyId(0);
const OTHER: ColumnFamilyId = ColumnFamilyId(0x0102);

/// What RocksDB writes for each kind of operation, by its `Tracer`.
#[test]
fn records_have_the_bytes_of_rocksdb() {
    let mut encoder = Encoder::default();
    let hex = |bytes: &[u8]| -> String {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    };
    let header = encoder.frame(0x0706_0504_0302_0100, TraceType::Begin).unwrap();
    let text = "feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 11.9\t\
                Format: Timestamp OpType Payload\n";
    assert_eq!(header[..13], [0, 1, 2, 3, 4, 5, 6, 7, 1, text.len() as u8, 0, 0, 0]);
    assert_eq!(&header[13..], text.as_bytes());
    let end = encoder.frame(1, TraceType::End).unwrap();
    assert_eq!(hex(end), "01 00 00 00 00 00 00 00 02 00 00 00 00");

    let mut batch = WriteBatch::new();
    batch.put("k", "v").unwrap();
    batch.set_sequence(77);
    // Map, length, then the batch: sequence number, count, tag of a put, key, value.
    assert_eq!(
        hex(encoder.write(1, batch.data()).unwrap()),
        "01 00 00 00 00 00 00 00 03 1a 00 00 00 \
         02 00 00 00 00 00 00 00 11 \
         00 00 00 00 00 00 00 00 01 00 00 00 01 01 6b 01 76"
    );
    assert_eq!(
        hex(encoder.get(1, OTHER, b"key").unwrap()),
        "01 00 00 00 00 00 00 00 04 10 00 00 00 \
         0c 00 00 00 00 00 00 00 02 01 00 00 03 6b 65 79"
    );
    let seek = encoder.seek(1, TraceType::Seek, (OTHER, b"key"), (b"", b"")).unwrap();
    assert_eq!(
        hex(seek),
        "01 00 00 00 00 00 00 00 05 10 00 00 00 \
         30 00 00 00 00 00 00 00 02 01 00 00 03 6b 65 79"
    );
    let seek = encoder.seek(1, TraceType::SeekForPrev, (OTHER, b"key"), (b"a", b"z")).unwrap();
    assert_eq!(
        hex(seek),
        "01 00 00 00 00 00 00 00 06 14 00 00 00 \
         f0 00 00 00 00 00 00 00 02 01 00 00 03 6b 65 79 01 61 01 7a"
    );
    let many = encoder.multi_get(1, &[(DEFAULT, b"a"), (OTHER, b"bc")]).unwrap();
    assert_eq!(
        hex(many),
        "01 00 00 00 00 00 00 00 0d 1b 00 00 00 \
         00 07 00 00 00 00 00 00 02 00 00 00 \
         08 00 00 00 00 02 01 00 00 \
         05 01 61 02 62 63"
    );
}

/// What RocksDB's `BlockCacheTraceWriterImpl` writes.
#[test]
fn accesses_of_the_block_cache_have_the_bytes_of_rocksdb() {
    let mut trace = Vec::new();
    put_header(&mut trace, 1);
    let header = [
        &[1, 0, 0, 0, 0, 0, 0, 0, 1, 25, 0, 0, 0, 16][..],
        b"feedcafedeadbeef",
        &[11, 0, 0, 0, 9, 0, 0, 0],
    ];
    assert_eq!(trace, header.concat());
    let record = RawRecord::parse(&trace).unwrap();
    assert!(BlockAccess::begins_trace(&record));
    BlockAccess::check_header(&record).unwrap();
    trace.clear();
    put_access(&mut trace, (2, TraceType::FilterBlock), (3, 300), 4096, true);
    let access = [
        // Frame; the block's key: file 3, offset 300; its size.
        &[2, 0, 0, 0, 0, 0, 0, 0, 8, 55, 0, 0, 0, 3, 3, 0xac, 2, 0, 16, 0, 0, 0, 0, 0, 0][..],
        // Family, its name, level, table, caller, a hit, inserted.
        &[0, 0, 0, 0, 0, 0, 0, 0, 19],
        b"UnknownColumnFamily",
        &[0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 14, 1, 0],
    ];
    assert_eq!(trace, access.concat());
    let record = RawRecord::parse(&trace).unwrap();
    let expected = BlockAccess {
        time_us: 2,
        kind: 8,
        block_key: vec![3, 0xac, 2],
        size: 4096,
        is_hit: true,
        is_not_inserted: false,
    };
    assert_eq!(BlockAccess::decode(&record).unwrap(), expected);
    assert!(BlockAccess::check_header(&record).is_err() && !BlockAccess::begins_trace(&record));
}

/// A lookup's access of a data block has more fields, which tell what was looked up.
#[test]
fn accesses_by_lookups_are_read_and_cut_off_ones_refused() {
    let of = |kind, caller| {
        let mut payload = vec![1, b'k'];
        payload.extend_from_slice(&[0; 8 + 8]);
        payload.extend_from_slice(&[1, b'f', 0, 0, 0, 0]);
        payload.extend_from_slice(&[0; 8]);
        payload.extend_from_slice(&[caller, 0, 1]);
        payload.extend_from_slice(&[0; 8]);
        payload.extend_from_slice(&[1, 3, b'k', b'e', b'y']);
        if kind == TraceType::DataBlock as u8 {
            payload.extend_from_slice(&[0; 17]);
        }
        RawRecord { time_us: 1, kind, payload }
    };
    for kind in [7, 9] {
        let record = of(kind, 1);
        let access = BlockAccess::decode(&record).unwrap();
        assert_eq!((access.block_key, access.is_not_inserted), (b"k".to_vec(), true));
        for length in 0..record.payload.len() {
            let cut = RawRecord { payload: record.payload[..length].to_vec(), ..record.clone() };
            assert_eq!(BlockAccess::decode(&cut).unwrap_err().code(), Code::Corruption);
        }
        // With fields that no scan has.
        assert!(BlockAccess::decode(&of(kind, 3)).is_err());
    }
    for kind in [1, 2, 3, 6, 12, 255] {
        assert_eq!(BlockAccess::decode(&of(kind, 1)).unwrap_err().code(), Code::Corruption);
    }
}

fn decoded(record: &[u8]) -> Result<TraceRecord> {
    RawRecord::parse(record)?.operation(TraceVersion::WRITTEN)
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut encoder = Encoder::default();
    let batch = b"\0\0\0\0\0\0\0\0rest of a batch".to_vec();
    assert_eq!(
        decoded(encoder.write(1, &batch).unwrap()).unwrap(),
        TraceRecord::Write { batch: batch.clone() }
    );
    assert_eq!(
        decoded(encoder.get(1, OTHER, b"").unwrap()).unwrap(),
        TraceRecord::Get { family: OTHER, key: Vec::new() }
    );
    for (lower, upper) in [("", ""), ("a", ""), ("", "z"), ("a", "z")] {
        let bounds = (lower.as_bytes(), upper.as_bytes());
        for (kind, for_prev) in [(TraceType::Seek, false), (TraceType::SeekForPrev, true)] {
            let record = encoder.seek(1, kind, (OTHER, b"key"), bounds).unwrap();
            let expected = TraceRecord::Seek {
                family: OTHER,
                key: b"key".to_vec(),
                for_prev,
                lower: lower.into(),
                upper: upper.into(),
            };
            assert_eq!(decoded(record).unwrap(), expected);
        }
    }
    let many = decoded(encoder.multi_get(1, &[(DEFAULT, b"a"), (OTHER, b"")]).unwrap()).unwrap();
    let expected = vec![(DEFAULT, b"a".to_vec()), (OTHER, Vec::new())];
    assert_eq!(many, TraceRecord::MultiGet { keys: expected });
}

#[test]
fn records_of_the_version_before_maps_are_read() {
    let header = |version: &str| {
        let text = format!("feedcafedeadbeef\tTrace Version: {version}\tRocksDB Version: 6.3\t\n");
        RawRecord { time_us: 5, kind: 1, payload: text.into_bytes() }.header()
    };
    let version = header("0.1").unwrap().version;
    let read = |kind, payload: &[u8]| {
        RawRecord { time_us: 1, kind, payload: payload.to_vec() }.operation(version)
    };
    assert_eq!(read(3, b"batch").unwrap(), TraceRecord::Write { batch: b"batch".to_vec() });
    let get = TraceRecord::Get { family: ColumnFamilyId(1), key: b"k".to_vec() };
    assert_eq!(read(4, b"\x01\0\0\0\x01k").unwrap(), get);
    let seek = read(5, b"\x01\0\0\0\x01k").unwrap();
    assert!(matches!(seek, TraceRecord::Seek { lower, .. } if lower.is_empty()));
    assert_eq!(read(13, b"").unwrap_err().code(), Code::NotSupported);
    assert_eq!(header("0.3").unwrap_err().code(), Code::NotSupported);
    for version in ["", "2", "0.2.1", "0.x", "-0.2", "99999999999.9"] {
        assert_eq!(header(version).unwrap_err().code(), Code::Corruption, "{version:?}");
    }
}

#[test]
fn bad_records_are_refused() {
    let mut encoder = Encoder::default();
    let many = encoder.multi_get(1, &[(DEFAULT, b"a"), (OTHER, b"bc")]).unwrap().to_vec();
    let seek = encoder.seek(1, TraceType::Seek, (OTHER, b"key"), (b"a", b"z")).unwrap().to_vec();
    for record in [many, seek] {
        for length in 0..record.len() {
            assert_eq!(RawRecord::parse(&record[..length]).unwrap_err().code(), Code::Corruption);
            if length >= RECORD_HEADER_SIZE {
                let payload = record[RECORD_HEADER_SIZE..length].to_vec();
                let cut = RawRecord { time_us: 1, kind: record[8], payload };
                let error = cut.operation(TraceVersion::WRITTEN).unwrap_err();
                assert_eq!(error.code(), Code::Corruption, "{length}");
            }
        }
        let longer = [&record[RECORD_HEADER_SIZE..], b"x"].concat();
        let longer = RawRecord { time_us: 1, kind: record[8], payload: longer };
        let error = longer.operation(TraceVersion::WRITTEN).unwrap_err();
        assert_eq!(error.code(), Code::Corruption);
    }
    let of = |kind, payload: &[u8]| {
        RawRecord { time_us: 1, kind, payload: payload.to_vec() }.operation(TraceVersion::WRITTEN)
    };
    for kind in [0, 1, 2, 7, 12, 14, 255] {
        assert_eq!(of(kind, b"").unwrap_err().code(), Code::NotSupported, "{kind}");
    }
    // A field of another kind of record, and one that nobody knows.
    let unknown = of(4, b"\x0c\x02\0\0\0\0\0\0\0\0\0\0\0").unwrap_err();
    assert_eq!(unknown.code(), Code::NotSupported);
    let lacking = of(4, b"\x04\0\0\0\0\0\0\0\0\0\0\0").unwrap_err();
    assert!(lacking.to_string().contains("lacks field 3"), "{lacking}");
    let none = of(13, b"\0\x07\0\0\0\0\0\0\0\0\0\0\0\0").unwrap_err();
    assert!(none.to_string().contains("no keys"), "{none}");
    // So many keys as there is no memory for.
    let many = of(13, b"\0\x07\0\0\0\0\0\0\xff\xff\xff\xff\x04\0\0\0\0\x01\0").unwrap_err();
    assert!(many.to_string().contains("4294967295 keys"), "{many}");
    for payload in ["", "feedcafedeadbeef", "feedcafedeadbee0\tTrace Version: 0.2\t"] {
        let header = RawRecord { time_us: 1, kind: 1, payload: payload.into() }.header();
        assert_eq!(header.unwrap_err().code(), Code::Corruption, "{payload:?}");
    }
}

#[test]
fn files_hand_out_what_was_written_and_say_where_they_are_cut_off() {
    let env = Env::memory();
    env.fs.create_directory("/t".as_ref()).unwrap();
    // A trace that does not begin leaves no file behind.
    drop(FileTraceWriter::create(&env, "/t/trace").unwrap());
    let mut writer = FileTraceWriter::create(&env, "/t/trace").unwrap();
    let mut encoder = Encoder::default();
    let long = vec![b'x'; 200_000];
    let mut records = vec![encoder.frame(1, TraceType::Begin).unwrap().to_vec()];
    records.push(encoder.get(2, DEFAULT, &long).unwrap().to_vec());
    records.extend((0..5000).map(|n| encoder.get(n, DEFAULT, b"key").unwrap().to_vec()));
    for record in &records {
        writer.write(record).unwrap();
    }
    let size: usize = records.iter().map(Vec::len).sum();
    assert_eq!(writer.size(), size as u64);
    writer.close().unwrap();
    let again = FileTraceWriter::create(&env, "/t/trace").err().unwrap();
    assert_eq!(again.code(), Code::InvalidArgument);

    let mut reader = FileTraceReader::open(&env, "/t/trace").unwrap();
    for _ in 0..2 {
        for record in &records {
            assert_eq!(reader.read().unwrap().as_ref(), Some(record));
        }
        assert_eq!(reader.read().unwrap(), None);
        reader.reset().unwrap();
    }
    for cut in [1, 12, 13, 40, 1000, size as u64 - 1] {
        let file = env.fs.reopen_writable("/t/trace".as_ref()).unwrap();
        let cut = size as u64 - cut;
        file.truncate(cut).unwrap();
        let mut reader = FileTraceReader::open(&env, "/t/trace").unwrap();
        let end = loop {
            let start = reader.offset();
            match reader.read() {
                Ok(Some(_)) => {}
                end => break (start, end),
            }
        };
        match end {
            (start, Ok(None)) => assert_eq!(start, cut),
            (_, Err(error)) => assert_eq!(error.code(), Code::Corruption),
            other => panic!("{other:?}"),
        }
        // Whole again, with zeros: records of no bytes.
        file.truncate(size as u64).unwrap();
    }
    let empty = env.fs.create_writable("/t/empty".as_ref(), crate::env::IoMode::Buffered).unwrap();
    drop(empty);
    assert_eq!(FileTraceReader::open(&env, "/t/empty").unwrap().read().unwrap(), None);
}

#[test]
fn operations_are_filtered_then_sampled_until_the_trace_is_full() {
    let trace = OperationTrace::default();
    let clock = Env::memory().clock;
    let filter = TraceFilter { writes: true, ..TraceFilter::default() };
    assert_eq!(filter, TraceFilter::from_bits(2));
    let options =
        OperationTraceOptions { sampling_frequency: 3, filter, ..OperationTraceOptions::default() };
    let (writer, records) = in_memory(u64::MAX);
    trace.start(&clock, &options, writer).unwrap();
    let (other, _) = in_memory(u64::MAX);
    assert_eq!(trace.start(&clock, &options, other).unwrap_err().code(), Code::Busy);
    for n in 0..9u8 {
        trace.write(b"filtered");
        trace.get(DEFAULT, &[n]);
    }
    let summary = trace.end().unwrap().unwrap();
    assert_eq!((summary.operations, summary.is_full), (3, false));
    assert_eq!(trace.end().unwrap(), None);
    let keys: Vec<_> = records.lock()[1..4].iter().map(|record| decoded(record).unwrap()).collect();
    let get = |n| TraceRecord::Get { family: DEFAULT, key: vec![n] };
    assert_eq!(keys, [get(2), get(5), get(8)]);

    let (writer, _) = in_memory(u64::MAX);
    let options = OperationTraceOptions { max_trace_file_size: 200, ..Default::default() };
    trace.start(&clock, &options, writer).unwrap();
    (0..100).for_each(|n| trace.get(DEFAULT, &[n]));
    assert!(!trace.is_on(), "nothing finds room any more");
    let summary = trace.end().unwrap().unwrap();
    assert!(summary.is_full && summary.operations < 10, "{summary:?}");

    // A writer that fails: what came before it is there, and the end says what was wrong.
    let (writer, records) = in_memory(150);
    trace.start(&clock, &OperationTraceOptions::default(), writer).unwrap();
    (0..100).for_each(|n| trace.get(DEFAULT, &[n]));
    assert!(!trace.is_on());
    assert_eq!(trace.end().unwrap_err().code(), Code::InvalidArgument);
    assert!(records.lock().len() < 4);
    let (writer, _) = in_memory(10);
    let refused = trace.start(&clock, &OperationTraceOptions::default(), writer).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let never = OperationTraceOptions { sampling_frequency: 0, ..Default::default() };
    let (writer, _) = in_memory(u64::MAX);
    assert!(trace.start(&clock, &never, writer).is_err());
    assert!(!trace.is_on());
}
