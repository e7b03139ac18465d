/* The clock tree: Prim's minimum spanning tree by round-trip time, from the slice's first chip. */
#include "base/heap.h"
#include "core/fabric/session_private.h"

struct clock_edge {
    struct heap_node node; /* sorted by round-trip time, then by distance from the root, then by chip */
    uint8_t port;          /* from the chip towards the root */
};

/* Offers the links of a chip in the tree to chips outside it. */
static void clock_offer(struct fabric_session *session, uint16_t chip, struct clock_edge *edges,
                        struct heap *heap)
{
    const struct torus *torus = &session->torus;
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint16_t next = torus->next[chip * CHIP_PORTS + port];
        if (!torus_link_live(torus, chip, port) || session->chips[next].path_ns >= 0)
            continue;
        struct clock_edge *edge = &edges[next];
        int64_t rtt_ns = session->chips[chip].rtt_ns[port];
        CHECK(rtt_ns > 0 && rtt_ns == session->chips[next].rtt_ns[port ^ 1]);
        uint64_t tie = (uint64_t)(session->chips[chip].path_ns + rtt_ns / 2) << 16 | next;
        bool nearer = !heap_has(&edge->node) || rtt_ns < edge->node.key ||
                      (rtt_ns == edge->node.key && tie < edge->node.tie);
        if (!nearer)
            continue;
        if (heap_has(&edge->node))
            heap_remove(heap, &edge->node);
        edge->node.key = rtt_ns;
        edge->node.tie = tie;
        edge->port = (uint8_t)(port ^ 1);
        heap_insert(heap, &edge->node);
    }
}

void session_clock_tree(struct fabric_session *session)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct heap heap = {0};
    uint32_t chips = session->torus.chips, count = 1;
    struct clock_edge *edges = ARENA_ARRAY(&arena, struct clock_edge, chips);
    for (uint32_t chip = 0; chip < chips; chip++) {
        session->chips[chip].path_ns = chip == 0 ? 0 : -1;
        session->chips[chip].parent = FABRIC_NO_PORT;
        session->chips[chip].children = 0;
    }
    session->summary.tree_ns = 0;
    clock_offer(session, 0, edges, &heap);
    for (struct heap_node *node; (node = heap_min(&heap)); count++) {
        struct clock_edge *edge = container_of(node, struct clock_edge, node);
        uint16_t chip = (uint16_t)(edge - edges);
        uint16_t parent = session->torus.next[chip * CHIP_PORTS + edge->port];
        heap_remove(&heap, node);
        CHECK(session->chips[chip].path_ns < 0 && session->chips[parent].path_ns >= 0);
        session->chips[chip].parent = edge->port;
        session->chips[parent].children |= (uint8_t)(1u << (edge->port ^ 1));
        session->chips[chip].path_ns = session->chips[parent].path_ns + node->key / 2;
        if (session->chips[chip].path_ns > session->summary.tree_ns)
            session->summary.tree_ns = session->chips[chip].path_ns;
        clock_offer(session, chip, edges, &heap);
    }
    CHECK(count == chips && session->chips[0].parent == FABRIC_NO_PORT && heap.len == 0);
    heap_done(&heap);
}
