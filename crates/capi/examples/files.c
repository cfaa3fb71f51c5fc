// What work on whole files costs, in nanoseconds an entry: writes ARGV[2] entries (two million by
// default) to a hundred tables below directory ARGV[1], ingests them into a new database, makes a
// backup of it, and restores that. One line for each: its name and its cost.

#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TABLES = 100, VALUE_SIZE = 100 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void check(char *error) {
    if (error != NULL) {
        fprintf(stderr, "files: %s\n", error);
        exit(1);
    }
}

static void write_table(rocksdb_options_t *options, const char *path, uint64_t first,
                        uint64_t count) {
    char *error = NULL, key[32], value[VALUE_SIZE];
    rocksdb_envoptions_t *env = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(env, options);
    rocksdb_sstfilewriter_open(writer, path, &error);
    check(error);
    memset(value, 'v', sizeof value);
    for (uint64_t at = first; at < first + count; at++) {
        int length = snprintf(key, sizeof key, "%016llu", (unsigned long long)at);
        for (int place = 0; place < VALUE_SIZE / 2; place += 8) {
            uint64_t drawn = (at + (uint64_t)place) * 0x9E3779B97F4A7C15ULL;
            memcpy(value + place, &drawn, 2);
        }
        rocksdb_sstfilewriter_put(writer, key, (size_t)length, value, sizeof value, &error);
        check(error);
    }
    rocksdb_sstfilewriter_finish(writer, &error);
    check(error);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env);
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: files DIRECTORY [ENTRIES]\n");
        return 2;
    }
    uint64_t entries = count > 2 ? strtoull(arguments[2], NULL, 10) : 2000000;
    uint64_t each = entries / TABLES;
    char paths[TABLES][4096], database[4096], backups[4096], restored[4096], *error = NULL;
    const char *list[TABLES];
    snprintf(database, sizeof database, "%.4000s/database", arguments[1]);
    snprintf(backups, sizeof backups, "%.4000s/backups", arguments[1]);
    snprintf(restored, sizeof restored, "%.4000s/restored", arguments[1]);
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);

    double begin = now();
    for (int table = 0; table < TABLES; table++) {
        snprintf(paths[table], sizeof paths[table], "%.4000s/%03d.sst", arguments[1], table);
        write_table(options, paths[table], (uint64_t)table * each, each);
        list[table] = paths[table];
    }
    printf("write %.1f\n", (now() - begin) / (double)entries);

    rocksdb_t *db = rocksdb_open(options, database, &error);
    check(error);
    rocksdb_ingestexternalfileoptions_t *how = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(how, 1);
    begin = now();
    rocksdb_ingest_external_file(db, list, TABLES, how, &error);
    check(error);
    printf("ingest %.1f\n", (now() - begin) / (double)entries);

    rocksdb_backup_engine_t *engine = rocksdb_backup_engine_open(options, backups, &error);
    check(error);
    begin = now();
    rocksdb_backup_engine_create_new_backup(engine, db, &error);
    check(error);
    printf("backup %.1f\n", (now() - begin) / (double)entries);
    rocksdb_close(db);

    rocksdb_restore_options_t *to = rocksdb_restore_options_create();
    begin = now();
    rocksdb_backup_engine_restore_db_from_latest_backup(engine, restored, restored, to, &error);
    check(error);
    printf("restore %.1f\n", (now() - begin) / (double)entries);
    rocksdb_backup_engine_close(engine);

    db = rocksdb_open(options, restored, &error);
    check(error);
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_iterator_t *cursor = rocksdb_create_iterator(db, read);
    uint64_t found = 0;
    begin = now();
    for (rocksdb_iter_seek_to_first(cursor); rocksdb_iter_valid(cursor);
         rocksdb_iter_next(cursor)) {
        found++;
    }
    if (found != each * TABLES) check("the restored database has other entries");
    printf("scan %.1f\n", (now() - begin) / (double)entries);
    rocksdb_iter_destroy(cursor);
    rocksdb_close(db);
    return 0;
}
