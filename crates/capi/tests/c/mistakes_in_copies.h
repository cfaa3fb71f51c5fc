/* Mistakes with tables outside of a database, checkpoints, exports, backups and what is restored. */

/* Begins a table, with an entry. */
static void begin(rocksdb_sstfilewriter_t* writer) {
  rocksdb_sstfilewriter_open(writer, in("table.sst"), &error);
  OK();
  rocksdb_sstfilewriter_put(writer, "m", 1, "value", 5, &error);
  OK();
}

static void in_tables(void) {
  rocksdb_options_t* options = creating();
  rocksdb_envoptions_t* environment = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(environment, options);
  TRY(rocksdb_sstfilewriter_put, "not opened", writer, "a", 1, "value", 5);
  TRY(rocksdb_sstfilewriter_delete_range, "not opened", writer, "a", 1, "b", 1);
  TRY(rocksdb_sstfilewriter_finish, "not opened", writer);
  TRY(rocksdb_sstfilewriter_open, "no directory", writer, in("absent/table.sst"));
  begin(writer);
  TRY(rocksdb_sstfilewriter_delete_range, "the end before the begin", writer, "z", 1, "y", 1);
  begin(writer);
  TRY(rocksdb_sstfilewriter_put, "a key before the last", writer, "a", 1, "value", 5);
  TRY(rocksdb_sstfilewriter_put, "after an error", writer, "z", 1, "value", 5);
  begin(writer);
  TRY(rocksdb_sstfilewriter_put, "the last key again", writer, "m", 1, "value", 5);
  begin(writer);
  TRY(rocksdb_sstfilewriter_put_with_ts, "a comparator without timestamps", writer, "n", 1, "12345678", 8,
      "value", 5);
  begin(writer);
  rocksdb_sstfilewriter_finish(writer, &error);
  OK();
  TRY(rocksdb_sstfilewriter_finish, "finished before", writer);
  rocksdb_sstfilewriter_open(writer, in("empty.sst"), &error);
  OK();
  TRY(rocksdb_sstfilewriter_finish, "no entries", writer);
  rocksdb_sstfilewriter_destroy(writer);

  rocksdb_t* db = opened("ingested");
  rocksdb_ingestexternalfileoptions_t* ingesting = rocksdb_ingestexternalfileoptions_create();
  const char* files[] = {in("none.sst")};
  TRY(rocksdb_ingest_external_file, "no file", db, files, 1, ingesting);
  TRY(rocksdb_ingest_external_file, "no files", db, files, 0, ingesting);
  write_file(in("text.sst"), "this is text, and not a table; it is longer than the footer of a table is");
  files[0] = in("text.sst");
  TRY(rocksdb_ingest_external_file, "a text", db, files, 1, ingesting);
  write_file(in("short.sst"), "short");
  files[0] = in("short.sst");
  TRY(rocksdb_ingest_external_file, "a short text", db, files, 1, ingesting);
  rocksdb_ingestexternalfileoptions_set_ingest_behind(ingesting, 1);
  files[0] = in("table.sst");
  TRY(rocksdb_ingest_external_file, "behind, which the database does not allow", db, files, 1, ingesting);
  rocksdb_ingestexternalfileoptions_set_ingest_behind(ingesting, 0);
  rocksdb_ingestexternalfileoptions_set_allow_global_seqno(ingesting, 0);
  put(db, "m", "value");
  flush(db);
  TRY(rocksdb_ingest_external_file, "an overlap without a number", db, files, 1, ingesting);
  const char* twice[] = {files[0], files[0]};
  rocksdb_ingestexternalfileoptions_set_allow_global_seqno(ingesting, 1);
  TRY(rocksdb_ingest_external_file, "a file twice", db, twice, 2, ingesting);
  put(db, "m", "another value");
  rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(ingesting, 0);
  TRY(rocksdb_ingest_external_file, "a flush that is not allowed", db, files, 1, ingesting);
  rocksdb_ingestexternalfileoptions_destroy(ingesting);
  rocksdb_close(db);
  rocksdb_envoptions_destroy(environment);
  rocksdb_options_destroy(options);
}

static void in_checkpoints(rocksdb_t* db, rocksdb_options_t* options) {
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
  OK();
  CHECK(mkdir(in("there"), 0755) == 0);
  TRY(rocksdb_checkpoint_create, "a directory that exists", checkpoint, in("there"), 0);
  TRY(rocksdb_checkpoint_create, "no directory above", checkpoint, in("missing/below"), 0);
  TRY(rocksdb_checkpoint_create, "no name", checkpoint, "", 0);
  TRY(rocksdb_checkpoint_create, "only a separator", checkpoint, "/", 0);
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  TRY_MAKE(rocksdb_checkpoint_export_column_family, rocksdb_export_import_files_metadata_destroy, "a directory that exists", checkpoint, family, in("there"));
  TRY_MAKE(rocksdb_checkpoint_export_column_family, rocksdb_export_import_files_metadata_destroy, "no directory above", checkpoint, family,
           in("lacking/below"));
  TRY_MAKE(rocksdb_checkpoint_export_column_family, rocksdb_export_import_files_metadata_destroy, "no name", checkpoint, family, "");
  rocksdb_export_import_files_metadata_t* exported =
      rocksdb_checkpoint_export_column_family(checkpoint, family, in("exported"), &error);
  OK();
  rocksdb_import_column_family_options_t* importing = rocksdb_import_column_family_options_create();
  TRY_MAKE(rocksdb_create_column_family_with_import, rocksdb_column_family_handle_destroy, "a name that is taken", db, options, "default", importing,
      exported);
  CHECK(unlink(file_in(in("exported"), ".sst")) == 0);
  TRY_MAKE(rocksdb_create_column_family_with_import, rocksdb_column_family_handle_destroy, "a table is gone", db, options, "imported", importing,
      exported);
  rocksdb_import_column_family_options_destroy(importing);
  rocksdb_export_import_files_metadata_destroy(exported);
  rocksdb_checkpoint_object_destroy(checkpoint);
}

static void in_copies(void) {
  rocksdb_options_t* options = creating();
  rocksdb_t* db = opened("copied");
  put(db, "key", "value");
  flush(db);
  in_checkpoints(db, options);

  TRY_MAKE(rocksdb_backup_engine_open, rocksdb_backup_engine_close, "no directory above", options, in("absent/below"));
  write_file(in("plain"), "text");
  TRY_MAKE(rocksdb_backup_engine_open, rocksdb_backup_engine_close, "a file in place of the directory", options, in("plain"));
  rocksdb_backup_engine_t* backups = rocksdb_backup_engine_open(options, in("backups"), &error);
  OK();
  rocksdb_restore_options_t* restoring = rocksdb_restore_options_create();
  TRY(rocksdb_backup_engine_restore_db_from_latest_backup, "no backups", backups, in("restored"),
      in("restored"), restoring);
  TRY(rocksdb_backup_engine_restore_db_from_backup, "no such backup", backups, in("restored"), in("restored"),
      restoring, 7);
  TRY(rocksdb_backup_engine_verify_backup, "no such backup", backups, 7);
  TRY(rocksdb_backup_engine_purge_old_backups, "no backups", backups, 2);
  for (int round = 0; round < 2; round++) {
    put(db, round == 0 ? "a" : "b", "value value value value");
    rocksdb_backup_engine_create_new_backup_flush(backups, db, 1, &error);
    OK();
  }
  TRY(rocksdb_backup_engine_verify_backup, "in order", backups, 1);
  damage(file_in(in("backups/shared_checksum"), ".sst"));
  TRY(rocksdb_backup_engine_verify_backup, "a table with other bytes", backups, 2);
  TRY(rocksdb_backup_engine_restore_db_from_backup, "a table with other bytes", backups, in("restored"),
      in("restored"), restoring, 2);
  CHECK(unlink(file_in(in("backups/shared_checksum"), ".sst")) == 0);
  TRY(rocksdb_backup_engine_verify_backup, "a table is gone", backups, 2);
  TRY(rocksdb_backup_engine_restore_db_from_backup, "a table is gone", backups, in("restored"), in("restored"),
      restoring, 2);
  rocksdb_backup_engine_close(backups);
  write_file(in("backups/meta/2"), "text");
  backups = rocksdb_backup_engine_open(options, in("backups"), &error);
  OK();
  TRY(rocksdb_backup_engine_restore_db_from_backup, "damaged metadata", backups, in("restored"), in("restored"),
      restoring, 2);
  TRY(rocksdb_backup_engine_verify_backup, "damaged metadata", backups, 2);
  rocksdb_backup_engine_close(backups);
  rocksdb_restore_options_destroy(restoring);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}
