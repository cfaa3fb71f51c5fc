//! A bank whose money only moves: whatever a snapshot shows, the sum is the same.
//!
//! Accounts lie in two families. A transfer adds to one account and takes from another by a batch
//! of two merges, so that any thread may move any money without a look at it; balances may be less
//! than nothing.

use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::ReadOptions;

use crate::fault::{Fault, read};

/// The families that hold accounts.
pub const FAMILIES: [&str; 2] = ["bank", "vault"];

const ACCOUNTS: u64 = 40;
const OPENING_BALANCE: u64 = 1000;
const TOTAL: u64 = ACCOUNTS * OPENING_BALANCE * FAMILIES.len() as u64;

fn account(number: u64) -> Vec<u8> {
    format!("account {number:02}").into_bytes()
}

/// The families.
pub struct Bank(Vec<ColumnFamily>);

impl Bank {
    /// The bank in a database that has its families.
    pub fn of(db: &Db) -> Option<Self> {
        FAMILIES.iter().map(|name| db.column_family(name)).collect::<Option<_>>().map(Self)
    }

    /// Opens all accounts, by one batch.
    pub fn found(&self, db: &Db) -> flagstone::base::Result<()> {
        let mut batch = WriteBatch::new();
        for family in &self.0 {
            for number in 0..ACCOUNTS {
                batch.put_cf(family, account(number), OPENING_BALANCE.to_le_bytes())?;
            }
        }
        db.write(batch)?;
        // It is noted next that the bank is there.
        db.flush_wal(false)
    }

    /// The batch that moves some money.
    pub fn transfer(&self, random: &mut fastrand::Rng) -> Result<WriteBatch, Fault> {
        let amount = random.u64(1..100);
        let mut batch = WriteBatch::new();
        for change in [amount, amount.wrapping_neg()] {
            let family = &self.0[random.usize(..self.0.len())];
            let number = random.u64(..ACCOUNTS);
            read("a batch", batch.merge_cf(family, account(number), change.to_le_bytes()))?;
        }
        Ok(batch)
    }

    /// Adds everything up as of one moment, in one of three ways.
    pub fn audit(
        &self,
        db: &Db,
        random: &mut fastrand::Rng,
        must_exist: bool,
    ) -> Result<(), Fault> {
        let options = ReadOptions {
            snapshot: Some(db.snapshot()),
            total_order_seek: true,
            ..ReadOptions::default()
        };
        let way = random.u8(..3);
        let mut balances = Vec::new();
        for family in &self.0 {
            let place = || format!("an audit of family {}", family.name());
            if way == 0 {
                let accounts: Vec<_> = (0..ACCOUNTS).map(account).collect();
                for balance in db.multi_get_with(&options, family, &accounts) {
                    balances.extend(read(place(), balance)?.map(|value| value.to_vec()));
                }
                continue;
            }
            let mut iter = read(place(), db.iter_cf(family, &options))?;
            if way == 1 {
                iter.seek_to_first()
            } else {
                iter.seek_to_last()
            }
            while iter.valid() {
                balances.push(read(place(), iter.value())?.to_vec());
                if way == 1 { iter.next() } else { iter.prev() }
            }
            read(place(), iter.status())?;
        }
        let numbers: Option<Vec<u64>> = balances
            .iter()
            .map(|bytes| bytes.as_slice().try_into().ok().map(u64::from_le_bytes))
            .collect();
        let sum = numbers.map(|numbers| numbers.into_iter().fold(0, u64::wrapping_add));
        let accounts = FAMILIES.len() as u64 * ACCOUNTS;
        if sum == Some(TOTAL) && balances.len() as u64 == accounts
            || balances.is_empty() && !must_exist
        {
            return Ok(());
        }
        Err(Fault::new(
            format!(
                "an audit of the bank under a snapshot ({})",
                ["multi_get", "forwards", "backwards"][way as usize]
            ),
            format!("{accounts} accounts with {TOTAL} together"),
            format!("{} accounts with {sum:?} together", balances.len()),
        ))
    }
}
