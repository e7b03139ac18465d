/* list.h - intrusive doubly linked lists; a head is a node that points to itself when the list is empty. */
#ifndef PHX_BASE_LIST_H
#define PHX_BASE_LIST_H

#include <stdbool.h>
#include "base/heap.h" /* container_of */

struct list_node {
    struct list_node *next, *prev;
};

static inline void list_init(struct list_node *head)
{
    head->next = head->prev = head;
}
static inline bool list_empty(const struct list_node *head)
{
    return head->next == head;
}
static inline void list_append(struct list_node *head, struct list_node *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}
/* Takes the node out; it points to itself afterwards, so removing twice is harmless. */
static inline void list_remove(struct list_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = node;
}
#define list_for_each(node, head)                                                                            \
    for (struct list_node *node = (head)->next; node != (head); node = node->next)
/* As list_for_each, but the body may remove `node`. */
#define list_for_each_safe(node, after, head)                                                                \
    for (struct list_node *node = (head)->next, *after = node->next; node != (head);                         \
         node = after, after = node->next)

#endif
