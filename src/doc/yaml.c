#include "doc/yaml.h"

#include <yaml.h>

#include "base/check.h"
#include "doc/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "doc/yaml_scalar.h"

#define TAG_PREFIX "tag:yaml.org,2002:"

struct anchor {
    struct doc *node; /* NULL while its collection is open: an alias to that would never end */
};

struct reader {
    yaml_parser_t parser;
    struct arena *arena;
    struct str text;
    struct error *error;
    struct str_map anchors; /* of the current document */
    int depth;
    size_t nodes; /* made in all, copies for aliases included */
};

/* Returns the line from 1; libyaml counts from 0. */
static unsigned line_of(yaml_mark_t mark)
{
    return (unsigned)mark.line + 1;
}

static unsigned column_of(yaml_mark_t mark)
{
    return (unsigned)mark.column + 1;
}

static int fail(struct reader *reader, enum error_code code, yaml_mark_t mark, const char *why)
{
    return error_set(reader->error, code, "%u:%u: %s", line_of(mark), column_of(mark), why);
}

static int fail_memory(struct reader *reader, yaml_mark_t mark)
{
    return error_set(reader->error, ERROR_LIMIT,
                     "%u:%u: the text needs more than the %zu bytes of memory allowed", line_of(mark),
                     column_of(mark), reader->arena->limit_bytes);
}

/* Finds the place of an offset: a reader's error (encoding, control characters) has only that. */
static yaml_mark_t mark_of_offset(struct str text, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t at = 0; at < offset && at < text.len; at++) {
        if (text.data[at] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if (((unsigned char)text.data[at] & 0xc0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static bool is_tab_at(struct str text, yaml_mark_t mark)
{
    struct str line, rest = text;
    for (size_t i = 0; i < mark.line; i++) {
        if (!str_cut(rest, '\n', &line, &rest))
            return false;
    }
    /* Only indentation precedes it, so bytes are columns. */
    return mark.column < rest.len && rest.data[mark.column] == '\t';
}

static int fail_parser(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem ? parser->problem : "it is not YAML";
    if (parser->error == YAML_MEMORY_ERROR)
        return fail(reader, ERROR_LIMIT, parser->mark, "out of memory");
    if (parser->error == YAML_READER_ERROR)
        return fail(reader, ERROR_INVALID, mark_of_offset(reader->text, parser->problem_offset), problem);
    if (parser->error == YAML_SCANNER_ERROR && is_tab_at(reader->text, parser->problem_mark))
        problem = "a tab cannot indent, only spaces can";
    if (!parser->context)
        return fail(reader, ERROR_INVALID, parser->problem_mark, problem);
    return error_set(reader->error, ERROR_INVALID, "%u:%u: %s, %s that begins at %u:%u",
                     line_of(parser->problem_mark), column_of(parser->problem_mark), problem, parser->context,
                     line_of(parser->context_mark), column_of(parser->context_mark));
}

static int next_event(struct reader *reader, yaml_event_t *ret_event)
{
    return yaml_parser_parse(&reader->parser, ret_event) ? 0 : fail_parser(reader);
}

static int make_node(struct reader *reader, enum doc_kind kind, yaml_mark_t mark, struct doc **ret_node)
{
    if (reader->nodes == YAML_NODES_MAX)
        return error_set(reader->error, ERROR_LIMIT, "%u:%u: more than %d values, aliases expanded",
                         line_of(mark), column_of(mark), YAML_NODES_MAX);
    struct doc *node = doc_try_new(reader->arena, kind);
    if (!node)
        return fail_memory(reader, mark);
    reader->nodes++;
    node->line = line_of(mark);
    node->column = column_of(mark);
    *ret_node = node;
    return 0;
}

static int copy_text(struct reader *reader, struct str text, yaml_mark_t mark, struct str *ret_copy)
{
    char *copy = arena_try_alloc(reader->arena, text.len + 1);
    if (!copy)
        return fail_memory(reader, mark);
    if (text.len)
        memcpy(copy, text.data, text.len);
    *ret_copy = (struct str){copy, text.len};
    return 0;
}

/* Notes the anchor of a node; `node` is NULL until its content is complete. A name may be used again. */
static int set_anchor(struct reader *reader, const yaml_char_t *name, yaml_mark_t mark, struct doc *node)
{
    if (!name)
        return 0;
    struct str key = str_from((const char *)name);
    struct anchor *anchor = str_map_get(&reader->anchors, key);
    if (!anchor) {
        int code = copy_text(reader, key, mark, &key);
        if (code < 0)
            return code;
        anchor = arena_try_alloc(reader->arena, sizeof *anchor);
        if (!anchor)
            return fail_memory(reader, mark);
        str_map_put(&reader->anchors, key, anchor);
    }
    anchor->node = node;
    return 0;
}

static int check_depth(struct reader *reader, yaml_mark_t mark, int depth)
{
    if (depth < YAML_DEPTH_MAX)
        return 0;
    return error_set(reader->error, ERROR_LIMIT, "%u:%u: nested deeper than %d levels", line_of(mark),
                     column_of(mark), YAML_DEPTH_MAX);
}

/* Copies a node for an alias at `mark`, so that a change at one place never changes the other. Strings are
 * shared, as they do not change. The places remain those of the original. */
static int copy_node(struct reader *reader, const struct doc *node, yaml_mark_t mark, int depth,
                     struct doc **ret_copy)
{
    struct doc *copy;
    int code = make_node(reader, node->kind, mark, &copy);
    if (code < 0)
        return code;
    if (node->kind != DOC_ARRAY && node->kind != DOC_OBJECT) {
        *copy = *node;
        *ret_copy = copy;
        return 0;
    }
    code = check_depth(reader, mark, depth);
    copy->line = node->line;
    copy->column = node->column;
    for (size_t i = 0; i < doc_len(node) && code == 0; i++) {
        struct doc *value = NULL;
        struct doc_member member = {0};
        if (node->kind == DOC_OBJECT)
            member = node->object.members[i];
        code = copy_node(reader, node->kind == DOC_OBJECT ? member.value : node->array.items[i], mark,
                         depth + 1, &value);
        if (code < 0)
            break;
        member.value = value;
        if (!(node->kind == DOC_OBJECT ? doc_try_add(reader->arena, copy, member)
                                       : doc_try_push(reader->arena, copy, value)))
            code = fail_memory(reader, mark);
    }
    if (code < 0)
        return code;
    *ret_copy = copy;
    return 0;
}

static int read_alias(struct reader *reader, const yaml_event_t *event, struct doc **ret_node)
{
    struct anchor *anchor = str_map_get(&reader->anchors, str_from((const char *)event->data.alias.anchor));
    if (!anchor)
        return error_set(reader->error, ERROR_INVALID,
                         "%u:%u: anchor &%.100s is not defined before this alias", line_of(event->start_mark),
                         column_of(event->start_mark), event->data.alias.anchor);
    if (!anchor->node)
        return fail(reader, ERROR_INVALID, event->start_mark, "an alias inside of its own anchor");
    return copy_node(reader, anchor->node, event->start_mark, reader->depth, ret_node);
}

/* Stores a float with its text in JSON's form. */
static int set_float(struct reader *reader, struct doc *node, double number, struct str text,
                     yaml_mark_t mark)
{
    struct buf BUF_CLEANUP shortest = {0};
    if (!text.len) {
        json_write_float(&shortest, number);
        text = buf_str(&shortest);
    }
    node->kind = DOC_FLOAT;
    node->number = number;
    return copy_text(reader, text, mark, &node->text);
}

static int set_resolved(struct reader *reader, struct doc *node, struct yaml_scalar scalar, struct str text,
                        yaml_mark_t mark)
{
    switch (scalar.meaning) {
    case YAML_NULL:
        node->kind = DOC_NULL;
        return 0;
    case YAML_BOOL:
        node->kind = DOC_BOOL;
        node->boolean = scalar.boolean;
        return 0;
    case YAML_INT:
        node->kind = DOC_INT;
        node->integer = scalar.integer;
        return 0;
    case YAML_FLOAT:
        return set_float(reader, node, scalar.number, scalar.written ? text : (struct str){0}, mark);
    case YAML_NOT_FINITE:
        return fail(reader, ERROR_INVALID, mark, "infinity and not-a-number are not values (quote a string)");
    case YAML_STRING:
        break;
    }
    node->kind = DOC_STRING;
    return copy_text(reader, text, mark, &node->text);
}

/* Reads a scalar with one of the tags !!null, !!bool, !!int and !!float, which must be of that type. */
static int set_tagged(struct reader *reader, struct doc *node, const char *tag, struct str text,
                      yaml_mark_t mark)
{
    struct yaml_scalar scalar = yaml_resolve(text);
    bool fits = (strcmp(tag, TAG_PREFIX "null") == 0 && scalar.meaning == YAML_NULL) ||
                (strcmp(tag, TAG_PREFIX "bool") == 0 && scalar.meaning == YAML_BOOL) ||
                (strcmp(tag, TAG_PREFIX "int") == 0 && scalar.meaning == YAML_INT);
    if (fits)
        return set_resolved(reader, node, scalar, text, mark);
    if (strcmp(tag, TAG_PREFIX "float") == 0) {
        if (scalar.meaning == YAML_FLOAT)
            return set_resolved(reader, node, scalar, text, mark);
        if (scalar.meaning == YAML_INT)
            return set_float(reader, node, (double)scalar.integer, (struct str){0}, mark);
    }
    return error_set(reader->error, ERROR_INVALID, "%u:%u: the value is not what its tag !!%s says",
                     line_of(mark), column_of(mark), tag + sizeof TAG_PREFIX - 1);
}

static bool is_one_of(const char *tag, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(tag, *names) == 0)
            return true;
    }
    return false;
}

static int fail_tag(struct reader *reader, const char *tag, yaml_mark_t mark)
{
    return error_set(reader->error, ERROR_INVALID, "%u:%u: unknown tag %.100s", line_of(mark),
                     column_of(mark), tag);
}

static int read_scalar(struct reader *reader, const yaml_event_t *event, struct doc **ret_node)
{
    static const char *const texts[] = {"!", TAG_PREFIX "str", TAG_PREFIX "binary", TAG_PREFIX "timestamp",
                                        NULL};
    static const char *const typed[] = {TAG_PREFIX "null", TAG_PREFIX "bool", TAG_PREFIX "int",
                                        TAG_PREFIX "float", NULL};
    yaml_mark_t mark = event->start_mark;
    struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    const char *tag = (const char *)event->data.scalar.tag;
    if (memchr(text.data, 0, text.len))
        return fail(reader, ERROR_INVALID, mark, "a string may not contain NUL");
    if (!str_is_utf8(text))
        return fail(reader, ERROR_INVALID, mark, "the text is not UTF-8");
    struct doc *node;
    int code = make_node(reader, DOC_NULL, mark, &node);
    if (code < 0)
        return code;
    struct yaml_scalar scalar = {.meaning = YAML_STRING};
    if (tag && is_one_of(tag, typed)) {
        code = set_tagged(reader, node, tag, text, mark);
    } else if (tag && !is_one_of(tag, texts)) {
        code = fail_tag(reader, tag, mark);
    } else {
        if (!tag && event->data.scalar.plain_implicit)
            scalar = yaml_resolve(text);
        code = set_resolved(reader, node, scalar, text, mark);
    }
    if (code == 0)
        code = set_anchor(reader, event->data.scalar.anchor, mark, node);
    if (code < 0)
        return code;
    *ret_node = node;
    return 0;
}

static int read_node(struct reader *reader, yaml_event_t *event, struct doc **ret_node);

/* Reads the node that the next event begins. */
static int read_next(struct reader *reader, struct doc **ret_node)
{
    yaml_event_t event;
    int code = next_event(reader, &event);
    return code < 0 ? code : read_node(reader, &event, ret_node);
}

static int read_sequence(struct reader *reader, struct doc *node)
{
    for (;;) {
        yaml_event_t event;
        struct doc *item = NULL;
        int code = next_event(reader, &event);
        if (code < 0)
            return code;
        yaml_mark_t mark = event.start_mark;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        code = read_node(reader, &event, &item);
        if (code < 0)
            return code;
        if (!doc_try_push(reader->arena, node, item))
            return fail_memory(reader, mark);
    }
}

/* Makes the text of a key. Every key is a string: `on:` is "true" and `0x10:` is "16", as in
 * sigs.k8s.io/yaml.
 */
static int key_text(struct reader *reader, const struct doc *key, yaml_mark_t mark, struct str *ret_text)
{
    char digits[24];
    switch (key->kind) {
    case DOC_STRING:
    case DOC_FLOAT:
        *ret_text = key->text;
        return 0;
    case DOC_BOOL:
        *ret_text = key->boolean ? STR("true") : STR("false");
        return 0;
    case DOC_INT:
        snprintf(digits, sizeof digits, "%lld", (long long)key->integer);
        return copy_text(reader, str_from(digits), mark, ret_text);
    case DOC_NULL:
    case DOC_ARRAY:
    case DOC_OBJECT:
    case DOC_PACKED:
        break;
    }
    return error_set(reader->error, ERROR_INVALID, "%u:%u: a key must be a string, not %s", line_of(mark),
                     column_of(mark), doc_kind_name(key->kind));
}

static bool is_merge(const yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT)
        return false;
    const char *tag = (const char *)event->data.scalar.tag;
    return tag ? strcmp(tag, TAG_PREFIX "merge") == 0
               : event->data.scalar.plain_implicit &&
                     strcmp((const char *)event->data.scalar.value, "<<") == 0;
}

/* Adds the members of `source` whose keys `object` does not have. */
static int merge_object(struct reader *reader, struct doc *object, struct str_map *keys,
                        const struct doc *source, yaml_mark_t mark)
{
    if (source->kind != DOC_OBJECT)
        return error_set(reader->error, ERROR_INVALID, "%u:%u: << takes a mapping or a sequence of mappings",
                         source->line, source->column);
    for (size_t i = 0; i < source->object.len; i++) {
        struct doc_member member = source->object.members[i];
        if (str_map_get(keys, member.key))
            continue;
        str_map_put(keys, member.key, member.value);
        if (!doc_try_add(reader->arena, object, member))
            return fail_memory(reader, mark);
    }
    return 0;
}

/* Merges the merge keys. Explicit keys take precedence over merged ones, earlier merged ones over later
 * ones. */
static int merge_all(struct reader *reader, struct doc *object, const struct doc *sources, yaml_mark_t mark)
{
    struct str_map keys = {0};
    int code = 0;
    for (size_t i = 0; i < object->object.len; i++)
        str_map_put(&keys, object->object.members[i].key, object->object.members[i].value);
    for (size_t i = 0; i < sources->array.len && code == 0; i++) {
        const struct doc *source = sources->array.items[i];
        if (source->kind != DOC_ARRAY)
            code = merge_object(reader, object, &keys, source, mark);
        for (size_t k = 0; source->kind == DOC_ARRAY && k < source->array.len && code == 0; k++)
            code = merge_object(reader, object, &keys, source->array.items[k], mark);
    }
    str_map_done(&keys);
    return code;
}

/* Reads a "key: value" whose key `event` begins; collects the values of merge keys in `merges`. */
static int read_member(struct reader *reader, yaml_event_t *event, struct doc *object, struct doc *merges)
{
    yaml_mark_t mark = event->start_mark;
    struct doc *key = NULL, *value = NULL;
    struct doc_member member = {.line = line_of(mark), .column = column_of(mark)};
    bool merge = is_merge(event);
    int code = 0;
    if (merge) {
        yaml_event_delete(event);
    } else {
        code = read_node(reader, event, &key);
        if (code == 0)
            code = key_text(reader, key, mark, &member.key);
    }
    if (code == 0)
        code = read_next(reader, &value);
    if (code < 0)
        return code;
    member.value = value;
    bool done =
        merge ? doc_try_push(reader->arena, merges, value) : doc_try_add(reader->arena, object, member);
    return done ? 0 : fail_memory(reader, mark);
}

static int read_mapping(struct reader *reader, struct doc *node)
{
    struct doc merges = {.kind = DOC_ARRAY};
    yaml_mark_t mark;
    for (;;) {
        yaml_event_t event;
        int code = next_event(reader, &event);
        if (code < 0)
            return code;
        mark = event.start_mark;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        code = read_member(reader, &event, node, &merges);
        if (code < 0)
            return code;
    }
    const struct doc_member *second, *first;
    if (doc_duplicate(node, &second, &first))
        return error_set(reader->error, ERROR_INVALID, "%u:%u: the key \"%.*s\" is already at %u:%u",
                         second->line, second->column, (int)(second->key.len < 128 ? second->key.len : 128),
                         second->key.data, first->line, first->column);
    return merges.array.len ? merge_all(reader, node, &merges, mark) : 0;
}

static int read_collection(struct reader *reader, const yaml_event_t *event, struct doc **ret_node)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *anchor =
        mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    const char *tag =
        (const char *)(mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag);
    if (tag && strcmp(tag, "!") != 0 && strcmp(tag, mapping ? TAG_PREFIX "map" : TAG_PREFIX "seq") != 0)
        return fail_tag(reader, tag, event->start_mark);
    int code = check_depth(reader, event->start_mark, reader->depth);
    if (code < 0)
        return code;
    struct doc *node;
    code = make_node(reader, mapping ? DOC_OBJECT : DOC_ARRAY, event->start_mark, &node);
    if (code == 0)
        code = set_anchor(reader, anchor, event->start_mark, NULL);
    if (code < 0)
        return code;
    reader->depth++;
    code = mapping ? read_mapping(reader, node) : read_sequence(reader, node);
    reader->depth--;
    if (code == 0)
        code = set_anchor(reader, anchor, event->start_mark, node);
    if (code < 0)
        return code;
    *ret_node = node;
    return 0;
}

/* Reads a node. Takes over the event. */
static int read_node(struct reader *reader, yaml_event_t *event, struct doc **ret_node)
{
    int code;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        code = read_alias(reader, event, ret_node);
        break;
    case YAML_SCALAR_EVENT:
        code = read_scalar(reader, event, ret_node);
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        code = read_collection(reader, event, ret_node);
        break;
    default:
        CHECK_UNREACHABLE();
    }
    yaml_event_delete(event);
    return code;
}

/* Reads the document whose start event has just been read. */
static int read_document(struct reader *reader, yaml_mark_t mark, struct doc *docs)
{
    struct doc *doc = NULL;
    int code = read_next(reader, &doc);
    str_map_done(&reader->anchors);
    if (code < 0)
        return code;
    return doc_try_push(reader->arena, docs, doc) ? 0 : fail_memory(reader, mark);
}

static int read_stream(struct reader *reader, struct doc *docs)
{
    for (int count = 0;;) {
        yaml_event_t event;
        int code = next_event(reader, &event);
        if (code < 0)
            return code;
        yaml_event_type_t type = event.type;
        yaml_mark_t mark = event.start_mark;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return 0;
        if (type != YAML_DOCUMENT_START_EVENT)
            continue; /* the stream's start, a document's end */
        if (count++ == YAML_DOCUMENTS_MAX)
            return error_set(reader->error, ERROR_LIMIT, "%u:%u: more than %d documents", line_of(mark),
                             column_of(mark), YAML_DOCUMENTS_MAX);
        code = read_document(reader, mark, docs);
        if (code < 0)
            return code;
    }
}

static int parse_yaml(struct arena *arena, struct str text, struct doc *docs, struct error *error)
{
    struct reader reader = {.arena = arena, .text = text, .error = error};
    if (!yaml_parser_initialize(&reader.parser))
        return error_set(error, ERROR_LIMIT, "1:1: out of memory");
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)(text.data ? text.data : ""),
                                 text.len);
    int code = read_stream(&reader, docs);
    str_map_done(&reader.anchors);
    yaml_parser_delete(&reader.parser);
    return code;
}

/* Returns whether the text is read as JSON: it begins with a bracket. JSON documents separated by "---" are
 * read as YAML, which they are too. */
static bool is_json(struct str text)
{
    struct str content = str_trim(text);
    return content.len && (content.data[0] == '{' || content.data[0] == '[') &&
           !memmem(content.data, content.len, "\n---", 4);
}

int yaml_parse_all(struct arena *arena, struct str text, struct doc_list *ret_docs, struct error *error)
{
    struct doc yaml_docs = {.kind = DOC_ARRAY}, *docs = &yaml_docs;
    if (arena->limit_bytes && text.len > arena->limit_bytes)
        return error_set(error, ERROR_LIMIT, "1:1: the text is longer than the %zu bytes of memory allowed",
                         arena->limit_bytes);
    int code = is_json(text) ? json_parse_all(arena, text, YAML_DOCUMENTS_MAX, &docs, error)
                             : parse_yaml(arena, text, docs, error);
    if (code < 0)
        return code;
    struct doc_list list = {docs->array.items, 0};
    for (size_t i = 0; i < docs->array.len; i++) {
        if (list.items[i]->kind != DOC_NULL)
            list.items[list.len++] = list.items[i];
    }
    *ret_docs = list;
    return 0;
}
