//! The bytes of calls, and what is recorded of them.

use std::path::Path;
use std::sync::Arc;

use super::{IoCall, IoTrace, IoTraceFilter, IoTraceHeader, IoTraceOptions, put_call};
use crate::base::{Code, Error, Result};
use crate::env::{CallRecorder, Env, Extent, FileCall, FileCallKind};
use crate::trace::{BlockAccess, RawRecord, TraceType, TraceWriter};

fn call<'a>(kind: FileCallKind, extent: Extent, error: Option<&'a Error>) -> FileCall<'a> {
    FileCall { kind, path: Path::new("/db/000012.sst"), nanos: 1000, extent, error }
}

fn encoded(call: &FileCall<'_>) -> Vec<u8> {
    let mut record = b"of before".to_vec();
    put_call(&mut record, 5, call).unwrap();
    record
}

/// What RocksDB's `IOTraceWriter` writes.
#[test]
fn calls_have_the_bytes_of_rocksdb() {
    let read = encoded(&call(FileCallKind::Read, Extent::bytes(300, 16), None));
    let expected = [
        // Frame; length and offset; name; time that it took; status; file.
        &[5, 0, 0, 0, 0, 0, 0, 0, 12, 4 + 59, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0][..],
        b"\x04Read\xe8\x03\0\0\0\0\0\0\x02OK\x0a000012.sst",
        // Length, offset, no details.
        &[16, 0, 0, 0, 0, 0, 0, 0, 44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    let mut expected = expected.concat();
    expected[9] = (expected.len() - 13) as u8;
    assert_eq!(read, expected);
    let decoded = IoCall::decode(&RawRecord::parse(&read).unwrap()).unwrap();
    let expected = IoCall {
        time_nanos: 5,
        operation: "Read".to_string(),
        latency_nanos: 1000,
        status: "OK".to_string(),
        file_name: "000012.sst".to_string(),
        file_size: None,
        length: Some(16),
        offset: Some(300),
        request_id: None,
    };
    assert!(decoded.is_ok());
    assert_eq!(decoded, expected);
}

/// Records of a trace that RocksDB 11.8 wrote: its header, a write and a read.
#[test]
fn a_trace_of_rocksdb_is_read() {
    let records: [&[u8]; 3] = [
        b"X\xfeA6\x83a\x06\0\x01\x19\0\0\0\x10feedcafedeadbeef\x0b\0\0\0\x08\0\0\0",
        b"\xedy\xfd\xb5\x17\x03\0\0\x0c5\0\0\0\x02\0\0\0\0\0\0\0\x06Append\xf4\x17\0\0\0\0\0\0\
          \x02OK\x0a000004.log\x1f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\x0b\x1f\x87\xb6\x17\x03\0\0\x0c;\0\0\0\x06\0\0\0\0\0\0\0\x04Read~\x1a\0\0\0\0\0\0\
          \x02OK\x0a000009.sst5\0\0\0\0\0\0\0\xda\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ];
    let [header, write, read] = records.map(|record| RawRecord::parse(record).unwrap());
    let header = IoTraceHeader::decode(&header).unwrap();
    assert_eq!(header, IoTraceHeader { time_us: 1_796_066_039_168_600, rocksdb_version: (11, 8) });
    let (write, read) = (IoCall::decode(&write).unwrap(), IoCall::decode(&read).unwrap());
    assert_eq!((&*write.operation, &*write.file_name), ("Append", "000004.log"));
    assert_eq!((write.latency_nanos, write.length, write.offset), (6132, Some(31), None));
    assert_eq!((&*read.operation, read.length, read.offset), ("Read", Some(53), Some(1242)));
}

#[test]
fn what_is_encoded_is_decoded() {
    let error = Error::corruption("damaged");
    for (extent, error) in [
        (Extent::NONE, None),
        (Extent::size(Some(u64::MAX)), None),
        (Extent::length(7), Some(&error)),
        (Extent::bytes(1, 2), Some(&error)),
    ] {
        let record = encoded(&call(FileCallKind::FileSize, extent, error));
        let decoded = IoCall::decode(&RawRecord::parse(&record).unwrap()).unwrap();
        let numbers = (decoded.file_size, decoded.length, decoded.offset);
        assert_eq!(numbers, (extent.size, extent.length, extent.offset));
        assert_eq!(decoded.is_ok(), error.is_none());
        let status = error.map_or_else(|| "OK".to_string(), ToString::to_string);
        assert_eq!(decoded.status, status);
    }
}

#[test]
fn bad_records_are_refused() {
    let record = encoded(&call(FileCallKind::Read, Extent::bytes(300, 16), None));
    let record = RawRecord::parse(&record).unwrap();
    let code = |payload: Vec<u8>, kind| {
        IoCall::decode(&RawRecord { time_us: 1, kind, payload }).unwrap_err().code()
    };
    let io = TraceType::Io as u8;
    for length in 0..record.payload.len() {
        assert_eq!(code(record.payload[..length].to_vec(), io), Code::Corruption, "{length}");
    }
    assert_eq!(code([&record.payload[..], b"x"].concat(), io), Code::Corruption);
    for kind in [0, 1, 3, 9, 13, 255] {
        assert_eq!(code(record.payload.clone(), kind), Code::Corruption);
    }
    // Numbers and details that nobody knows.
    let mut unknown = record.payload.clone();
    unknown[0] |= 8;
    assert_eq!(code(unknown, io), Code::NotSupported);
    let mut unknown = record.payload.clone();
    let details = unknown.len() - 8;
    unknown[details] = 2;
    assert_eq!(code(unknown, io), Code::NotSupported);
    // The number of a request, which only programs of RocksDB give.
    let mut request = record.payload.clone();
    request[details] = 1;
    assert_eq!(code(request.clone(), io), Code::Corruption);
    request.extend_from_slice(b"\x02r7");
    let call = IoCall::decode(&RawRecord { time_us: 1, kind: io, payload: request }).unwrap();
    assert_eq!(call.request_id.as_deref(), Some("r7"));
    let header = RawRecord { time_us: 1, kind: 1, payload: b"feedcafedeadbeef".to_vec() };
    assert_eq!(IoTraceHeader::decode(&header).unwrap_err().code(), Code::Corruption);
    assert!(BlockAccess::check_header(&header).is_err());
}

#[derive(Clone, Default)]
struct InMemory(Arc<crate::base::sync::Mutex<Vec<Vec<u8>>>>, Option<u64>);

impl TraceWriter for InMemory {
    fn write(&mut self, record: &[u8]) -> Result<()> {
        if self.1.is_some_and(|room| self.size() + record.len() as u64 > room) {
            return Err(Error::invalid_argument("there is no room"));
        }
        self.0.lock().push(record.to_vec());
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }

    fn size(&self) -> u64 {
        self.0.lock().iter().map(|record| record.len() as u64).sum()
    }
}

#[test]
fn calls_are_filtered_then_sampled_until_the_trace_is_full() {
    let trace = IoTrace::default();
    let clock = Env::memory().clock;
    let add = |kind, offset| trace.record(&call(kind, Extent::bytes(offset, 1), None));
    add(FileCallKind::Read, 0);
    let filter = IoTraceFilter { writes: true, others: true, ..IoTraceFilter::default() };
    let options = IoTraceOptions { sampling_frequency: 3, filter, ..IoTraceOptions::default() };
    let writer = InMemory::default();
    trace.start(&clock, &options, Box::new(writer.clone())).unwrap();
    let again = trace.start(&clock, &options, Box::new(InMemory::default())).unwrap_err();
    assert_eq!(again.code(), Code::Busy);
    for offset in 0..9 {
        add(FileCallKind::MappedWrite, 100 + offset);
        add(FileCallKind::Lock, 200 + offset);
        add(if offset % 2 == 0 { FileCallKind::Read } else { FileCallKind::Sync }, offset);
    }
    let summary = trace.end().unwrap().unwrap();
    assert_eq!((summary.calls, summary.is_full), (3, false));
    assert_eq!(summary.bytes, writer.size());
    assert_eq!(trace.end().unwrap(), None);
    let records = writer.0.lock();
    let header = IoTraceHeader::decode(&RawRecord::parse(&records[0]).unwrap()).unwrap();
    assert_eq!(header.rocksdb_version, (11, 9));
    let offsets = records[1..]
        .iter()
        .map(|record| IoCall::decode(&RawRecord::parse(record).unwrap()).unwrap().offset.unwrap());
    assert_eq!(offsets.collect::<Vec<_>>(), [2, 5, 8]);

    let options = IoTraceOptions { max_trace_file_size: 300, ..IoTraceOptions::default() };
    trace.start(&clock, &options, Box::<InMemory>::default()).unwrap();
    (0..100).for_each(|offset| add(FileCallKind::Read, offset));
    assert!(!trace.is_on(), "nothing finds room any more");
    let summary = trace.end().unwrap().unwrap();
    assert!(summary.is_full && summary.calls < 10, "{summary:?}");

    // A writer that fails: what came before it is there, and the end says what was wrong.
    let writer = InMemory(Arc::default(), Some(200));
    trace.start(&clock, &IoTraceOptions::default(), Box::new(writer.clone())).unwrap();
    (0..100).for_each(|offset| add(FileCallKind::Read, offset));
    assert!(!trace.is_on() && writer.0.lock().len() > 1);
    assert_eq!(trace.end().unwrap_err().code(), Code::InvalidArgument);
    let never = IoTraceOptions { sampling_frequency: 0, ..IoTraceOptions::default() };
    assert!(trace.start(&clock, &never, Box::<InMemory>::default()).is_err());
}
