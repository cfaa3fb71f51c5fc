//! What a worker is to do.

use super::format::{self, Fields, Token, put_flag};
use super::plan::OrderedPlan;
use crate::base::coding::{put_fixed64, put_lps, put_varint32, put_varint64};
use crate::base::{ColumnFamilyId, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber};

const MAGIC: &[u8; 8] = b"flagordr";

/// A compaction as a database orders it from a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionOrder {
    /// Ties the result to the order.
    pub token: Token,
    /// The identity of the database.
    pub db_id: String,
    /// The family.
    pub family: ColumnFamilyId,
    /// Its name.
    pub family_name: String,
    /// The MANIFEST that has the tables that are read, and how many bytes of it.
    pub manifest: (FileNumber, u64),
    /// The first of the numbers that are reserved for the files that are written.
    pub first_number: FileNumber,
    /// How many are reserved.
    pub numbers: u64,
    /// The options in force, as the text of an OPTIONS file.
    pub options: String,
    /// What is read, and where the outputs go.
    pub plan: OrderedPlan,
    /// What must stay visible, ascending.
    pub snapshots: Vec<SequenceNumber>,
    /// Up to which sequence number tables have all writes of the family.
    pub flushed_until: SequenceNumber,
    /// Whether a caller asked for the compaction.
    pub is_manual: bool,
    /// Whether blobs are collected, and up to which age, if not as the options say.
    pub blob_gc: (Option<bool>, Option<f64>),
    /// How many parts there may be, if not as the options say.
    pub max_subcompactions: Option<u32>,
}

impl CompactionOrder {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = format::begin(MAGIC);
        out.extend_from_slice(&self.token);
        put_lps(&mut out, self.db_id.as_bytes());
        put_varint32(&mut out, self.family.0);
        put_lps(&mut out, self.family_name.as_bytes());
        put_varint64(&mut out, self.manifest.0.0);
        put_varint64(&mut out, self.manifest.1);
        put_varint64(&mut out, self.first_number.0);
        put_varint64(&mut out, self.numbers);
        put_lps(&mut out, self.options.as_bytes());
        self.plan.encode(&mut out);
        put_varint32(&mut out, self.snapshots.len() as u32);
        let mut before = 0;
        for snapshot in &self.snapshots {
            put_varint64(&mut out, snapshot - before);
            before = *snapshot;
        }
        put_varint64(&mut out, self.flushed_until);
        put_flag(&mut out, self.is_manual);
        let (blob_gc, age_cutoff) = self.blob_gc;
        put_flag(&mut out, blob_gc.is_some());
        blob_gc.into_iter().for_each(|on| put_flag(&mut out, on));
        put_flag(&mut out, age_cutoff.is_some());
        age_cutoff.into_iter().for_each(|cutoff| put_fixed64(&mut out, cutoff.to_bits()));
        put_flag(&mut out, self.max_subcompactions.is_some());
        self.max_subcompactions.into_iter().for_each(|parts| put_varint32(&mut out, parts));
        format::end(out)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for a message of another release.
    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut fields = Fields::of("an order of a compaction", MAGIC, message)?;
        let order = Self {
            token: fields.token()?,
            db_id: fields.text("database id")?,
            family: ColumnFamilyId(fields.v32("family")?),
            family_name: fields.text("family name")?,
            manifest: (fields.number("MANIFEST")?, fields.v64("MANIFEST")?),
            first_number: fields.number("first number")?,
            numbers: fields.v64("reserved numbers")?,
            options: fields.text("options")?,
            plan: OrderedPlan::decode(&mut fields)?,
            snapshots: snapshots(&mut fields)?,
            flushed_until: fields.v64("sequence number")?,
            is_manual: fields.flag("manual")?,
            blob_gc: (
                fields.option("blob collection", |fields| fields.flag("blob collection"))?,
                fields
                    .option("age cutoff", |fields| fields.fixed64("age cutoff"))?
                    .map(f64::from_bits),
            ),
            max_subcompactions: fields.option("parts", |fields| fields.v32("parts"))?,
        };
        if order.first_number.0.checked_add(order.numbers).is_none() {
            return Err(fields.fault("reserved numbers"));
        }
        fields.end()?;
        Ok(order)
    }

    /// Whether a number is one of those reserved.
    pub fn reserves(&self, number: FileNumber) -> bool {
        (self.first_number.0..self.first_number.0 + self.numbers).contains(&number.0)
    }
}

fn snapshots(fields: &mut Fields<'_>) -> Result<Vec<SequenceNumber>> {
    let mut before: Option<SequenceNumber> = None;
    fields.list("snapshots", |fields| {
        let step = fields.v64("snapshot")?;
        let next = match before {
            None => Some(step),
            Some(before) => before.checked_add(step).filter(|_| step > 0),
        };
        before = next.filter(|sequence| *sequence <= MAX_SEQUENCE_NUMBER);
        before.ok_or_else(|| fields.fault("snapshot"))
    })
}
