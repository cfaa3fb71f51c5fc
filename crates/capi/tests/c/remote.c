/* A compaction service, whose workers are calls in the same process, as a program uses it. Its only
   argument is an empty directory. Each check ends the program with the line that failed. */

#include "check.h"

struct service {
  char* input;
  size_t input_len;
  char db[1000], output[1100];
  int scheduled, waited, canceled, installed, last_status, answer, destroyed;
  rocksdb_options_t* counted;
};

static struct service service = {.answer = rocksdb_compactionservice_jobstatus_success};

static void destroy(void* state) { ((struct service*)state)->destroyed++; }

static rocksdb_compactionservice_scheduleresponse_t* on_schedule(
    void* state, const rocksdb_compactionservice_jobinfo_t* info, const char* input,
    size_t input_len) {
  struct service* s = state;
  size_t len;
  if (s->answer != rocksdb_compactionservice_jobstatus_success) {
    return rocksdb_compactionservice_scheduleresponse_create_with_status(s->answer, &error);
  }
  const char* db = rocksdb_compactionservice_jobinfo_t_get_db_name(info, &len);
  snprintf(s->db, sizeof s->db, "%.*s", (int)len, db);
  snprintf(s->output, sizeof s->output, "%s-out-%d", s->db, s->scheduled);
  rocksdb_compactionservice_jobinfo_t_get_cf_name(info, &len);
  CHECK(len == strlen("default"));
  rocksdb_compactionservice_jobinfo_t_get_db_id(info, &len);
  CHECK(len == 36);
  rocksdb_compactionservice_jobinfo_t_get_db_session_id(info, &len);
  CHECK(len == 20);
  CHECK(rocksdb_compactionservice_jobinfo_t_get_cf_id(info) == 0);
  CHECK(rocksdb_compactionservice_jobinfo_t_get_job_id(info) > 0);
  CHECK(rocksdb_compactionservice_jobinfo_t_get_priority(info) == 1);
  CHECK(rocksdb_compactionservice_jobinfo_t_get_compaction_reason(info) == 9);
  CHECK(rocksdb_compactionservice_jobinfo_t_get_base_input_level(info) == 0);
  CHECK(rocksdb_compactionservice_jobinfo_t_get_output_level(info) > 0);
  CHECK(rocksdb_compactionservice_jobinfo_t_is_full_compaction(info));
  CHECK(rocksdb_compactionservice_jobinfo_t_is_manual_compaction(info));
  CHECK(rocksdb_compactionservice_jobinfo_t_is_bottommost_level(info));
  s->input = malloc(input_len);
  memcpy(s->input, input, input_len);
  s->input_len = input_len;
  s->scheduled++;
  CHECK(rocksdb_compactionservice_scheduleresponse_create("x", 9, &error) == NULL);
  CHECK(error != NULL && strstr(error, "Must be 0-3") != NULL);
  rocksdb_free(error);
  error = NULL;
  rocksdb_compactionservice_scheduleresponse_t* response =
      rocksdb_compactionservice_scheduleresponse_create("the job", 0, &error);
  const char* id =
      rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(response, &len);
  CHECK(len == 7 && memcmp(id, "the job", 7) == 0);
  CHECK(rocksdb_compactionservice_scheduleresponse_getstatus(response) == 0);
  return response;
}

static int on_wait(void* state, const char* id, char** result, size_t* result_len) {
  struct service* s = state;
  CHECK(strcmp(id, "the job") == 0);
  s->waited++;
  rocksdb_compaction_service_options_override_t* worker =
      rocksdb_compaction_service_options_override_create();
  rocksdb_compaction_service_options_override_set_option(worker, "max_subcompactions", "2");
  rocksdb_compaction_service_options_override_set_statistics(worker, s->counted);
  if (s->scheduled == 2) {
    /* Canceled before it begins. */
    unsigned char* canceled = rocksdb_open_and_compact_canceled_create();
    rocksdb_open_and_compact_options_t* options = rocksdb_open_and_compact_options_create();
    rocksdb_open_and_compact_options_set_canceled(options, canceled);
    rocksdb_open_and_compact_canceled_set(canceled, 1);
    char* none = rocksdb_open_and_compact_with_options(
        options, s->db, s->output, s->input, s->input_len, result_len, worker, &error);
    CHECK(none == NULL && error != NULL && strstr(error, "canceled") != NULL);
    rocksdb_free(error);
    error = NULL;
    rocksdb_open_and_compact_options_set_allow_resumption(options, 1);
    CHECK(rocksdb_open_and_compact_options_get_allow_resumption(options) == 1);
    rocksdb_open_and_compact_canceled_set(canceled, 0);
    none = rocksdb_open_and_compact_with_options(
        options, s->db, s->output, s->input, s->input_len, result_len, worker, &error);
    CHECK(none == NULL && error != NULL && strstr(error, "Not implemented") != NULL);
    rocksdb_free(error);
    error = NULL;
    rocksdb_open_and_compact_options_destroy(options);
    rocksdb_open_and_compact_canceled_destroy(canceled);
    rocksdb_compaction_service_options_override_destroy(worker);
    free(s->input);
    return rocksdb_compactionservice_jobstatus_failure;
  }
  *result = rocksdb_open_and_compact(
      s->db, s->output, s->input, s->input_len, result_len, worker, &error);
  CHECK(error == NULL);
  CHECK(*result != NULL && *result_len > 0);
  rocksdb_compaction_service_options_override_destroy(worker);
  free(s->input);
  return rocksdb_compactionservice_jobstatus_success;
}

static void on_cancel(void* state) { ((struct service*)state)->canceled++; }

static void on_installation(void* state, const char* id, int status) {
  struct service* s = state;
  CHECK(strcmp(id, "the job") == 0);
  s->installed++;
  s->last_status = status;
}

static void fill_and_compact(rocksdb_t* db, const char* value) {
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  for (int round = 0; round < 2; round++) {
    rocksdb_put(db, write, "key", 3, value, strlen(value), &error);
    CHECK(error == NULL);
    rocksdb_flush(db, flush, &error);
    CHECK(error == NULL);
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  size_t len;
  char* found = rocksdb_get(db, read, "key", 3, &len, &error);
  CHECK(error == NULL);
  CHECK(found != NULL && len == strlen(value) && memcmp(found, value, len) == 0);
  rocksdb_free(found);
  rocksdb_readoptions_destroy(read);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_writeoptions_destroy(write);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char path[1000];
  snprintf(path, sizeof path, "%s/db", arguments[1]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_options_set_compaction_service(
      options, rocksdb_compactionservice_create(
                   &service, destroy, on_schedule, "c", on_wait, on_cancel, on_installation));
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK(error == NULL);
  service.counted = rocksdb_options_create();
  rocksdb_options_enable_statistics(service.counted);

  fill_and_compact(db, "1");
  char* counters = rocksdb_options_statistics_get_string(service.counted);
  const char* read = strstr(counters, "rocksdb.compact.read.bytes COUNT : ");
  CHECK(read != NULL && atol(strstr(read, " : ") + 3) > 0);
  free(counters);
  CHECK(service.scheduled == 1 && service.waited == 1 && service.installed == 1);
  CHECK(service.last_status == rocksdb_compactionservice_jobstatus_success);
  fill_and_compact(db, "2");
  CHECK(service.scheduled == 2 && service.installed == 2);
  CHECK(service.last_status == rocksdb_compactionservice_jobstatus_use_local);
  service.answer = rocksdb_compactionservice_jobstatus_use_local;
  fill_and_compact(db, "3");
  CHECK(service.scheduled == 2 && service.installed == 2);

  CHECK(service.canceled == 0 && service.destroyed == 0);
  rocksdb_close(db);
  CHECK(service.canceled == 1);
  rocksdb_options_destroy(service.counted);
  rocksdb_options_destroy(options);
  CHECK(service.destroyed == 1);
  puts("done");
  return 0;
}
