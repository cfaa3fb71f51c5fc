//! Accounts and a journal of what was booked: two column families that change together.
//!
//! 1. Each family has options of its own: balances are sums, made by a merge operator; journal
//!    entries are found by their number.
//! 2. A write batch books in both, or in none: also where the power fails.
//! 3. A snapshot shows both as they were at one moment, whoever goes on writing.
//! 4. A cursor finds the newest entries, backwards.
//!
//! ```sh
//! cargo run --example column_families -- /tmp/column_families
//! ```

use flagstone::base::{Error, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::{ColumnFamilyOptions, Options, ReadOptions, WriteOptions};

const ACCOUNTS: &str = "accounts";
const JOURNAL: &str = "journal";

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "column_families.db".to_string());
    run(&path)
}

/// Books some payments, and looks at them in a database that was opened again.
///
/// # Errors
/// Those of the database.
pub fn run(path: &str) -> Result<()> {
    let bank = Bank::open(path)?;
    let first = bank.next_entry()?;
    for (number, (payer, payee, cents)) in
        (first..).zip([("tom", "kit", 250), ("kit", "max", 100), ("tom", "max", 5)])
    {
        bank.pay(number, payer, payee, cents)?;
    }
    bank.db.close()?;

    let bank = Bank::open(path)?;
    // What is written from here on the snapshot does not show.
    let then = ReadOptions { snapshot: Some(bank.db.snapshot()), ..ReadOptions::default() };
    bank.pay(bank.next_entry()?, "max", "tom", 1000)?;
    println!("before the last payment: {:?}", bank.balances(&then)?);
    println!("after it: {:?}", bank.balances(&ReadOptions::default())?);
    for entry in bank.newest(2)? {
        println!("{entry}");
    }
    let sum: i64 = bank.balances(&then)?.iter().map(|(_, cents)| cents).sum();
    assert_eq!(sum, 0, "nothing is paid that nobody gets");
    bank.db.close()
}

struct Bank {
    db: Db,
    accounts: ColumnFamily,
    journal: ColumnFamily,
}

impl Bank {
    /// Opens the database with both families, which are made if they are not there.
    fn open(path: &str) -> Result<Self> {
        let mut options = Options::default();
        options.create_if_missing = true;
        options.create_missing_column_families = true;
        let mut accounts = ColumnFamilyOptions::default();
        // Adds what is merged to it, modulo 2^64: so do negative numbers.
        accounts.set("merge_operator", "uint64add")?;
        let mut journal = ColumnFamilyOptions::default();
        journal.set("compression", "kLZ4Compression")?;
        // `default` is always there, and every family of a database is to be named.
        let families =
            [("default", ColumnFamilyOptions::default()), (ACCOUNTS, accounts), (JOURNAL, journal)];
        let db = Db::open_with_families(path, &options, &families)?;
        let family = |name| db.column_family(name).ok_or_else(|| Error::not_found(name));
        let (accounts, journal) = (family(ACCOUNTS)?, family(JOURNAL)?);
        Ok(Self { db, accounts, journal })
    }

    /// Books a payment in both families at once; it is on the device when this returns.
    fn pay(&self, number: u64, payer: &str, payee: &str, cents: i64) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.merge_cf(&self.accounts, payer.as_bytes(), (-cents).to_le_bytes())?;
        batch.merge_cf(&self.accounts, payee.as_bytes(), cents.to_le_bytes())?;
        // Big-endian, so that the order of bytes is that of numbers.
        let entry = format!("{payer} pays {payee} {cents} cents");
        batch.put_cf(&self.journal, number.to_be_bytes(), entry.as_bytes())?;
        self.db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch)
    }

    /// The number behind the last one in the journal.
    fn next_entry(&self) -> Result<u64> {
        let mut cursor = self.db.iter_cf(&self.journal, &ReadOptions::default())?;
        cursor.seek_to_last();
        let last = cursor.valid().then(|| number_of(cursor.key()));
        cursor.status()?;
        Ok(last.map_or(1, |last| last + 1))
    }

    fn balances(&self, options: &ReadOptions) -> Result<Vec<(String, i64)>> {
        let mut cursor = self.db.iter_cf(&self.accounts, options)?;
        let mut balances = Vec::new();
        cursor.seek_to_first();
        while cursor.valid() {
            let name = String::from_utf8_lossy(cursor.key()).into_owned();
            let cents = cursor
                .value()?
                .try_into()
                .map_err(|_| Error::corruption("a balance has 8 bytes"))?;
            balances.push((name, i64::from_le_bytes(cents)));
            cursor.next();
        }
        // Whether the last one was reached, or an error.
        cursor.status()?;
        Ok(balances)
    }

    /// The last entries of the journal, the newest first.
    fn newest(&self, count: usize) -> Result<Vec<String>> {
        let mut cursor = self.db.iter_cf(&self.journal, &ReadOptions::default())?;
        let mut entries = Vec::new();
        cursor.seek_to_last();
        while cursor.valid() && entries.len() < count {
            let number = number_of(cursor.key());
            entries.push(format!("{number}: {}", String::from_utf8_lossy(cursor.value()?)));
            cursor.prev();
        }
        cursor.status()?;
        Ok(entries)
    }
}

fn number_of(key: &[u8]) -> u64 {
    key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
