#include "core/fabric/prove.h"

#include "base/arena.h"
#include "base/check.h"

enum { CHANNELS = 4 }; /* node numbers have space for a fourth virtual channel */
_Static_assert((int)ROUTE_VCS <= (int)CHANNELS,
               "a node of the dependency graph has two bits for its virtual channel");

struct prover {
    const struct torus *torus;
    const struct route *route;
    struct proof *proof;
    uint32_t *load;
    uint32_t
        *leads; /* [(chip * CHIP_PORTS + port) * CHANNELS + vc]: bits port * CHANNELS + vc of the next chip */
    uint32_t
        *walk; /* [chips] walk that visited the chip: numbers grow, and those of a destination are adjacent */
    uint16_t *hops; /* [chips] hops to the current destination */
    uint32_t *flow; /* [chips] packets for the current destination by the transit table */
    uint16_t *tree; /* [2 * chips] visited chips, each after its next chip; then a stack */
    uint32_t tree_count;
    uint32_t vcs_used; /* bits */
};

static int fail(const struct prover *prover, uint32_t chip, uint32_t to, const char *what,
                struct error *error)
{
    const struct torus *torus = prover->torus;
    return error_set(error, ERROR_CORRUPT, "routes: chip (%u,%u,%u), packets for (%u,%u,%u): %s",
                     torus->at[0][chip], torus->at[1][chip], torus->at[2][chip], torus->at[0][to],
                     torus->at[1][to], torus->at[2][to], what);
}

/* Returns the fault of an entry that a packet meets, or NULL. */
static const char *fault_of(const struct prover *prover, uint32_t chip, uint8_t entry)
{
    if (entry >= ROUTE_NONE)
        return "no entry";
    if (route_port(entry) >= CHIP_PORTS || route_vc(entry) >= ROUTE_VCS)
        return "a port or virtual channel that does not exist";
    if (!torus_link_live(prover->torus, chip, route_port(entry)))
        return "a port without a live link";
    return NULL;
}

/* Adds the edge from the channel that leaves `chip` by `entry` to the channel of `next` at the chip after
 * it. */
static inline void depend(struct prover *prover, uint32_t chip, uint8_t entry, uint8_t next)
{
    uint32_t node = (chip * CHIP_PORTS + route_port(entry)) * CHANNELS + route_vc(entry);
    prover->leads[node] |= 1u << (route_port(next) * CHANNELS + route_vc(next));
}

static inline uint16_t behind(const struct prover *prover, uint32_t chip, uint8_t entry)
{
    return prover->torus->next[chip * CHIP_PORTS + route_port(entry)];
}

/* Follows the transit table from a chip to the destination or to a chip visited before. */
static int follow(struct prover *prover, uint32_t from, uint32_t to, uint32_t walk, const uint8_t *transit,
                  struct error *error)
{
    uint32_t chips = prover->torus->chips, depth = 0, oldest = to * chips + 1, chip = from;
    uint16_t *stack = prover->tree + chips;
    while (chip != to && prover->walk[chip] < oldest) {
        uint8_t entry = transit[chip];
        const char *fault = fault_of(prover, chip, entry);
        if (fault)
            return fail(prover, chip, to, fault, error);
        if (depth > 0)
            depend(prover, stack[depth - 1], transit[stack[depth - 1]], entry);
        prover->walk[chip] = walk;
        prover->hops[chip] = 0; /* not known yet */
        stack[depth++] = (uint16_t)chip;
        chip = behind(prover, chip, entry);
    }
    if (chip != to && prover->hops[chip] == 0)
        return fail(prover, chip, to, "the transit table leads round a loop", error);
    if (chip != to && depth > 0)
        depend(prover, stack[depth - 1], transit[stack[depth - 1]], transit[chip]);
    uint16_t hops = chip == to ? 0 : prover->hops[chip];
    while (depth > 0) {
        chip = stack[--depth];
        prover->hops[chip] = ++hops;
        prover->tree[prover->tree_count++] = (uint16_t)chip;
    }
    return 0;
}

static int prove_source(struct prover *prover, uint32_t from, uint32_t to, const uint8_t *inject,
                        const uint8_t *transit, struct error *error)
{
    struct proof *proof = prover->proof;
    uint8_t entry = inject[from];
    const char *fault = fault_of(prover, from, entry);
    if (fault)
        return fail(prover, from, to, fault, error);
    uint16_t next = behind(prover, from, entry);
    uint32_t hops = 1;
    prover->load[from * CHIP_PORTS + route_port(entry)]++;
    if (next != to) {
        if (follow(prover, next, to, to * prover->torus->chips + from + 1, transit, error) < 0)
            return ERROR_CORRUPT;
        depend(prover, from, entry, transit[next]);
        prover->flow[next]++;
        hops += prover->hops[next];
    }
    proof->pairs++;
    proof->hops_sum += hops;
    proof->hops_max = hops > proof->hops_max ? hops : proof->hops_max;
    proof->detours += route_vc(entry) == ROUTE_VC_DETOUR;
    prover->vcs_used |= 1u << route_vc(entry);
    return 0;
}

static int prove_destination(struct prover *prover, uint32_t to, struct error *error)
{
    uint32_t chips = prover->torus->chips;
    const uint8_t *transit = prover->route->transit + (size_t)to * chips;
    const uint8_t *inject = prover->route->inject ? prover->route->inject + (size_t)to * chips : transit;
    prover->tree_count = 0;
    memset(prover->flow, 0, chips * sizeof *prover->flow);
    for (uint32_t from = 0; from < chips; from++)
        if (from != to && prove_source(prover, from, to, inject, transit, error) < 0)
            return ERROR_CORRUPT;
    while (prover->tree_count > 0) {
        uint16_t chip = prover->tree[--prover->tree_count];
        uint16_t next = behind(prover, chip, transit[chip]);
        prover->load[chip * (uint32_t)CHIP_PORTS + route_port(transit[chip])] += prover->flow[chip];
        prover->flow[next] += prover->flow[chip];
        prover->vcs_used |= 1u << route_vc(transit[chip]);
    }
    CHECK(prover->flow[to] < chips);
    return 0;
}

/* Returns the channel at bit `bit` of a node's edges. */
static inline uint32_t node_behind(const struct prover *prover, uint32_t node, uint32_t bit)
{
    return prover->torus->next[node / CHANNELS] * (uint32_t)(CHIP_PORTS * CHANNELS) + bit;
}

/* Removes channels that no channel leads to until none is left (Kahn's topological sort). */
static int prove_acyclic(struct prover *prover, struct arena *arena, struct error *error)
{
    uint32_t nodes = prover->torus->chips * CHIP_PORTS * CHANNELS, first = 0, last = 0;
    uint8_t *into = ARENA_ARRAY(arena, uint8_t, nodes);
    uint32_t *queue = ARENA_ARRAY(arena, uint32_t, nodes);
    for (uint32_t node = 0; node < nodes; node++)
        for (uint32_t bits = prover->leads[node]; bits; bits &= bits - 1)
            into[node_behind(prover, node, (uint32_t)__builtin_ctz(bits))]++;
    for (uint32_t node = 0; node < nodes; node++)
        if (into[node] == 0)
            queue[last++] = node;
    while (first < last) {
        uint32_t node = queue[first++];
        for (uint32_t bits = prover->leads[node]; bits; bits &= bits - 1) {
            uint32_t next = node_behind(prover, node, (uint32_t)__builtin_ctz(bits));
            CHECK(into[next] > 0);
            if (--into[next] == 0)
                queue[last++] = next;
        }
    }
    for (uint32_t node = 0; node < nodes && last < nodes; node++)
        if (into[node] > 0) {
            const struct torus *torus = prover->torus;
            uint32_t chip = node / (CHIP_PORTS * CHANNELS);
            return error_set(
                error, ERROR_CORRUPT,
                "routes: %u channels wait for each other in a circle; near it: chip (%u,%u,%u), port %u, "
                "virtual channel %u",
                nodes - last, torus->at[0][chip], torus->at[1][chip], torus->at[2][chip],
                node / CHANNELS % CHIP_PORTS, node % CHANNELS);
        }
    return 0;
}

int route_prove(const struct torus *torus, const struct route *route, struct proof *ret_proof,
                uint32_t *ret_load, struct error *error)
{
    if (route->chips != torus->chips)
        return error_set(error, ERROR_CORRUPT, "routes: tables for %u chips, the slice has %u", route->chips,
                         torus->chips);
    struct arena arena ARENA_CLEANUP = {0};
    struct proof proof = {.tables = route->inject ? 2 : 1};
    uint32_t links = torus->chips * CHIP_PORTS;
    struct prover prover = {
        .torus = torus,
        .route = route,
        .proof = &proof,
        .load = ARENA_ARRAY(&arena, uint32_t, links),
        .leads = ARENA_ARRAY(&arena, uint32_t, links * (size_t)CHANNELS),
        .walk = ARENA_ARRAY(&arena, uint32_t, torus->chips),
        .hops = ARENA_ARRAY(&arena, uint16_t, torus->chips),
        .flow = ARENA_ARRAY(&arena, uint32_t, torus->chips),
        .tree = ARENA_ARRAY(&arena, uint16_t, 2 * (size_t)torus->chips),
    };
    for (uint32_t to = 0; to < torus->chips; to++)
        if (prove_destination(&prover, to, error) < 0)
            return ERROR_CORRUPT;
    if (prove_acyclic(&prover, &arena, error) < 0)
        return ERROR_CORRUPT;
    CHECK(proof.pairs == (uint64_t)torus->chips * (torus->chips - 1));
    for (uint32_t link = 0; link < links; link++)
        proof.load_max = prover.load[link] > proof.load_max ? prover.load[link] : proof.load_max;
    proof.vcs = (uint32_t)__builtin_popcount(prover.vcs_used);
    if (ret_load)
        mem_copy(ret_load, prover.load, links * sizeof *ret_load);
    *ret_proof = proof;
    return 0;
}
