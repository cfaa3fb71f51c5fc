//! The command line as a whole: which commands there are.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::arguments::Common;
use crate::commands::{
    approximate_size, change_compaction_style, list_range_deletions, multi_get,
    unsafe_remove_table, write_extern_sst,
};
use crate::failure::Outcome;
use crate::{bench, cache_sim, commands, top, world};

/// Work with databases in RocksDB's format.
#[derive(Debug, Parser)]
#[command(
    name = "flagstone",
    version,
    about,
    after_help = "Exit code 0: done.\n\
        1: a fault was found, the operation failed, the key, file or database does not exist,\n   \
        or import, export or load left something out.\n\
        2: wrong usage, such as a column family that does not exist, or already exists.\n\
        3: salvaged with losses; slow but not broken; or changed by another process during the search for faults.\n\n\
        Example:\n  flagstone put --db /data/photos hello world\n  flagstone get --db /data/photos hello"
)]
pub struct CommandLine {
    /// Flags of every command.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands. Where `ldb` has one that takes the same arguments, its name stands for it, too.
#[derive(Debug, Subcommand)]
pub enum Command {
    Get(commands::get::Arguments),
    #[command(alias = "multi_get")]
    MultiGet(commands::multi_get::Arguments),
    Put(commands::put::Arguments),
    #[command(alias = "batchput")]
    BatchPut(commands::batch_put::Arguments),
    #[command(alias = "get_entity")]
    GetEntity(commands::get_entity::Arguments),
    #[command(alias = "multi_get_entity")]
    MultiGetEntity(commands::multi_get::EntityArguments),
    #[command(alias = "put_entity")]
    PutEntity(commands::put_entity::Arguments),
    Delete(commands::delete::Arguments),
    #[command(alias = "singledelete")]
    SingleDelete(commands::single_delete::Arguments),
    #[command(alias = "deleterange")]
    DeleteRange(commands::delete_range::Arguments),
    Clip(commands::clip::Arguments),
    Scan(commands::scan::Arguments),
    Count(commands::count::Arguments),
    #[command(alias = "approxsize")]
    ApproximateSize(commands::approximate_size::Arguments),
    Query(commands::query::Arguments),
    Import(commands::import::Arguments),
    Export(commands::export::Arguments),
    Dump(commands::dump::Arguments),
    Load(commands::load::Arguments),
    WriteExternSst(commands::write_extern_sst::Arguments),
    #[command(alias = "ingest_extern_sst")]
    Ingest(commands::ingest::Arguments),
    Verify(commands::verify::Arguments),
    #[command(alias = "checkconsistency")]
    Check(commands::check::Arguments),
    Doctor(commands::doctor::Arguments),
    Salvage(commands::salvage::Arguments),
    Stats(commands::stats::Arguments),
    Top(top::Arguments),
    Space(commands::space::Arguments),
    Compact(commands::compact::Arguments),
    #[command(alias = "reduce_levels")]
    ReduceLevels(commands::reduce_levels::Arguments),
    #[command(alias = "change_compaction_style")]
    ChangeCompactionStyle(commands::change_compaction_style::Arguments),
    Flush(commands::flush::Arguments),
    Checkpoint(commands::checkpoint::Arguments),
    Transactions(commands::transactions::Arguments),
    Replay(commands::replay::Arguments),
    IoTrace(commands::io_trace::Arguments),
    Backup(commands::backup::Arguments),
    #[command(alias = "list_column_families")]
    ListFamilies(commands::list_families::Arguments),
    #[command(alias = "create_column_family")]
    CreateFamily(commands::create_family::Arguments),
    #[command(alias = "drop_column_family")]
    DropFamily(commands::drop_family::Arguments),
    ExportFamily(commands::export_family::Arguments),
    ImportFamily(commands::import_family::Arguments),
    #[command(alias = "list_live_files_metadata")]
    ListFiles(commands::list_files::Arguments),
    #[command(alias = "list_file_range_deletes")]
    ListRangeDeletions(commands::list_range_deletions::Arguments),
    #[command(alias = "dump_live_files")]
    DumpLiveFiles(commands::dump_live_files::Arguments),
    #[command(alias = "manifest_dump")]
    Manifest(commands::manifest::Arguments),
    #[command(alias = "update_manifest")]
    UpdateManifest(commands::update_manifest::Arguments),
    #[command(alias = "unsafe_remove_sst_file")]
    UnsafeRemoveTable(commands::unsafe_remove_table::Arguments),
    Sst(commands::sst::Arguments),
    Wal(commands::wal::Arguments),
    Blob(commands::blob::Arguments),
    Bench(Box<bench::Flags>),
    CacheSim(Box<cache_sim::Arguments>),
    Completions(commands::completions::Arguments),
    Man(commands::man::Arguments),
}

impl Command {
    /// Whether `--secondary-path` and `--leader-path` have a meaning for it.
    fn may_follow(&self) -> bool {
        use Command::{ApproximateSize, Count, Dump, Get, MultiGet, Scan, Space, Stats};
        matches!(
            self,
            Get(_)
                | MultiGet(_)
                | Scan(_)
                | Count(_)
                | ApproximateSize(_)
                | Dump(_)
                | Stats(_)
                | Space(_)
        )
    }

    fn run(&self, common: &Common) -> Outcome {
        match self {
            Command::Get(arguments) => commands::get::run(arguments, common),
            Command::MultiGet(arguments) => commands::multi_get::run(arguments, common),
            Command::Put(arguments) => commands::put::run(arguments, common),
            Command::BatchPut(arguments) => commands::batch_put::run(arguments, common),
            Command::GetEntity(arguments) => commands::get_entity::run(arguments, common),
            Command::MultiGetEntity(arguments) => multi_get::run_entity(arguments, common),
            Command::PutEntity(arguments) => commands::put_entity::run(arguments, common),
            Command::Delete(arguments) => commands::delete::run(arguments, common),
            Command::SingleDelete(arguments) => commands::single_delete::run(arguments, common),
            Command::DeleteRange(arguments) => commands::delete_range::run(arguments, common),
            Command::Clip(arguments) => commands::clip::run(arguments, common),
            Command::Scan(arguments) => commands::scan::run(arguments, common),
            Command::Count(arguments) => commands::count::run(arguments, common),
            Command::ApproximateSize(arguments) => approximate_size::run(arguments, common),
            Command::Query(arguments) => commands::query::run(arguments, common),
            Command::Import(arguments) => commands::import::run(arguments, common),
            Command::Export(arguments) => commands::export::run(arguments, common),
            Command::Dump(arguments) => commands::dump::run(arguments, common),
            Command::Load(arguments) => commands::load::run(arguments, common),
            Command::WriteExternSst(arguments) => write_extern_sst::run(arguments, common),
            Command::Ingest(arguments) => commands::ingest::run(arguments, common),
            Command::Verify(arguments) => commands::verify::run(arguments, common),
            Command::Check(arguments) => commands::check::run(arguments, common),
            Command::Doctor(arguments) => commands::doctor::run(arguments, common),
            Command::Salvage(arguments) => commands::salvage::run(arguments, common),
            Command::Stats(arguments) => commands::stats::run(arguments, common),
            Command::Top(arguments) => top::run(arguments, common),
            Command::Space(arguments) => commands::space::run(arguments, common),
            Command::Compact(arguments) => commands::compact::run(arguments, common),
            Command::ReduceLevels(arguments) => commands::reduce_levels::run(arguments, common),
            Command::ChangeCompactionStyle(arguments) => {
                change_compaction_style::run(arguments, common)
            }
            Command::Flush(arguments) => commands::flush::run(arguments, common),
            Command::Checkpoint(arguments) => commands::checkpoint::run(arguments, common),
            Command::Transactions(arguments) => commands::transactions::run(arguments, common),
            Command::Replay(arguments) => commands::replay::run(arguments, common),
            Command::IoTrace(arguments) => commands::io_trace::run(arguments, common),
            Command::Backup(arguments) => commands::backup::run(arguments, common),
            Command::ListFamilies(arguments) => commands::list_families::run(arguments, common),
            Command::CreateFamily(arguments) => commands::create_family::run(arguments, common),
            Command::DropFamily(arguments) => commands::drop_family::run(arguments, common),
            Command::ExportFamily(arguments) => commands::export_family::run(arguments, common),
            Command::ImportFamily(arguments) => commands::import_family::run(arguments, common),
            Command::ListFiles(arguments) => commands::list_files::run(arguments, common),
            Command::ListRangeDeletions(arguments) => list_range_deletions::run(arguments, common),
            Command::DumpLiveFiles(arguments) => commands::dump_live_files::run(arguments, common),
            Command::Manifest(arguments) => commands::manifest::run(arguments, common),
            Command::UpdateManifest(arguments) => commands::update_manifest::run(arguments, common),
            Command::UnsafeRemoveTable(arguments) => unsafe_remove_table::run(arguments, common),
            Command::Sst(arguments) => commands::sst::run(arguments, common),
            Command::Wal(arguments) => commands::wal::run(arguments, common),
            Command::Blob(arguments) => commands::blob::run(arguments, common),
            Command::Bench(flags) => bench::run(flags, common),
            Command::CacheSim(arguments) => cache_sim::run(arguments, common),
            Command::Completions(arguments) => commands::completions::run(arguments, common),
            Command::Man(arguments) => commands::man::run(arguments, common),
        }
    }
}

/// What the exit codes of a command mean, as its help says it.
fn exit_codes(command: &str) -> &'static str {
    match command {
        "import" | "export" | "load" => {
            "Exit code 0: done. 1: it failed, or left something out, which it names, and did the rest.\n\
             2: wrong usage."
        }
        "verify" | "check" => {
            "Exit code 0: sound. 1: a fault, an unreadable file, or no database. 2: wrong usage.\n\
             3: uncertain faults, because another process was writing."
        }
        "doctor" => {
            "Exit code 0: healthy. 1: broken, or no database. 2: wrong usage. 3: slow but not broken; or uncertain \
             findings, because another process was writing."
        }
        "salvage" => {
            "Exit code 0: nothing was lost. 1: there is no new database. 2: wrong usage. 3: something was lost, which the \
             report lists."
        }
        "sst" | "wal" | "blob" | "manifest" | "dump-live-files" => {
            "Exit code 0: sound. 1: a fault, or no such file. 2: wrong usage."
        }
        "backup" => {
            "Exit code 0: done, or sound. 1: it failed, or a backup is damaged. 2: wrong usage."
        }
        "completions" | "man" => "Exit code 0: done. 1: it failed. 2: wrong usage.",
        _ => {
            "Exit code 0: done. 1: it failed, or the key, file or database does not exist. 2: wrong usage."
        }
    }
}

impl CommandLine {
    /// Reads a command line.
    ///
    /// # Errors
    /// Help that was asked for, or what is wrong with the command line.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = Self::grammar().try_get_matches_from(arguments)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::grammar()))
    }

    /// All commands; the help of each ends with its exit codes.
    pub fn grammar() -> clap::Command {
        Self::command().mut_subcommands(|command| {
            let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let codes = exit_codes(command.get_name());
            command.after_help(format!("{codes}\n\n{example}"))
        })
    }

    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let common = &self.common.in_force();
        if let Some(key_file) = &common.encryption_key_file {
            world::encrypt_by(key_file)?;
        }
        if !self.command.may_follow() {
            common.refuse_following()?;
        }
        self.command.run(common)
    }
}

#[cfg(test)]
mod tests;
