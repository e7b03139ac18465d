#include "cmd/etcd_place.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Reads "NAME:PASSWORD" from a file that nobody else may read. */
static bool read_user(struct etcd_place *place, const char *path)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool fine = fstat(fileno(file), &info) == 0 && (!S_ISREG(info.st_mode) || (info.st_mode & 077) == 0) &&
                fgets(place->user, sizeof place->user, file) != NULL;
    fclose(file);
    if (!fine)
        return false;
    place->user[strcspn(place->user, "\r\n")] = 0;
    char *colon = strchr(place->user, ':');
    if (!colon || colon == place->user)
        return false;
    *colon = 0;
    place->options.user = place->user;
    place->options.password = colon + 1;
    return true;
}

bool etcd_place_option(struct etcd_place *place, int option, const char *value)
{
    int64_t seconds;
    switch (option) {
    case ETCD_PLACE_LEASE:
        if (!str_to_i64(str_from(value), 1, 3600, &seconds))
            return false;
        place->options.lease_s = (uint32_t)seconds;
        return true;
    case ETCD_PLACE_URLS:
        place->options.endpoints = value;
        return *value != 0;
    case ETCD_PLACE_PREFIX:
        place->options.prefix = value;
        return *value != 0 && value[strlen(value) - 1] == '/';
    case ETCD_PLACE_CA:
        place->options.ca = value;
        return true;
    case ETCD_PLACE_CERT:
        place->options.cert = value;
        return true;
    case ETCD_PLACE_KEY:
        place->options.key = value;
        return true;
    case ETCD_PLACE_USER:
        return read_user(place, value);
    default:
        return false;
    }
}
