// What calls of the C API cost, in nanoseconds each: fills a new database in directory ARGV[1] with
// ARGV[2] random keys (a million by default), compacts it, and reads it from memory. One line for
// each kind of call: its name and its cost. `calls.rs` does the same through Rust.

#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY_SIZE = 16, VALUE_SIZE = 100, KEYS_A_CALL = 32, STEPS = 10 };

static uint64_t seed;
static uint64_t keys;

static uint64_t drawn(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void draw_key(char *key) {
    uint64_t number = drawn() % keys;
    for (int at = KEY_SIZE; at-- > 0; number /= 10) key[at] = (char)('0' + number % 10);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void check(char *error) {
    if (error != NULL) {
        fprintf(stderr, "calls: %s\n", error);
        exit(1);
    }
}

static rocksdb_t *opened(const char *directory) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(1 << 30);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_write_buffer_size(options, 64 << 20);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    char *error = NULL;
    rocksdb_t *db = rocksdb_open(options, directory, &error);
    check(error);
    return db;
}

static void fill(rocksdb_t *db) {
    rocksdb_writeoptions_t *options = rocksdb_writeoptions_create();
    char key[KEY_SIZE], value[VALUE_SIZE], *error = NULL;
    for (uint64_t count = 0; count < keys; count++) {
        draw_key(key);
        for (int at = 0; at < VALUE_SIZE / 2; at += 8) {
            uint64_t bytes = drawn();
            memcpy(value + at, &bytes, VALUE_SIZE / 2 - at < 8 ? VALUE_SIZE / 2 - at : 8);
        }
        memset(value + VALUE_SIZE / 2, 'v', VALUE_SIZE / 2);
        rocksdb_put(db, options, key, KEY_SIZE, value, VALUE_SIZE, &error);
        check(error);
    }
}

static uint64_t get(rocksdb_t *db, rocksdb_readoptions_t *options) {
    char key[KEY_SIZE], *error = NULL;
    size_t length;
    draw_key(key);
    char *value = rocksdb_get(db, options, key, KEY_SIZE, &length, &error);
    check(error);
    uint64_t found = value == NULL ? 0 : 1 + (unsigned char)value[0] % 2;
    rocksdb_free(value);
    return found;
}

static uint64_t get_pinned(rocksdb_t *db, rocksdb_readoptions_t *options) {
    char key[KEY_SIZE], *error = NULL;
    size_t length;
    draw_key(key);
    rocksdb_pinnableslice_t *value = rocksdb_get_pinned(db, options, key, KEY_SIZE, &error);
    check(error);
    const char *bytes = value == NULL ? NULL : rocksdb_pinnableslice_value(value, &length);
    uint64_t found = bytes == NULL ? 0 : 1 + (unsigned char)bytes[0] % 2;
    rocksdb_pinnableslice_destroy(value);
    return found;
}

static uint64_t seek(rocksdb_t *db, rocksdb_readoptions_t *options) {
    static rocksdb_iterator_t *cursor;
    if (cursor == NULL) cursor = rocksdb_create_iterator(db, options);
    char key[KEY_SIZE];
    size_t length;
    uint64_t found = 0;
    draw_key(key);
    rocksdb_iter_seek(cursor, key, KEY_SIZE);
    for (int step = 0; step < STEPS && rocksdb_iter_valid(cursor); step++) {
        found += (unsigned char)rocksdb_iter_value(cursor, &length)[0] % 2;
        rocksdb_iter_next(cursor);
    }
    return found;
}

static uint64_t multi_get(rocksdb_t *db, rocksdb_readoptions_t *options) {
    char room[KEYS_A_CALL][KEY_SIZE], *values[KEYS_A_CALL], *errors[KEYS_A_CALL];
    const char *list[KEYS_A_CALL];
    size_t sizes[KEYS_A_CALL], lengths[KEYS_A_CALL];
    for (int at = 0; at < KEYS_A_CALL; at++) {
        draw_key(room[at]);
        list[at] = room[at];
        sizes[at] = KEY_SIZE;
    }
    rocksdb_multi_get(db, options, KEYS_A_CALL, list, sizes, values, lengths, errors);
    uint64_t found = 0;
    for (int at = 0; at < KEYS_A_CALL; at++) {
        check(errors[at]);
        found += values[at] != NULL;
        rocksdb_free(values[at]);
    }
    return found;
}

static void measure(const char *name, uint64_t (*call)(rocksdb_t *, rocksdb_readoptions_t *),
                    rocksdb_t *db, uint64_t count) {
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    uint64_t found = 0;
    for (uint64_t done = 0; done < count / 4; done++) found += call(db, options);
    double begin = now();
    for (uint64_t done = 0; done < count; done++) found += call(db, options);
    double cost = (now() - begin) / (double)count;
    if (found == 0) check("nothing was found");
    printf("%s %.1f\n", name, cost);
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: calls DIRECTORY [KEYS]\n");
        return 2;
    }
    keys = count > 2 ? strtoull(arguments[2], NULL, 10) : 1000000;
    seed = 88172645463325252ULL;
    rocksdb_t *db = opened(arguments[1]);
    double begin = now();
    fill(db);
    printf("fillrandom %.1f\n", (now() - begin) / (double)keys);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    measure("warm", get, db, keys);
    measure("get", get, db, keys);
    measure("get_pinned", get_pinned, db, keys);
    measure("seek+10", seek, db, keys / 4);
    measure("multi_get32", multi_get, db, keys / 16);
    return 0;
}
