/* Mistakes with transactions, with locks and without. */

#include <pthread.h>

static rocksdb_transaction_t* began(rocksdb_transactiondb_t* db, int deadlock_detect) {
  rocksdb_transaction_options_t* options = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_lock_timeout(options, 10);
  rocksdb_transaction_options_set_deadlock_detect(options, deadlock_detect);
  rocksdb_transaction_t* transaction = rocksdb_transaction_begin(db, writing, options, NULL);
  rocksdb_transaction_options_destroy(options);
  return transaction;
}

/* Waits for a lock that `main` holds. */
static void* wait_for(void* transaction) {
  char* failed = NULL;
  rocksdb_transaction_put(transaction, "a", 1, "value", 5, &failed);
  rocksdb_free(failed);
  return NULL;
}

/* Each of two transactions waits for the other; the second to wait is refused. */
static void with_a_cycle(rocksdb_transactiondb_t* db) {
  rocksdb_transaction_options_t* options = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_lock_timeout(options, 10 * 1000);
  rocksdb_transaction_options_set_deadlock_detect(options, 1);
  rocksdb_transaction_t* one = rocksdb_transaction_begin(db, writing, options, NULL);
  rocksdb_transaction_t* two = rocksdb_transaction_begin(db, writing, options, NULL);
  rocksdb_transaction_put(one, "a", 1, "value", 5, &error);
  rocksdb_transaction_put(two, "b", 1, "value", 5, &error);
  OK();
  pthread_t waiting;
  CHECK(pthread_create(&waiting, NULL, wait_for, two) == 0);
  /* Should it not wait yet, the put below waits, and the other is refused: no error here. */
  usleep(200 * 1000);
  TRY(rocksdb_transaction_put, "a deadlock", one, "b", 1, "value", 5);
  rocksdb_transaction_rollback(one, &error);
  OK();
  CHECK(pthread_join(waiting, NULL) == 0);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(two);
  rocksdb_transaction_options_destroy(options);
}

static void with_names(rocksdb_transactiondb_t* db) {
  rocksdb_transaction_t *one = began(db, 0), *two = began(db, 0);
  TRY(rocksdb_transaction_prepare, "no name", one);
  TRY(rocksdb_transaction_set_name, "an empty name", one, "", 0);
  char name[600];
  memset(name, 'n', sizeof name);
  TRY(rocksdb_transaction_set_name, "a name of 600 bytes", one, name, sizeof name);
  TRY(rocksdb_transaction_set_name, "in order", one, "one", 3);
  TRY(rocksdb_transaction_set_name, "a second name", one, "other", 5);
  TRY(rocksdb_transaction_set_name, "a name that is taken", two, "one", 3);
  rocksdb_transaction_put(one, "named", 5, "value", 5, &error);
  OK();
  TRY(rocksdb_transaction_prepare, "in order", one);
  TRY(rocksdb_transaction_prepare, "prepared before", one);
  TRY(rocksdb_transaction_rollback, "prepared", one);
  TRY(rocksdb_transaction_prepare, "rolled back", one);
  TRY(rocksdb_transaction_commit, "rolled back", one);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_put(two, "key", 3, "value", 5, &error);
  OK();
  TRY(rocksdb_transaction_commit, "in order", two);
  TRY(rocksdb_transaction_commit, "committed before", two);
  TRY(rocksdb_transaction_rollback, "committed before", two);
  TRY(rocksdb_transaction_put, "committed before", two, "late", 4, "value", 5);
  rocksdb_transaction_destroy(two);
}

static void in_locks(void) {
  rocksdb_options_t* options = creating();
  rocksdb_transactiondb_options_t* locking = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_max_num_locks(locking, 3);
  rocksdb_transactiondb_options_set_transaction_lock_timeout(locking, 10);
  rocksdb_transactiondb_options_set_default_lock_timeout(locking, 10);
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, locking, in("locked"), &error);
  OK();
  TRY_MAKE(rocksdb_transactiondb_open, rocksdb_transactiondb_close, "open in this process", options, locking, in("locked"));
  rocksdb_transaction_t *one = began(db, 1), *two = began(db, 1);
  rocksdb_transaction_put(one, "key", 3, "value", 5, &error);
  rocksdb_transaction_put(two, "other", 5, "value", 5, &error);
  OK();
  TRY(rocksdb_transaction_put, "a key that another has locked", two, "key", 3, "value", 5);
  TRY(rocksdb_transaction_delete, "a key that another has locked", two, "key", 3);
  TRY(rocksdb_transaction_merge, "a key that another has locked", two, "key", 3, "value", 5);
  size_t len;
  TRY_MAKE(rocksdb_transaction_get_for_update, free, "a key that another has locked", two, reading, "key", 3, &len, 1);
  TRY(rocksdb_transactiondb_put, "a key that a transaction has locked", db, writing, "key", 3, "value", 5);
  TRY(rocksdb_transactiondb_delete, "a key that a transaction has locked", db, writing, "key", 3);
  rocksdb_transaction_put(one, "third", 5, "value", 5, &error);
  OK();
  TRY(rocksdb_transaction_put, "more locks than there may be", one, "fourth", 6, "value", 5);
  TRY(rocksdb_transaction_rollback_to_savepoint, "no save point", one);
  TRY_MAKE(rocksdb_transaction_get_for_update, free, "a snapshot without validation", one, reading, "key", 3, &len, 0);
  rocksdb_transaction_rollback(one, &error);
  rocksdb_transaction_rollback(two, &error);
  OK();

  rocksdb_transaction_options_t* with_snapshot = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_set_snapshot(with_snapshot, 1);
  rocksdb_transaction_t* three = rocksdb_transaction_begin(db, writing, with_snapshot, NULL);
  rocksdb_transactiondb_put(db, writing, "key", 3, "newer", 5, &error);
  OK();
  TRY(rocksdb_transaction_put, "a key that was written since the snapshot", three, "key", 3, "value", 5);
  TRY_MAKE(rocksdb_transaction_get_for_update, free, "a key that was written since the snapshot", three, reading, "key", 3,
      &len, 1);
  rocksdb_transaction_destroy(three);
  rocksdb_transaction_options_set_expiration(with_snapshot, 1);
  three = rocksdb_transaction_begin(db, writing, with_snapshot, NULL);
  usleep(20 * 1000);
  TRY(rocksdb_transaction_put, "expired", three, "expired", 7, "value", 5);
  TRY(rocksdb_transaction_commit, "expired", three);
  rocksdb_transaction_destroy(three);
  rocksdb_transaction_options_destroy(with_snapshot);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(two);
  with_names(db);
  with_a_cycle(db);
  rocksdb_transactiondb_close(db);

  rocksdb_options_set_unordered_write(options, 1);
  TRY_MAKE(rocksdb_transactiondb_open, rocksdb_transactiondb_close, "unordered writes", options, locking, in("locked"));
  rocksdb_transactiondb_options_destroy(locking);
  rocksdb_options_destroy(options);
}

static void in_optimistic(void) {
  rocksdb_options_t* options = creating();
  rocksdb_optimistictransactiondb_t* db =
      rocksdb_optimistictransactiondb_open(options, in("optimistic"), &error);
  OK();
  TRY_MAKE(rocksdb_optimistictransactiondb_open, rocksdb_optimistictransactiondb_close, "open in this process", options, in("optimistic"));
  rocksdb_optimistictransaction_options_t* beginning = rocksdb_optimistictransaction_options_create();
  rocksdb_transaction_t* one = rocksdb_optimistictransaction_begin(db, writing, beginning, NULL);
  rocksdb_transaction_t* two = rocksdb_optimistictransaction_begin(db, writing, beginning, NULL);
  rocksdb_transaction_put(one, "key", 3, "value", 5, &error);
  rocksdb_transaction_put(two, "key", 3, "value", 5, &error);
  OK();
  TRY(rocksdb_transaction_prepare, "optimistic", one);
  TRY(rocksdb_transaction_commit, "in order", one);
  TRY(rocksdb_transaction_commit, "a key that was written since", two);
  TRY(rocksdb_transaction_rollback_to_savepoint, "no save point", two);
  TRY(rocksdb_transaction_set_name, "optimistic", two, "name", 4);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(two);
  rocksdb_optimistictransaction_options_destroy(beginning);
  rocksdb_optimistictransactiondb_close(db);
  rocksdb_options_destroy(options);
}
