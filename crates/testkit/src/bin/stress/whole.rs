//! Operations on the database as a whole: flushes, compactions, options, checkpoints.

use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, FlushOptions,
    Options, ReadOptions,
};

use crate::bank::Bank;
use crate::child::remove_directory;
use crate::fault::{Fault, read, written};
use crate::settings;
use crate::space::FAMILIES;
use crate::value::Place;
use crate::verify;
use crate::worker::{Outcome, Worker};

impl Worker<'_> {
    pub fn flush(&mut self) -> Outcome {
        let family = self.any_family();
        let options = FlushOptions { wait: !self.chance(4), allow_write_stall: self.random.bool() };
        written("a flush", self.life.db.flush(&self.life.families[family], &options))?;
        if options.wait {
            self.settle(family)?;
        }
        Ok(())
    }

    pub fn compact_range(&mut self) -> Outcome {
        let family = self.random.usize(..FAMILIES.len());
        let mut bound =
            || self.random.bool().then(|| self.random.usize(..self.life.config.space.keys()));
        let (mut begin, mut end) = (bound(), bound());
        if let (Some(first), Some(last)) = (begin, end)
            && first > last
        {
            (begin, end) = (end, begin);
        }
        let (begin, end) =
            (begin.map(|index| self.space().key(index)), end.map(|index| self.space().key(index)));
        let options = CompactRangeOptions {
            exclusive_manual_compaction: self.random.bool(),
            allow_write_stall: self.random.bool(),
            bottommost_level_compaction: [
                BottommostLevelCompaction::Skip,
                BottommostLevelCompaction::Force,
                BottommostLevelCompaction::ForceOptimized,
            ][self.random.usize(..3)],
            blob_garbage_collection_policy: [
                BlobGarbageCollectionPolicy::Force,
                BlobGarbageCollectionPolicy::Disable,
                BlobGarbageCollectionPolicy::UseDefault,
            ][self.random.usize(..3)],
            ..CompactRangeOptions::default()
        };
        let handle = &self.life.families[family];
        let outcome =
            self.life.db.compact_range(handle, begin.as_deref(), end.as_deref(), &options);
        written("a compaction of a range", outcome)?;
        self.settle(family)
    }

    pub fn set_options(&mut self) -> Outcome {
        let db = self.life.db;
        let outcome = if self.chance(3) {
            let changes: &[(&str, &str)] = [
                &[("max_background_jobs", "2")][..],
                &[("max_background_jobs", "4")],
                &[("max_total_wal_size", "50000")],
                &[("delayed_write_rate", "1000000")],
            ][self.random.usize(..4)];
            db.set_db_options(changes)
        } else {
            let family = self.any_family();
            let changes = settings::draw_changes(self.life.round, &mut self.random);
            db.set_options(&self.life.families[family], &changes)
        };
        match outcome {
            Err(error) if matches!(error.code(), Code::InvalidArgument | Code::NotSupported) => {
                self.life.counts.add("changes of options refused", 1);
                Ok(())
            }
            outcome => written("a change of options", outcome),
        }
    }

    pub fn sync_wal(&mut self) -> Outcome {
        written("a sync of the WAL", self.life.db.sync_wal())
    }

    /// Another handle opens the directory for reading, while this one goes on writing to it.
    pub fn read_beside(&mut self) -> Outcome {
        let mut options = self.life.chosen.options.clone();
        options.db.create_if_missing = false;
        let opened = Db::open_read_only_with_families(
            self.life.config.db(),
            &options,
            &self.life.chosen.listed(),
        );
        let db = match opened {
            Err(error) if error.code() == Code::TryAgain => return Ok(()),
            opened => read("the opening for reading beside a writer", opened)?,
        };
        let families = verify::families(&db)?;
        for (family, handle) in families.iter().enumerate() {
            let stretch = self.own_stretch(None, 50);
            let keys: Vec<_> = stretch.clone().map(|index| self.space().key(index)).collect();
            for (index, value) in
                stretch.zip(db.multi_get_with(&ReadOptions::default(), handle, &keys))
            {
                let place = Place { family, index };
                let value = match value {
                    // The writer has compacted the file away; a reader beside it must begin again.
                    Err(error) if error.is_not_found() => return Ok(()),
                    value => read(verify::name(self.space(), place), value)?,
                };
                let found = verify::check_value(
                    self.space(),
                    place,
                    "a reader beside the writer",
                    value.as_deref(),
                )?;
                // What skipped the WAL it cannot see.
                if !self.slot(place).states().iter().any(|state| state.looks_like(found)) {
                    let place = format!(
                        "a reader beside the writer, {}",
                        verify::name(self.space(), place)
                    );
                    let expected = self.slot(Place { family, index }).last();
                    return Err(Fault::new(place, expected.to_string(), found.to_string()).into());
                }
            }
        }
        self.life.counts.add("databases opened for reading beside a writer", 1);
        Ok(())
    }

    /// A checkpoint holds the thread's keys as they are, everybody's joint keys alike, and all the
    /// money.
    pub fn checkpoint(&mut self) -> Outcome {
        let target = self.life.config.checkpoint(self.thread);
        let made = written("a checkpoint", self.life.db.checkpoint(&target));
        let checked = made.and_then(|()| {
            for family in 0..FAMILIES.len() {
                self.settle(family)?;
            }
            self.check_checkpoint(&target)
        });
        let env = &self.life.chosen.options.env;
        remove_directory(env, &target)
            .map_err(|error| Fault::error("the removal of a checkpoint", error))?;
        if checked.is_ok() {
            self.life.counts.add("checkpoints opened and checked", 1);
        }
        checked
    }

    fn check_checkpoint(&mut self, target: &std::path::Path) -> Outcome {
        let mut options: Options = self.life.chosen.options.clone();
        options.db.wal_dir.clear();
        options.db.create_if_missing = false;
        let opened = if self.random.bool() {
            Db::open_read_only_with_families(target, &options, &self.life.chosen.listed())
        } else {
            self.open_checkpoint(target, &options)
        };
        let db = written("the opening of a checkpoint", opened)?;
        let space = self.space();
        let found = verify::read_all(&db, space, 0..space.keys())?;
        for (family, states) in found.iter().enumerate() {
            for index in space.of_thread(self.thread) {
                let place = Place { family, index };
                let expected = self.slot(place).last();
                if !states[index].looks_like(expected) {
                    let place = format!("a checkpoint, {}", verify::name(space, place));
                    return Err(
                        Fault::new(place, expected.to_string(), states[index].to_string()).into()
                    );
                }
            }
        }
        verify::judge_joint_keys(space, &found)?;
        let bank =
            Bank::of(&db).ok_or_else(|| Fault::new("a checkpoint", "the bank", "nothing"))?;
        bank.audit(&db, &mut self.random, true)?;
        verify::check_files(&db)?;
        written("the closing of a checkpoint", db.close())
    }

    /// Families of other threads that come and go may be in it, too.
    fn open_checkpoint(
        &mut self,
        target: &std::path::Path,
        options: &Options,
    ) -> flagstone::base::Result<Db> {
        let mut listed = self.life.chosen.listed();
        let names = Db::list_column_families(target, options)?;
        for name in &names {
            if !listed.iter().any(|(known, _)| known == name) {
                listed.push((name, options.cf.clone()));
            }
        }
        Db::open_with_families(target, options, &listed)
    }
}
