/* pickle.h - the plain-data part of Python's pickle protocol 2, read into documents.
 *
 * Only opcodes for data are accepted: dicts, lists, tuples (which become arrays), Unicode strings, integers,
 * floats, booleans and None. Every opcode that names, calls or builds something (GLOBAL, REDUCE, ...) is
 * refused, so reading a pickle can never run code.
 *
 * A memo may name any value, and a value that is used twice is one node of the result, which is then a graph
 * without cycles instead of a tree. A container may not change once it is part of another or was taken from
 * the memo, which rules cycles out; and the result is bounded as if every node were counted each time that it
 * is reached, so that walking it recursively costs no more than the bound. Such a document must not be
 * changed in place.
 *
 * Keys must be strings; integers (a dict from ids) become their decimal text. `line` and `column` of nodes
 * are 0.
 */
#ifndef PHX_DOC_PICKLE_H
#define PHX_DOC_PICKLE_H

#include "doc/doc.h"
#include "base/error.h"

enum {
    PICKLE_DEPTH_MAX = 64,       /* nested containers, as JSON_DEPTH_MAX */
    PICKLE_STACK_MAX = 1 << 20,  /* values that wait for their container */
    PICKLE_MEMO_MAX = 1 << 20,   /* highest number in the memo plus one */
    PICKLE_NODES_MAX = 16 << 20, /* of the result, shared ones counted each time */
};

/* Returns whether the text begins as a pickle of protocol 2. JSON never does. */
bool pickle_is(struct str bytes);

/* Reads exactly one value. Strict: protocol 2, UTF-8 without NUL, no duplicate keys, nothing after STOP.
 * Integers of more than 64 bits and floats that are not finite become null. The memory stays within
 * arena->limit_bytes. Returns 0, or ERROR_INVALID / ERROR_LIMIT / ERROR_UNSUPPORTED with "byte N: why".
 */
int pickle_parse(struct arena *arena, struct str bytes, struct doc **ret_doc, struct error *error);

#endif
