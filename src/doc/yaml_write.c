/* yaml_write.c - the writer of yaml.h, on libyaml's emitter. The emitter of go-yaml (and so kubectl) is a
 * port of it, with the same line breaks and the same choice between plain, quoted and block scalars. This
 * file decides which strings must not be plain. */
#include "doc/yaml.h"

#include <yaml.h>

#include "base/check.h"
#include "doc/json.h"
#include "doc/yaml_scalar.h"

enum { FLOAT_TEXT_MAX = 300 }; /* longer ones would not be read as numbers again */

static int append(void *data, unsigned char *bytes, size_t size)
{
    buf_add(data, bytes, size);
    return 1;
}

/* Takes over the event. */
static void emit(yaml_emitter_t *emitter, yaml_event_t *event)
{
    CHECK(yaml_emitter_emit(emitter, event));
}

static void put_scalar(yaml_emitter_t *emitter, struct str text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    const unsigned char *data = (const unsigned char *)(text.data ? text.data : "");
    CHECK(text.len <= INT32_MAX);
    CHECK(yaml_scalar_event_initialize(&event, NULL, NULL, data, (int)text.len, 1, 1, style));
    emit(emitter, &event);
}

/* Replaces bytes that are not UTF-8. A document's strings are UTF-8, but one that is not (from a log line,
 * say) must not stop a report. */
static void repair(struct buf *out, struct str text)
{
    for (size_t at = 0; at < text.len;) {
        size_t size = str_utf8_len(text.data + at, text.len - at);
        if (size)
            buf_add(out, text.data + at, size);
        else
            buf_add_str(out, STR("\xef\xbf\xbd"));
        at += size ? size : 1;
    }
}

static bool is_key_word(struct str text)
{
    return str_is(text, "<<");
}

/* Returns the style to request; the emitter itself falls back to quotes if the syntax needs them. */
static yaml_scalar_style_t choose_style(struct str text, bool key)
{
    if (text.len && memchr(text.data, '\n', text.len)) {
        /* A block that begins with a tab would be taken for bad indentation. */
        return text.data[0] == '\t' ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_LITERAL_SCALAR_STYLE;
    }
    if (yaml_is_ambiguous(text) || (key && is_key_word(text)))
        return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    return YAML_PLAIN_SCALAR_STYLE;
}

static void put_string(yaml_emitter_t *emitter, struct str text, bool key)
{
    struct buf BUF_CLEANUP repaired = {0};
    if (!str_is_utf8(text)) {
        repair(&repaired, text);
        text = buf_str(&repaired);
    }
    put_scalar(emitter, text, choose_style(text, key));
}

static void put_float(yaml_emitter_t *emitter, const struct doc *node)
{
    struct buf BUF_CLEANUP shortest = {0};
    struct str text = node->text;
    if (text.len == 0 || text.len > FLOAT_TEXT_MAX) {
        json_write_float(&shortest, node->number);
        text = buf_str(&shortest);
    }
    put_scalar(emitter, text, YAML_PLAIN_SCALAR_STYLE);
}

static void put_node(yaml_emitter_t *emitter, const struct doc *node)
{
    yaml_event_t event;
    char digits[24];
    switch (node->kind) {
    case DOC_NULL:
        put_scalar(emitter, STR("null"), YAML_PLAIN_SCALAR_STYLE);
        break;
    case DOC_BOOL:
        put_scalar(emitter, node->boolean ? STR("true") : STR("false"), YAML_PLAIN_SCALAR_STYLE);
        break;
    case DOC_INT:
        snprintf(digits, sizeof digits, "%lld", (long long)node->integer);
        put_scalar(emitter, str_from(digits), YAML_PLAIN_SCALAR_STYLE);
        break;
    case DOC_FLOAT:
        put_float(emitter, node);
        break;
    case DOC_STRING:
        put_string(emitter, node->text, false);
        break;
    case DOC_ARRAY:
        CHECK(yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE));
        emit(emitter, &event);
        for (size_t i = 0; i < node->array.len; i++)
            put_node(emitter, node->array.items[i]);
        CHECK(yaml_sequence_end_event_initialize(&event));
        emit(emitter, &event);
        break;
    case DOC_OBJECT:
        CHECK(yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
        emit(emitter, &event);
        for (size_t i = 0; i < node->object.len; i++) {
            put_string(emitter, node->object.members[i].key, true);
            put_node(emitter, node->object.members[i].value);
        }
        CHECK(yaml_mapping_end_event_initialize(&event));
        emit(emitter, &event);
        break;
    case DOC_PACKED: /* only the controller packs, and its API speaks JSON */
        CHECK_UNREACHABLE();
    }
}

void yaml_write(struct buf *out, const struct doc *doc)
{
    yaml_emitter_t emitter;
    yaml_event_t event;
    CHECK(yaml_emitter_initialize(&emitter));
    yaml_emitter_set_output(&emitter, append, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_indent(&emitter, 2);
    CHECK(yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(&emitter, &event);
    CHECK(yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    emit(&emitter, &event);
    put_node(&emitter, doc);
    /* Otherwise a last block scalar of the kind "|+" would be followed by "...", which users do not
     * expect. */
    emitter.open_ended = 0;
    CHECK(yaml_document_end_event_initialize(&event, 1));
    emit(&emitter, &event);
    CHECK(yaml_stream_end_event_initialize(&event));
    emit(&emitter, &event);
    yaml_emitter_delete(&emitter);
}
