/* cluster.c - the cluster that the machine belongs to, in STATE/cluster: its identity, 16 hexadecimal digits.
 *
 * The file is written when a controller first welcomes the machine, and then never changed. An operator who
 * removes it while no agent runs lets the machine move to another cluster. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "os/file.h"

enum { DIGITS = 16 };

static void cluster_path(const char *state, char ret_path[PATH_BYTES + 64])
{
    snprintf(ret_path, PATH_BYTES + 64, "%s/cluster", state);
}

static bool parse(struct str text, uint64_t *ret_cluster)
{
    uint64_t cluster = 0;
    if (text.len != DIGITS + 1 || text.data[DIGITS] != '\n')
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        char c = text.data[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
            return false;
        cluster = cluster << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret_cluster = cluster;
    return cluster != 0;
}

int local_cluster_read(const char *state, uint64_t *ret_cluster, struct error *error)
{
    char path[PATH_BYTES + 64];
    struct buf text BUF_CLEANUP = {0};
    cluster_path(state, path);
    *ret_cluster = 0;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    int rc = os_file_read(path, DIGITS + 1, &text, error);
    if (rc == 0 && !parse(buf_str(&text), ret_cluster))
        rc =
            error_set(error, ERROR_CORRUPT,
                      "%s is not the identity of a cluster (%d hexadecimal digits and a newline are "
                      "expected): put back what was there, or remove it to let any cluster have this machine",
                      path, DIGITS);
    return rc;
}

void local_cluster_keep(const struct local_machine *machine)
{
    char path[PATH_BYTES + 64], text[DIGITS + 2];
    struct error error;
    uint64_t cluster = agent_cluster(machine->agent);
    if (!machine->live || cluster == 0)
        return;
    cluster_path(machine->live->directory, path);
    snprintf(text, sizeof text, "%0*llx\n", DIGITS, (unsigned long long)cluster);
    if (os_file_replace(path, str_from(text), 0600, &error) < 0)
        local_warn(machine, str_from(error.text));
}

void local_cluster_stranger(struct local_machine *machine, uint64_t cluster)
{
    const struct local_place *place = local_machine_place(machine);
    struct buf text BUF_CLEANUP = {0};
    buf_printf(
        &text,
        "this machine belongs to cluster %016llx, and the controller at %s:%u is of cluster %016llx: it "
        "is not obeyed; ",
        (unsigned long long)agent_cluster(machine->agent), place->controller, place->port,
        (unsigned long long)cluster);
    if (machine->live)
        buf_printf(&text, "to move the machine there, remove %s/cluster and start its agent again",
                   machine->live->directory);
    else
        buf_printf(&text, "simulated machines move when their agent starts again");
    local_warn(machine, buf_str(&text));
    machine->welcomed = false; /* note the return of its own controller again */
}
