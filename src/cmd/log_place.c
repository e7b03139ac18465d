#include "cmd/log_place.h"

#include <stdio.h>

bool log_place_option(struct log_place *place, int option, const char *value)
{
    if (option != 'k')
        return etcd_place_option(&place->etcd, option, value);
    place->key_file = value;
    return true;
}

int log_place_keys(struct log_place *place, struct error *error)
{
    return place->key_file && !place->keys ? store_keys_load(place->key_file, &place->keys, error) : 0;
}

int log_place_open_etcd(struct log_place *place, struct etcd_log **ret_log, struct error *error)
{
    place->opened = place->etcd.options;
    place->opened.keys = place->keys;
    return etcd_log_open(&place->opened, ret_log, error);
}

int log_place_open(struct log_place *place, struct log_store *ret_log, struct error *error)
{
    char path[4096];
    struct store *store;
    int rc = log_place_keys(place, error);
    if (rc < 0)
        return rc;
    if (!place->path) {
        struct etcd_log *log;
        rc = log_place_open_etcd(place, &log, error);
        if (rc == 0)
            *ret_log = etcd_log_store(log);
        return rc;
    }
    struct store_options options = {.read_only = true, .keys = place->keys};
    snprintf(path, sizeof(path), "%s/log.db", place->path);
    rc = store_open(path, &options, &store, error);
    if (rc == ERROR_NOT_FOUND || rc == ERROR_IO)
        rc = store_open(place->path, &options, &store, error);
    if (rc == 0)
        *ret_log = log_store_sqlite(store);
    return rc;
}

void log_place_done(struct log_place *place)
{
    store_keys_free(place->keys);
    place->keys = NULL;
}
