#include "doc/pickle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "doc/json.h"
#include "base/vec.h"

/* A value and its weight for the limits. Containers are made one size larger, so that the memo and the stack
 * see the same weight when they grow. */
struct node {
    struct doc doc;
    uint32_t weight; /* nodes that walking it visits, itself included */
    uint32_t height; /* containers in containers; 0: a scalar */
    bool frozen;     /* part of another container, or taken from the memo: it may not change */
};

struct reader {
    struct arena *arena;
    const unsigned char *data;
    size_t len, at, op_at; /* op_at: of the opcode that is carried out */
    VEC(struct node *) stack;
    VEC(size_t) marks; /* heights of the stack */
    VEC(struct node *) memo;
    struct error *error;
};

/* Opcodes: https://docs.python.org/3/library/pickletools.html */
enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINUNICODE = 'X',
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_EMPTY_TUPLE = ')',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
};

/* Fails at the current opcode. */
static int fail(struct reader *reader, enum error_code code, const char *why)
{
    return error_set(reader->error, code, "byte %zu: %s", reader->op_at, why);
}

static int fail_memory(struct reader *reader)
{
    return error_set(reader->error, ERROR_LIMIT,
                     "byte %zu: the pickle needs more than the %zu bytes of memory allowed", reader->op_at,
                     reader->arena->limit_bytes);
}

/* Takes `size` bytes of an argument. Returns NULL with the error set if the text ends before. */
static const unsigned char *take(struct reader *reader, size_t size)
{
    if (reader->len - reader->at < size) {
        fail(reader, ERROR_INVALID, "the pickle ends within this opcode");
        return NULL;
    }
    const unsigned char *data = reader->data + reader->at;
    reader->at += size;
    return data;
}

static uint64_t little(const unsigned char *data, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | data[i];
    return value;
}

/* --- values --------------------------------------------------------------------------------------- */

static int push(struct reader *reader, struct node *node)
{
    if (reader->stack.len == PICKLE_STACK_MAX)
        return fail(reader, ERROR_LIMIT, "too many values wait for their container");
    vec_push(&reader->stack, node);
    return 0;
}

/* Pushes a new value on the stack. Returns NULL with the error set if a limit is exceeded. */
static struct node *make(struct reader *reader, enum doc_kind kind)
{
    struct node *node = arena_try_alloc(reader->arena, sizeof *node);
    if (!node) {
        fail_memory(reader);
        return NULL;
    }
    node->doc.kind = kind;
    node->weight = 1;
    node->height = kind == DOC_ARRAY || kind == DOC_OBJECT;
    return push(reader, node) < 0 ? NULL : node;
}

static int make_int(struct reader *reader, int64_t value)
{
    struct node *node = make(reader, DOC_INT);
    if (!node)
        return ERROR_LIMIT;
    node->doc.integer = value;
    return 0;
}

static int make_bool(struct reader *reader, bool value)
{
    struct node *node = make(reader, DOC_BOOL);
    if (!node)
        return ERROR_LIMIT;
    node->doc.boolean = value;
    return 0;
}

/* Pushes null for a number that a document cannot hold: one odd value must not discard the rest. */
static int make_null(struct reader *reader)
{
    return make(reader, DOC_NULL) ? 0 : ERROR_LIMIT;
}

/* Reads a number in two's complement, least byte first, of any length. */
static int read_long(struct reader *reader)
{
    const unsigned char *size = take(reader, 1);
    const unsigned char *data = size ? take(reader, *size) : NULL;
    if (!data)
        return ERROR_INVALID;
    size_t len = *size, used = len < 8 ? len : 8;
    uint64_t value = little(data, used);
    bool negative = len > 0 && (data[len - 1] & 0x80);
    if (negative && used < 8)
        value |= UINT64_MAX << (8 * used);
    for (size_t i = 8; i < len; i++)
        if (data[i] != (negative ? 0xff : 0))
            return make_null(reader); /* more than 64 bits */
    if (len > 8 && ((int64_t)value < 0) != negative)
        return make_null(reader);
    return make_int(reader, (int64_t)value);
}

static int read_float(struct reader *reader)
{
    const unsigned char *data = take(reader, 8);
    if (!data)
        return ERROR_INVALID;
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) /* the one number with its greatest byte first */
        bits = bits << 8 | data[i];
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        return make_null(reader);
    struct node *node = make(reader, DOC_FLOAT);
    if (!node)
        return ERROR_LIMIT;
    struct buf BUF_CLEANUP text = {0};
    json_write_float(&text, value);
    char *copy = arena_try_alloc(reader->arena, text.len + 1);
    if (!copy)
        return fail_memory(reader);
    mem_copy(copy, text.data, text.len);
    node->doc.number = value;
    node->doc.text = (struct str){copy, text.len};
    return 0;
}

/* Returns whether the text is UTF-8 without NUL. Rank lists of large jobs are long and all ASCII, so ASCII is
 * tested eight bytes at a time. */
static bool is_text(struct str text)
{
    const uint64_t high = UINT64_C(0x8080808080808080), ones = UINT64_C(0x0101010101010101);
    size_t at = 0;
    for (; at + 8 <= text.len; at += 8) {
        uint64_t word;
        memcpy(&word, text.data + at, sizeof word);
        if ((word | (word - ones)) & high)
            break;
    }
    struct str rest = {text.data + at, text.len - at};
    return str_is_utf8(rest) && (rest.len == 0 || !memchr(rest.data, 0, rest.len));
}

static int read_text(struct reader *reader)
{
    const unsigned char *size = take(reader, 4);
    const unsigned char *data = size ? take(reader, little(size, 4)) : NULL;
    if (!data)
        return ERROR_INVALID;
    struct str text = {(const char *)data, little(size, 4)};
    if (!is_text(text))
        return fail(reader, ERROR_INVALID, "a string that is not UTF-8 without NUL");
    char *copy = arena_try_alloc(reader->arena, text.len + 1);
    if (!copy)
        return fail_memory(reader);
    mem_copy(copy, text.data, text.len);
    struct node *node = make(reader, DOC_STRING);
    if (!node)
        return ERROR_LIMIT;
    node->doc.text = (struct str){copy, text.len};
    return 0;
}

/* --- containers ----------------------------------------------------------------------------------- */

/* Removes the newest mark. The values above it, from *ret_from on, stay on the stack for the caller to use
 * and drop. */
static int to_mark(struct reader *reader, size_t *ret_from)
{
    if (reader->marks.len == 0)
        return fail(reader, ERROR_INVALID, "no MARK belongs to this opcode");
    *ret_from = vec_pop(&reader->marks);
    CHECK(*ret_from <= reader->stack.len);
    return 0;
}

/* Finds the container before place `from`, which takes the values from there on. Marks below are never
 * crossed. */
static int container_at(struct reader *reader, size_t from, enum doc_kind kind, struct node **ret_node)
{
    size_t floor = reader->marks.len ? vec_last(&reader->marks) : 0;
    if (from <= floor || reader->stack.items[from - 1]->doc.kind != kind)
        return fail(reader, ERROR_INVALID,
                    kind == DOC_ARRAY ? "items without a list before them"
                                      : "items without a dict before them");
    struct node *node = reader->stack.items[from - 1];
    if (node->frozen)
        return fail(reader, ERROR_INVALID, "a container changes that is already part of another value");
    *ret_node = node;
    return 0;
}

/* Freezes a value, which may not change any more. Keys are compared once, when a dict is complete. */
static int freeze(struct reader *reader, struct node *node)
{
    const struct doc_member *second, *first;
    if (node->frozen)
        return 0;
    node->frozen = true;
    if (node->doc.kind == DOC_OBJECT && doc_duplicate(&node->doc, &second, &first))
        return error_set(reader->error, ERROR_INVALID, "byte %zu: the key \"%.*s\" is twice in a dict",
                         reader->op_at, (int)(second->key.len < 128 ? second->key.len : 128),
                         second->key.data);
    return 0;
}

/* Counts `child` as part of `parent`, once more if it is shared. */
static int adopt(struct reader *reader, struct node *parent, struct node *child)
{
    CHECK(!parent->frozen);
    int code = freeze(reader, child);
    if (code < 0)
        return code;
    if (child == parent)
        return fail(reader, ERROR_INVALID, "a container that holds itself");
    if (child->weight > PICKLE_NODES_MAX - parent->weight)
        return fail(reader, ERROR_LIMIT, "too many values, counting shared values each time");
    parent->weight += child->weight;
    if (parent->height < child->height + 1)
        parent->height = child->height + 1;
    if (parent->height > PICKLE_DEPTH_MAX)
        return fail(reader, ERROR_LIMIT, "nested too deep");
    return 0;
}

static int add_items(struct reader *reader, struct node *list, size_t from)
{
    for (size_t i = from; i < reader->stack.len; i++) {
        struct node *item = reader->stack.items[i];
        int code = adopt(reader, list, item);
        if (code < 0)
            return code;
        if (!doc_try_push(reader->arena, &list->doc, &item->doc))
            return fail_memory(reader);
    }
    reader->stack.len = from;
    return 0;
}

static int key_of(struct reader *reader, const struct doc *node, struct str *ret_key)
{
    if (node->kind == DOC_STRING) {
        *ret_key = node->text;
        return 0;
    }
    if (node->kind != DOC_INT)
        return error_set(reader->error, ERROR_INVALID,
                         "byte %zu: a key must be a string or an integer, not %s", reader->op_at,
                         doc_kind_name(node->kind));
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, node->integer);
    char *copy = arena_try_alloc(reader->arena, (size_t)len + 1);
    if (!copy)
        return fail_memory(reader);
    memcpy(copy, text, (size_t)len + 1);
    *ret_key = (struct str){copy, (size_t)len};
    return 0;
}

static int add_members(struct reader *reader, struct node *dict, size_t from)
{
    if ((reader->stack.len - from) % 2)
        return fail(reader, ERROR_INVALID, "a key without a value");
    for (size_t i = from; i < reader->stack.len; i += 2) {
        struct node *value = reader->stack.items[i + 1];
        struct doc_member member = {.value = &value->doc};
        int code = key_of(reader, &reader->stack.items[i]->doc, &member.key);
        if (code == 0)
            code = adopt(reader, dict, value);
        if (code < 0)
            return code;
        if (!doc_try_add(reader->arena, &dict->doc, member))
            return fail_memory(reader);
    }
    reader->stack.len = from;
    return 0;
}

/* Replaces the newest `count` values by an array of them. */
static int make_tuple(struct reader *reader, size_t count)
{
    size_t floor = reader->marks.len ? vec_last(&reader->marks) : 0;
    if (reader->stack.len - floor < count)
        return fail(reader, ERROR_INVALID, "a tuple without its values");
    size_t from = reader->stack.len - count;
    struct node *tuple = make(reader, DOC_ARRAY);
    if (!tuple)
        return ERROR_LIMIT;
    reader->stack.len--;
    int code = add_items(reader, tuple, from);
    if (code < 0)
        return code;
    tuple->frozen = true;
    return push(reader, tuple);
}

static int append(struct reader *reader, bool many)
{
    size_t from = reader->stack.len - 1;
    struct node *list;
    int code = many                ? to_mark(reader, &from)
               : reader->stack.len ? 0
                                   : fail(reader, ERROR_INVALID, "nothing to append");
    if (code == 0)
        code = container_at(reader, from, DOC_ARRAY, &list);
    return code < 0 ? code : add_items(reader, list, from);
}

static int set(struct reader *reader, bool many)
{
    size_t from = reader->stack.len - 2;
    struct node *dict;
    int code = many                     ? to_mark(reader, &from)
               : reader->stack.len >= 2 ? 0
                                        : fail(reader, ERROR_INVALID, "nothing to set");
    if (code == 0)
        code = container_at(reader, from, DOC_OBJECT, &dict);
    return code < 0 ? code : add_members(reader, dict, from);
}

/* --- the memo ------------------------------------------------------------------------------------- */

static int memo_put(struct reader *reader, size_t size)
{
    const unsigned char *data = take(reader, size);
    if (!data)
        return ERROR_INVALID;
    size_t floor = reader->marks.len ? vec_last(&reader->marks) : 0, index = little(data, size);
    if (reader->stack.len <= floor)
        return fail(reader, ERROR_INVALID, "nothing to remember");
    if (index >= PICKLE_MEMO_MAX)
        return fail(reader, ERROR_LIMIT, "a memo of too many values");
    while (reader->memo.len <= index)
        vec_push(&reader->memo, NULL);
    reader->memo.items[index] = vec_last(&reader->stack);
    return 0;
}

static int memo_get(struct reader *reader, size_t size)
{
    const unsigned char *data = take(reader, size);
    if (!data)
        return ERROR_INVALID;
    size_t index = little(data, size);
    if (index >= reader->memo.len || !reader->memo.items[index])
        return fail(reader, ERROR_INVALID, "the memo has no such value");
    struct node *node = reader->memo.items[index];
    int code = freeze(reader, node);
    return code < 0 ? code : push(reader, node);
}

/* --- reading -------------------------------------------------------------------------------------- */

static int refuse(struct reader *reader, unsigned char op)
{
    bool printable = op > ' ' && op < 0x7f;
    return error_set(reader->error, ERROR_UNSUPPORTED,
                     printable ? "byte %zu: opcode '%c' holds no plain data"
                               : "byte %zu: opcode 0x%02x holds no plain data",
                     reader->op_at, op);
}

static int read_number(struct reader *reader, size_t size)
{
    const unsigned char *data = take(reader, size);
    if (!data)
        return ERROR_INVALID;
    uint64_t value = little(data, size);
    return make_int(reader, size == 4 ? (int32_t)(uint32_t)value : (int64_t)value);
}

static int step(struct reader *reader, unsigned char op)
{
    switch (op) {
    case OP_MARK:
        if (reader->marks.len == PICKLE_STACK_MAX)
            return fail(reader, ERROR_LIMIT, "too many containers are open");
        vec_push(&reader->marks, reader->stack.len);
        return 0;
    case OP_EMPTY_DICT:
        return make(reader, DOC_OBJECT) ? 0 : ERROR_LIMIT;
    case OP_EMPTY_LIST:
        return make(reader, DOC_ARRAY) ? 0 : ERROR_LIMIT;
    case OP_EMPTY_TUPLE:
        return make_tuple(reader, 0);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return make_tuple(reader, (size_t)op - OP_TUPLE1 + 1);
    case OP_TUPLE: {
        size_t from = 0;
        int code = to_mark(reader, &from);
        return code < 0 ? code : make_tuple(reader, reader->stack.len - from);
    }
    case OP_APPEND:
    case OP_APPENDS:
        return append(reader, op == OP_APPENDS);
    case OP_SETITEM:
    case OP_SETITEMS:
        return set(reader, op == OP_SETITEMS);
    case OP_BINPUT:
    case OP_LONG_BINPUT:
        return memo_put(reader, op == OP_BINPUT ? 1 : 4);
    case OP_BINGET:
    case OP_LONG_BINGET:
        return memo_get(reader, op == OP_BINGET ? 1 : 4);
    case OP_BININT:
        return read_number(reader, 4);
    case OP_BININT1:
        return read_number(reader, 1);
    case OP_BININT2:
        return read_number(reader, 2);
    case OP_LONG1:
        return read_long(reader);
    case OP_BINFLOAT:
        return read_float(reader);
    case OP_BINUNICODE:
        return read_text(reader);
    case OP_NONE:
        return make_null(reader);
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return make_bool(reader, op == OP_NEWTRUE);
    default:
        return refuse(reader, op);
    }
}

static int read_all(struct reader *reader, struct doc **ret_doc)
{
    if (!pickle_is((struct str){(const char *)reader->data, reader->len}))
        return fail(reader, ERROR_UNSUPPORTED, "not a pickle of protocol 2");
    for (reader->at = 2;;) {
        reader->op_at = reader->at;
        const unsigned char *op = take(reader, 1);
        if (!op)
            return error_set(reader->error, ERROR_INVALID, "byte %zu: the pickle ends without STOP",
                             reader->at);
        if (*op == OP_STOP)
            break;
        int code = step(reader, *op);
        if (code < 0)
            return code;
    }
    if (reader->stack.len != 1 || reader->marks.len != 0)
        return fail(reader, ERROR_INVALID, "STOP must leave one value");
    if (reader->at != reader->len) {
        reader->op_at = reader->at;
        return fail(reader, ERROR_INVALID, "nothing may follow STOP");
    }
    int code = freeze(reader, reader->stack.items[0]);
    if (code == 0)
        *ret_doc = &reader->stack.items[0]->doc;
    return code;
}

bool pickle_is(struct str bytes)
{
    return bytes.len >= 2 && (unsigned char)bytes.data[0] == OP_PROTO && bytes.data[1] == 2;
}

int pickle_parse(struct arena *arena, struct str bytes, struct doc **ret_doc, struct error *error)
{
    struct reader reader = {
        .arena = arena, .data = (const unsigned char *)bytes.data, .len = bytes.len, .error = error};
    int code = read_all(&reader, ret_doc);
    vec_done(&reader.stack);
    vec_done(&reader.marks);
    vec_done(&reader.memo);
    return code;
}
