/* Two clients of the flow runtime whose collectives would block each other on devices that ran them as they
 * came: each client has a chain of all-reduces on devices 0 to 2 and one on devices 1 to 3 of 4, and launches
 * them in turn, one client the first chain first, the other one the second. A million launches, and before
 * them a tenth as many with both clients in one order, as the peer. Values are checked all along; bench/run
 * ends a run that hangs. `bench_flow_orders LAUNCHES` makes fewer or more. */
#include <pthread.h>

#include "base/str.h"
#include "flow_chain.h"

enum { HOSTS = 2, DEVICES = 2, CLIENTS = 2, CHAINS = 2, MEMBERS = 3, CHECK_EVERY = 500 };
enum { LAUNCHES = 1000000, LAUNCHES_LEAST = 1000, LAUNCHES_MAX = 50000000, SAME_ORDER_SHARE = 10 };
_Static_assert(LAUNCHES_MAX / (CLIENTS * CHAINS) < 1 << 24, "values are whole numbers of float");

struct orders_chain {
    struct runtime runtime; /* the client's, with the chain's own mesh and type */
    phx_flow_program *program;
    uint64_t value;
};
struct orders_client {
    pthread_t thread;
    struct runtime runtime;
    struct orders_chain chains[CHAINS]; /* in the order of their launches */
    int pairs, done;
};

static void chain_open(struct orders_chain *chain, const struct runtime *runtime, uint32_t first)
{
    static char text[TEXT_MAX];
    float start[MEMBERS] = {0};
    uint32_t from[] = {first, 0, 0}, size[] = {MEMBERS, 0, 0};
    chain->runtime = *runtime;
    struct runtime *own = &chain->runtime;
    bench_must(phx_flow_mesh_slice(own->flow, runtime->mesh.id, from, size, &own->mesh, &own->error), own);
    own->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {MEMBERS}};
    own->cut = (struct phx_flow_sharding){own->mesh.id, {1}};
    bench_text(text, MEMBERS, 1, 0);
    chain->program = runtime_chain(own, text, 1);
    chain->value = phx_flow_put(own->flow, &own->type, &own->cut, start, sizeof start, &own->error);
    bench_must(chain->value ? 0 : -1, own);
}

static void chain_launch(struct orders_chain *chain)
{
    struct runtime *own = &chain->runtime;
    uint64_t next;
    bench_must(phx_flow_launch(own->flow, chain->program, &chain->value, 1, &next, 1, &own->error), own);
    phx_flow_release(own->flow, chain->value);
    chain->value = next;
}

/* Fetches the chain's last value, which is the number of its launches. */
static void chain_check(struct orders_chain *chain, int launches)
{
    struct runtime *own = &chain->runtime;
    float data[MEMBERS];
    bench_must(phx_flow_get(own->flow, chain->value, data, sizeof data, -1, NULL, &own->error), own);
    for (int i = 0; i < MEMBERS; i++)
        if (data[i] != (float)launches) {
            snprintf(own->error.message, sizeof own->error.message, "%g after %d launches", data[i],
                     launches);
            bench_must(-1, own);
        }
}

static void *client_main(void *arg)
{
    struct orders_client *client = arg;
    for (int pair = 0; pair < client->pairs; pair++) {
        for (int c = 0; c < CHAINS; c++)
            chain_launch(&client->chains[c]);
        client->done++;
        if (client->done % CHECK_EVERY == 0 || pair + 1 == client->pairs)
            for (int c = 0; c < CHAINS; c++)
                chain_check(&client->chains[c], client->done);
    }
    return NULL;
}

/* Launches a second of both clients together. */
static double clients_rate(struct orders_client clients[CLIENTS], int launches)
{
    int64_t begin_ns = now_ns();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].pairs = launches / (CLIENTS * CHAINS);
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0)
            bench_must(-1, &clients[i].runtime);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    return launches * 1e9 / (double)(now_ns() - begin_ns);
}

int main(int argc, char **argv)
{
    static struct orders_client clients[CLIENTS];
    int64_t launches = LAUNCHES;
    if (argc > 1 && !str_to_i64(str_from(argv[1]), LAUNCHES_LEAST, LAUNCHES_MAX, &launches))
        return 1;
    runtime_start(&clients[0].runtime, HOSTS, DEVICES);
    for (int i = 1; i < CLIENTS; i++) {
        clients[i].runtime = clients[0].runtime;
        runtime_join(&clients[i].runtime, HOSTS * DEVICES);
    }
    for (int i = 0; i < CLIENTS; i++)
        for (uint32_t c = 0; c < CHAINS; c++)
            chain_open(&clients[i].chains[c], &clients[i].runtime, c);
    double same = clients_rate(clients, (int)launches / SAME_ORDER_SHARE);
    struct orders_chain first = clients[1].chains[0];
    clients[1].chains[0] = clients[1].chains[1];
    clients[1].chains[1] = first;
    double opposite = clients_rate(clients, (int)launches);
    printf("{\"bench\":\"flow_orders\",\"case\":\"launches of 2 clients in opposite orders\",\"value\":%.4g,"
           "\"unit\":\"1/s\",\"peer\":\"in one order\",\"peer_value\":%.4g,\"ratio_peer\":%.3f}\n",
           opposite, same, opposite / same);
    int right = CHAINS * (clients[0].done + clients[1].done);
    printf("{\"bench\":\"flow_orders\",\"case\":\"launches that came to their values\",\"value\":%d,"
           "\"unit\":\"launches\"}\n",
           right);
    for (int i = 0; i < CLIENTS; i++)
        for (int c = 0; c < CHAINS; c++)
            phx_flow_program_free(clients[i].chains[c].program);
    for (int i = 1; i < CLIENTS; i++)
        phx_flow_close(clients[i].runtime.flow);
    runtime_stop(&clients[0].runtime);
    return 0;
}
