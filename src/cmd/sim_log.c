#include "cmd/sim_log.h"

#include <unistd.h>

#include "base/vec.h"
#include "host/store/store.h"

enum { SIM_LOG_GROUP_BYTES = 4 << 20, SIM_LOG_GROUP_RECORDS = 4096 };

struct sim_log {
    struct store *store;
    struct arena arena; /* bytes of the waiting records */
    size_t bytes;       /* number of these bytes */
    VEC(struct store_record) waiting;
    int rc;
    struct error error; /* of the first append that failed; later records are dropped */
};

struct sim_log *sim_log_open(const char *path, struct error *error)
{
    if (access(path, F_OK) == 0) {
        error_set(error, ERROR_EXISTS, "%s: the file is there already", path);
        return NULL;
    }
    struct sim_log *log = mem_alloc(sizeof *log);
    if (store_open(path, &(struct store_options){0}, &log->store, error) < 0) {
        mem_free(log);
        return NULL;
    }
    return log;
}

static void sim_log_flush(struct sim_log *log)
{
    if (log->rc == 0)
        log->rc = store_append(log->store, log->waiting.items, log->waiting.len, &log->error);
    log->waiting.len = 0;
    arena_clear(&log->arena);
    log->bytes = 0;
}

void sim_log_keep(void *context, const struct drive_record *records, size_t count)
{
    struct sim_log *log = context;
    for (size_t i = 0; i < count && log->rc == 0; i++) {
        struct store_record kept = {.seq = records[i].seq,
                                    .stamp_ns = records[i].stamp_ns,
                                    .bytes = arena_str(&log->arena, records[i].bytes)};
        vec_push(&log->waiting, kept);
        log->bytes += kept.bytes.len;
        if (log->waiting.len == SIM_LOG_GROUP_RECORDS || log->bytes >= SIM_LOG_GROUP_BYTES)
            sim_log_flush(log);
    }
}

int sim_log_close(struct sim_log *log, struct error *error)
{
    sim_log_flush(log);
    int rc = log->rc;
    if (rc < 0 && error)
        *error = log->error;
    store_close(log->store);
    vec_done(&log->waiting);
    arena_done(&log->arena);
    mem_free(log);
    return rc;
}
