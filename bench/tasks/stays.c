/* stays FILE: a rank that lives through the loss of others: it makes steps until FILE is there, and meets the
 * others anew when some are lost. Rank 0 says in which step all of them end.
 *
 * Nothing is saved or loaded, so what is seen is the cluster's own part of a recovery.
 */
#include <phalanx/phalanx.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 20, TEXT_MAX = 32 };

static int fail(const struct phx_error *error)
{
    fprintf(stderr, "stays: %s\n", error->message);
    return 1;
}

/* Makes one step of all ranks; *over: it was the last. */
static int step(phx_context *ctx, const char *file, uint64_t number, int *over, struct phx_error *error)
{
    static const struct timespec pause = {0, STEP_MS * 1000000};
    char key[TEXT_MAX], value = '0';
    size_t len = 0;
    snprintf(key, sizeof key, "over-%llu", (unsigned long long)number);
    if (phx_rank(ctx) == 0) {
        value = access(file, F_OK) == 0 ? '1' : '0';
        int rc = phx_kv_put(ctx, key, &value, 1, error);
        if (rc != 0)
            return rc;
    }
    int rc = phx_kv_get(ctx, key, &value, 1, &len, -1, error);
    if (rc == 0)
        rc = phx_barrier(ctx, -1, error);
    if (rc != 0)
        return rc;
    *over = value == '1';
    nanosleep(&pause, NULL);
    return phx_step(ctx, number, NULL, 0, error);
}

int main(int argc, char **argv)
{
    struct phx_error error;
    struct phx_options options = {.size = sizeof options, .rejoins = 1};
    phx_context *ctx;
    if (argc != 2)
        return 2;
    if (phx_join(&options, &ctx, &error) != 0)
        return fail(&error);
    int over = 0;
    for (uint64_t number = 1; !over;) { /* all count from the newest meeting on */
        int rc = step(ctx, argv[1], number++, &over, &error);
        if (rc == 0)
            continue;
        if (rc != PHX_ERROR_PEER && rc != PHX_ERROR_REJOIN)
            return fail(&error);
        if (phx_rejoin(ctx, -1, &error) != 0)
            return fail(&error);
        number = 1;
        over = 0;
    }
    return phx_leave(ctx, &error) == 0 ? 0 : fail(&error);
}
