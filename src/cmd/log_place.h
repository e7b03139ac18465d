/* log_place.h - where a controller's log is, for the commands that read one: a data directory, its log.db,
 * or etcd.
 *
 *     struct log_place place = {.path = argv[optind]};
 *     int rc = log_place_open(&place, &log, &error);           // read only, even while the controller runs
 *     ... log.close(log.context);
 *     log_place_done(&place);
 */
#ifndef PHX_CMD_LOG_PLACE_H
#define PHX_CMD_LOG_PLACE_H

#include "cmd/etcd_place.h"
#include "host/store/log_store.h"

#define LOG_PLACE_HELP                                                                                       \
    "  --encryption-key-file FILE   of a log that is encrypted (docs/access.md)\n" ETCD_PLACE_HELP

/* Rows for the options of getopt_long. */
/* clang-format off */
#define LOG_PLACE_OPTIONS {"encryption-key-file", required_argument, NULL, 'k'}, ETCD_PLACE_OPTIONS
/* clang-format on */

struct log_place {
    const char *path;     /* NULL: the log is on etcd */
    const char *key_file; /* NULL: the log is not encrypted */
    struct etcd_place etcd;
    struct store_keys *keys;    /* private: read from key_file */
    struct etcd_options opened; /* private: outlives the log */
};

/* Takes an option's value, as etcd_place_option(). */
bool log_place_option(struct log_place *place, int option, const char *value);
/* Reads the keys of an encrypted log. log_place_open calls it; call it before log_place_open_etcd. */
int log_place_keys(struct log_place *place, struct error *error);
/* Opens the log for reading. The place must outlive the log. Returns ERROR_NOT_FOUND if there is no log. */
int log_place_open(struct log_place *place, struct log_store *ret_log, struct error *error);
/* Opens the log on etcd. The place must outlive the log. */
int log_place_open_etcd(struct log_place *place, struct etcd_log **ret_log, struct error *error);
void log_place_done(struct log_place *place);

#endif
