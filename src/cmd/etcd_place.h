/* etcd_place.h - the options that name a log on etcd (host/store/etcd/etcd.h). */
#ifndef PHX_CMD_ETCD_PLACE_H
#define PHX_CMD_ETCD_PLACE_H

#include "host/store/etcd/etcd.h"

#define ETCD_PLACE_HELP                                                                                      \
    "  --etcd URL[,URL...]    the etcd members that hold the log of several controllers (docs/ha.md)\n"      \
    "  --etcd-prefix PREFIX   of its keys, ends in / (default /phalanx/)\n"                                  \
    "  --etcd-ca FILE, --etcd-cert FILE, --etcd-key FILE\n"                                                  \
    "                         who signed the members' certificates; our certificate and its key\n"           \
    "  --etcd-lease SECONDS   how long a leader that is cut off stays one (default 1; etcd may\n"            \
    "                         grant more)\n"                                                                \
    "  --etcd-user-file FILE  one line, NAME:PASSWORD, where etcd has users; mode 0600\n"

/* Values of the options for getopt_long, above those of all other options. */
enum etcd_place_letter {
    ETCD_PLACE_URLS = 512,
    ETCD_PLACE_PREFIX,
    ETCD_PLACE_CA,
    ETCD_PLACE_CERT,
    ETCD_PLACE_KEY,
    ETCD_PLACE_USER,
    ETCD_PLACE_LEASE
};
/* clang-format off */
#define ETCD_PLACE_OPTIONS                                                                                   \
    {"etcd", required_argument, NULL, ETCD_PLACE_URLS},                                                      \
    {"etcd-prefix", required_argument, NULL, ETCD_PLACE_PREFIX},                                             \
    {"etcd-ca", required_argument, NULL, ETCD_PLACE_CA},                                                     \
    {"etcd-cert", required_argument, NULL, ETCD_PLACE_CERT},                                                 \
    {"etcd-key", required_argument, NULL, ETCD_PLACE_KEY},                                                   \
    {"etcd-lease", required_argument, NULL, ETCD_PLACE_LEASE},                                               \
    {"etcd-user-file", required_argument, NULL, ETCD_PLACE_USER}
/* clang-format on */

/* Begins as all zeros: no option was given, and options.endpoints is NULL. */
struct etcd_place {
    struct etcd_options options;
    char user[1024]; /* "NAME\0PASSWORD" */
};
/* Takes an option's value, which must live as long as the place. Returns false if the value is not valid or
 * `option` is none of these. */
bool etcd_place_option(struct etcd_place *place, int option, const char *value);

#endif
