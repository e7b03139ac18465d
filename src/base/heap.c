#include "base/heap.h"

#include "base/vec.h"

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

/* Positions are 1-based: children of p are 2p and 2p + 1. */
static void put(struct heap *heap, size_t position, struct heap_node *node)
{
    heap->nodes[position - 1] = node;
    node->position = position;
}

static void sift_up(struct heap *heap, size_t position, struct heap_node *node)
{
    for (; position > 1 && before(node, heap->nodes[position / 2 - 1]); position /= 2)
        put(heap, position, heap->nodes[position / 2 - 1]);
    put(heap, position, node);
}

static void sift_down(struct heap *heap, size_t position, struct heap_node *node)
{
    for (;;) {
        size_t child = 2 * position;
        if (child > heap->len)
            break;
        if (child < heap->len && before(heap->nodes[child], heap->nodes[child - 1]))
            child++;
        if (!before(heap->nodes[child - 1], node))
            break;
        put(heap, position, heap->nodes[child - 1]);
        position = child;
    }
    put(heap, position, node);
}

void heap_insert(struct heap *heap, struct heap_node *node)
{
    CHECK(node->position == 0);
    vec_grow((void **)&heap->nodes, &heap->cap, heap->len + 1, sizeof(struct heap_node *));
    heap->len++;
    sift_up(heap, heap->len, node);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    size_t position = node->position;
    CHECK(position > 0 && position <= heap->len && heap->nodes[position - 1] == node);
    struct heap_node *last = heap->nodes[--heap->len];
    node->position = 0;
    if (last == node)
        return;
    if (position > 1 && before(last, heap->nodes[position / 2 - 1]))
        sift_up(heap, position, last);
    else
        sift_down(heap, position, last);
}

struct heap_node *heap_min(const struct heap *heap)
{
    return heap->len ? heap->nodes[0] : NULL;
}

void heap_done(struct heap *heap)
{
    for (size_t i = 0; i < heap->len; i++)
        heap->nodes[i]->position = 0;
    mem_free(heap->nodes);
    *heap = (struct heap){0};
}
