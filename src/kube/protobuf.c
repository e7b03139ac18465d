#include "kube/protobuf.h"

#include "base/base64.h"
#include "kube/protobuf_kinds.h"

struct field {
    uint64_t number;
    uint64_t value;   /* of a varint */
    struct str bytes; /* of a length-delimited field; data NULL otherwise */
};

static bool take_varint(struct str *text, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < text->len; i++) {
        unsigned char byte = (unsigned char)text->data[i];
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        *text = (struct str){text->data + i + 1, text->len - i - 1};
        *ret_value = value;
        return true;
    }
    return false;
}

/* Takes the next field. Returns false at the end, and at the first malformed byte (text->len is then not
 * 0). */
static bool take_field(struct str *text, struct field *ret_field)
{
    uint64_t key, len;
    struct str rest = *text;
    struct field field = {0};
    if (!take_varint(&rest, &key))
        return false;
    field.number = key >> 3;
    switch (key & 7) {
    case 0:
        if (!take_varint(&rest, &field.value))
            return false;
        break;
    case 2:
        if (!take_varint(&rest, &len) || len > rest.len)
            return false;
        field.bytes = (struct str){rest.data, (size_t)len};
        rest = (struct str){rest.data + len, rest.len - (size_t)len};
        break;
    case 1:
    case 5:
        len = (key & 7) == 1 ? 8 : 4;
        if (len > rest.len)
            return false;
        rest = (struct str){rest.data + len, rest.len - (size_t)len};
        break;
    default:
        return false;
    }
    *text = rest;
    *ret_field = field;
    return true;
}

/* Returns the length-delimited field of that number; data is NULL if it is absent. */
static struct str bytes_of(struct str message, uint64_t number)
{
    struct field field;
    struct str found = {0};
    while (take_field(&message, &field))
        if (field.number == number && field.bytes.data)
            found = field.bytes;
    return found;
}

static bool open_envelope(struct str body, struct str *ret_raw)
{
    if (body.len < 4 || memcmp(body.data, "k8s", 4) != 0)
        return false;
    *ret_raw = bytes_of((struct str){body.data + 4, body.len - 4}, 2);
    if (!ret_raw->data)
        *ret_raw = STR("");
    return true;
}

static bool set_text(struct arena *arena, struct doc *object, const char *key, struct str text)
{
    if (!str_is_utf8(text) || memchr(text.data, 0, text.len))
        return false;
    doc_set(arena, object, str_from(key), doc_new_str(arena, text));
    return true;
}

/* --- objects ----------------------------------------------------------------------------------- */

enum { NODES_MAX = 2000000 };

struct reading {
    struct arena *arena;
    size_t nodes; /* made so far */
};

static bool read_message(struct reading *reading, const struct protobuf_field *message, struct str bytes,
                         struct doc *object);

static struct doc *text_node(struct reading *reading, struct str text)
{
    bool good = ++reading->nodes <= NODES_MAX && str_is_utf8(text) &&
                (text.len == 0 || !memchr(text.data, 0, text.len));
    return good ? doc_new_str(reading->arena, text) : NULL;
}

static struct doc *base64_node(struct reading *reading, struct str bytes)
{
    struct buf text BUF_CLEANUP = {0};
    base64_encode(bytes, &text);
    return ++reading->nodes <= NODES_MAX ? doc_new_str(reading->arena, buf_str(&text)) : NULL;
}

/* Returns the list or map of that name, made if it is absent. */
static struct doc *need(struct reading *reading, struct doc *object, const char *name, enum doc_kind kind)
{
    struct doc *node = doc_get(object, name);
    if (!node) {
        node = doc_new(reading->arena, kind);
        doc_set(reading->arena, object, str_from(name), node);
    }
    return node;
}

/* Reads one entry of a map, {1: key, 2: value}. Entries are only appended; a map with a duplicate key is
 * refused at the end. */
static bool read_entry(struct reading *reading, const struct protobuf_field *field, struct str bytes,
                       struct doc *object)
{
    struct str key = bytes_of(bytes, 1), value = bytes_of(bytes, 2);
    struct doc *map = need(reading, object, field->name, DOC_OBJECT), *node;
    if (!str_is_utf8(key) || (key.len && memchr(key.data, 0, key.len)))
        return false;
    if (field->form == PB_BYTES_MAP)
        node = base64_node(reading, value);
    else
        node = text_node(reading, field->form == PB_QUANTITY_MAP ? bytes_of(value, 1) : value);
    return node && doc_try_add(reading->arena, map,
                               (struct doc_member){.key = arena_str(reading->arena, key), .value = node});
}

/* Reads {1: type, 2: number, 3: text}; type 0 is the number. */
static struct doc *int_or_string(struct reading *reading, struct str bytes)
{
    struct field field;
    uint64_t type = 0;
    int64_t number = 0;
    struct str text = {0};
    while (take_field(&bytes, &field)) {
        if (field.number == 1)
            type = field.value;
        else if (field.number == 2)
            number = (int32_t)field.value;
        else if (field.number == 3)
            text = field.bytes;
    }
    if (bytes.len)
        return NULL;
    return type ? text_node(reading, text) : doc_new_int(reading->arena, number);
}

static bool read_submessage(struct reading *reading, const struct protobuf_field *known, struct str bytes,
                            struct doc *object)
{
    if (known->form == PB_INLINE)
        return read_message(reading, known->message, bytes, object);
    struct doc *child = doc_new(reading->arena, DOC_OBJECT);
    if (++reading->nodes > NODES_MAX || !read_message(reading, known->message, bytes, child))
        return false;
    if (known->form == PB_MESSAGES)
        doc_push(reading->arena, need(reading, object, known->name, DOC_ARRAY), child);
    else if (known->form == PB_EMPTY || child->object.len)
        doc_set(reading->arena, object, str_from(known->name), child);
    return true;
}

static bool read_bytes(struct reading *reading, const struct protobuf_field *known, struct str bytes,
                       struct doc *object)
{
    struct doc *node = NULL;
    switch (known->form) {
    case PB_TEXT:
        if (bytes.len == 0)
            return true;
        node = text_node(reading, bytes);
        break;
    case PB_QUANTITY:
        bytes = bytes_of(bytes, 1);
        if (bytes.len == 0 || str_is(bytes, "0"))
            return true;
        node = text_node(reading, bytes);
        break;
    case PB_INT_OR_STRING:
        node = int_or_string(reading, bytes);
        break;
    case PB_TEXTS:
        node = text_node(reading, bytes);
        if (node)
            doc_push(reading->arena, need(reading, object, known->name, DOC_ARRAY), node);
        return node != NULL;
    case PB_MAP:
    case PB_BYTES_MAP:
    case PB_QUANTITY_MAP:
        return read_entry(reading, known, bytes, object);
    default:
        return read_submessage(reading, known, bytes, object);
    }
    if (node)
        doc_set(reading->arena, object, str_from(known->name), node);
    return node != NULL;
}

static void read_number(struct reading *reading, const struct protobuf_field *known, uint64_t value,
                        struct doc *object)
{
    bool is_bool = known->form == PB_BOOL || known->form == PB_PLAIN_BOOL;
    bool plain = known->form == PB_PLAIN_INT || known->form == PB_PLAIN_BOOL;
    if (plain && value == 0)
        return;
    doc_set(reading->arena, object, str_from(known->name),
            is_bool ? doc_new_bool(reading->arena, value != 0) : doc_new_int(reading->arena, (int64_t)value));
}

static bool is_number(enum protobuf_form form)
{
    return form == PB_INT || form == PB_PLAIN_INT || form == PB_BOOL || form == PB_PLAIN_BOOL;
}

/* Reads a message. The tables bound the depth, as none contains itself. */
static bool read_message(struct reading *reading, const struct protobuf_field *message, struct str bytes,
                         struct doc *object)
{
    struct field field;
    while (take_field(&bytes, &field)) {
        const struct protobuf_field *known = message;
        while (known->number && known->number != field.number)
            known++;
        if (!known->number || is_number(known->form) != !field.bytes.data)
            continue;
        if (!field.bytes.data)
            read_number(reading, known, field.value, object);
        else if (!read_bytes(reading, known, field.bytes, object))
            return false;
    }
    return bytes.len == 0;
}

static bool keys_are_unique(const struct doc *node)
{
    const struct doc_member *second, *first;
    if (node->kind == DOC_OBJECT && doc_duplicate(node, &second, &first))
        return false;
    for (size_t i = 0; i < doc_len(node); i++)
        if (!keys_are_unique(node->kind == DOC_ARRAY ? node->array.items[i] : node->object.members[i].value))
            return false;
    return true;
}

/* Returns whether the text is a valid part of a type's name. Some readers would end it at a NUL, others
 * not. */
static bool is_word(struct str text)
{
    return str_is_utf8(text) && text.len <= 128 && (text.len == 0 || !memchr(text.data, 0, text.len));
}

int protobuf_read(struct arena *arena, struct str body, bool options, struct doc **ret_object,
                  struct error *error)
{
    struct reading reading = {.arena = arena};
    struct str raw, type = {0};
    if (!open_envelope(body, &raw))
        return error_set(error, ERROR_INVALID, "the body is not Kubernetes protobuf");
    type = bytes_of((struct str){body.data + 4, body.len - 4}, 1);
    struct str version = options ? STR("v1") : bytes_of(type, 1);
    struct str kind = options ? STR("DeleteOptions") : bytes_of(type, 2);
    if (!is_word(version) || !is_word(kind))
        return error_set(error, ERROR_INVALID, "the body's type is malformed");
    const struct protobuf_field *message =
        protobuf_kind(arena_strdup(arena, version), arena_strdup(arena, kind));
    if (!message)
        return error_set(error, ERROR_UNSUPPORTED,
                         "protobuf of " STR_FORMAT " " STR_FORMAT " is not read: send JSON", STR_ARG(version),
                         STR_ARG(kind));
    struct doc *object = doc_new(arena, DOC_OBJECT);
    doc_set(arena, object, STR("apiVersion"), doc_new_str(arena, version));
    doc_set(arena, object, STR("kind"), doc_new_str(arena, kind));
    if (!read_message(&reading, message, raw, object) || !keys_are_unique(object))
        return error_set(error, ERROR_INVALID, "the protobuf body is malformed");
    *ret_object = object;
    return 0;
}

/* --- reviews ----------------------------------------------------------------------------------- */

/* Reads the text members of `message`, named by their numbers from 1 on; NULL names are skipped. */
static struct doc *texts_of(struct arena *arena, struct str message, const char *const *names, size_t count)
{
    struct doc *object = doc_new(arena, DOC_OBJECT);
    struct field field;
    while (take_field(&message, &field)) {
        const char *name = field.number >= 1 && field.number <= count ? names[field.number - 1] : NULL;
        if (name && field.bytes.data && !set_text(arena, object, name, field.bytes))
            return NULL;
    }
    return message.len == 0 ? object : NULL;
}

struct doc *protobuf_review(struct arena *arena, struct str body, bool rules)
{
    static const char *const resource_names[] = {"namespace", "verb",        "group", "version",
                                                 "resource",  "subresource", "name"};
    static const char *const path_names[] = {"path", "verb"};
    static const char *const spec_names[] = {"namespace"};
    struct str raw;
    struct doc *review = doc_new(arena, DOC_OBJECT), *spec;
    if (!open_envelope(body, &raw))
        return NULL;
    struct str message = bytes_of(raw, 2);
    if (rules) {
        spec = texts_of(arena, message, spec_names, 1);
    } else {
        struct str resource = bytes_of(message, 1), path = bytes_of(message, 2);
        struct doc *attributes = resource.data ? texts_of(arena, resource, resource_names, 7)
                                               : texts_of(arena, path, path_names, 2);
        spec = attributes ? doc_new(arena, DOC_OBJECT) : NULL;
        if (spec)
            doc_set(arena, spec, resource.data ? STR("resourceAttributes") : STR("nonResourceAttributes"),
                    attributes);
    }
    if (spec)
        doc_set(arena, review, STR("spec"), spec);
    return spec ? review : NULL;
}
