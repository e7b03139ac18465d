/* pack.h - parts of documents kept as text instead of a tree.
 *
 * A tree of small strings takes up to 28 times the memory of its text. The parts of stored objects that
 * nothing reads while they are at rest (the data of a ConfigMap, metadata.managedFields) are packed: one node
 * of kind DOC_PACKED holds their compact JSON. Writers of JSON copy that text; doc_len returns its number of
 * items or members; doc_clone copies it packed; doc_equal compares it by content. A reader unpacks it:
 *
 *     const struct doc *data = doc_unpacked(&arena, doc_get(document, "data"));
 */
#ifndef PHX_DOC_PACK_H
#define PHX_DOC_PACK_H

#include "doc/doc.h"

/* Returns a packed node in `arena` for an array or object. Any other node is cloned. */
struct doc *doc_packed(struct arena *arena, const struct doc *node);
/* Returns the tree of a packed node, made in `arena`. Any other node, or NULL, is returned itself. */
const struct doc *doc_unpacked(struct arena *arena, const struct doc *node);
/* Returns the bytes with which a document is charged: the texts of its keys and values, and DOC_NODE_BYTES
 * for each node. The number is the same on every machine, and at least half of the memory that an arena
 * uses. */
size_t doc_bytes(const struct doc *node);
#define DOC_NODE_BYTES 128

#endif
