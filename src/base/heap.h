/* heap.h - an intrusive binary min-heap, ordered by (key, tie): equal keys leave in the order of their ties.
 *
 *     struct timer { struct heap_node node; ... };
 *     timer->node.key = due_ns; timer->node.tie = id; heap_insert(&heap, &timer->node);
 *     while ((node = heap_min(&heap)) && node->key <= now)
 *         heap_remove(&heap, node);
 *
 * The heap owns only its pointer array. Not thread-safe.
 */
#ifndef PHX_BASE_HEAP_H
#define PHX_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct heap_node {
    int64_t key;
    uint64_t tie;
    size_t position; /* 1-based place in the heap; 0: not in it */
};
struct heap {
    struct heap_node **nodes;
    size_t len, cap;
};

void heap_insert(struct heap *heap, struct heap_node *node); /* node must not be in a heap */
void heap_remove(struct heap *heap, struct heap_node *node); /* node must be in this heap */
struct heap_node *heap_min(const struct heap *heap);         /* NULL when empty */
static inline bool heap_has(const struct heap_node *node)
{
    return node->position != 0;
}
void heap_done(struct heap *heap); /* frees the array; nodes are the caller's */

#endif
