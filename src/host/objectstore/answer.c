#include "host/objectstore/answer.h"

#include "base/units.h"

enum { DEPTH_MAX = 16 };

/* --- text ----------------------------------------------------------------------------------------- */

static void add_rune(struct buf *out, uint32_t rune)
{
    if (rune < 0x80) {
        buf_add_char(out, (char)rune);
    } else if (rune < 0x800) {
        buf_add_char(out, (char)(0xc0 | rune >> 6));
        buf_add_char(out, (char)(0x80 | (rune & 0x3f)));
    } else if (rune < 0x10000) {
        buf_add_char(out, (char)(0xe0 | rune >> 12));
        buf_add_char(out, (char)(0x80 | (rune >> 6 & 0x3f)));
        buf_add_char(out, (char)(0x80 | (rune & 0x3f)));
    } else {
        buf_add_char(out, (char)(0xf0 | rune >> 18));
        buf_add_char(out, (char)(0x80 | (rune >> 12 & 0x3f)));
        buf_add_char(out, (char)(0x80 | (rune >> 6 & 0x3f)));
        buf_add_char(out, (char)(0x80 | (rune & 0x3f)));
    }
}

/* Parses the digits between "&#" and ";". */
static bool parse_rune(struct str digits, uint32_t *ret_rune)
{
    bool hex = digits.len > 0 && (digits.data[0] == 'x' || digits.data[0] == 'X');
    uint32_t rune = 0;
    if (digits.len <= hex || digits.len > 8)
        return false;
    for (size_t i = hex; i < digits.len; i++) {
        char c = digits.data[i];
        uint32_t digit = c >= '0' && c <= '9'          ? (uint32_t)(c - '0')
                         : hex && c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : hex && c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                       : 16;
        if (digit == 16)
            return false;
        rune = rune * (hex ? 16 : 10) + digit;
    }
    *ret_rune = rune;
    return rune > 0 && rune <= 0x10ffff;
}

static bool add_entity(struct buf *out, struct str name)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    uint32_t rune;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_is(name, known[i].name)) {
            buf_add_char(out, known[i].c);
            return true;
        }
    if (name.len < 2 || name.data[0] != '#' || !parse_rune((struct str){name.data + 1, name.len - 1}, &rune))
        return false;
    add_rune(out, rune);
    return true;
}

static bool add_text(struct buf *out, struct str raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.data[i] != '&') {
            buf_add_char(out, raw.data[i]);
            continue;
        }
        const char *end = memchr(raw.data + i, ';', raw.len - i);
        if (!end || !add_entity(out, (struct str){raw.data + i + 1, (size_t)(end - raw.data) - i - 1}))
            return false;
        i = (size_t)(end - raw.data);
    }
    return true;
}

/* --- elements ------------------------------------------------------------------------------------- */

struct walk {
    struct str rest;
    struct str names[DEPTH_MAX];
    size_t depth;
    bool mixed; /* elements have ended since the one on top began */
    struct buf text;
    answer_element *element;
    void *context;
};

static struct str local_name(struct str tag)
{
    size_t len = 0;
    while (len < tag.len && !strchr(" \t\r\n/", tag.data[len]))
        len++;
    struct str name = {tag.data, len}, prefix, behind;
    return str_cut(name, ':', &prefix, &behind) ? behind : name;
}

static void ended(struct walk *walk)
{
    struct str parent = walk->depth > 1 ? walk->names[walk->depth - 2] : STR("");
    walk->element(walk->context, parent, walk->names[walk->depth - 1],
                  walk->mixed ? STR("") : buf_str(&walk->text));
    walk->depth--;
    walk->mixed = true;
    buf_clear(&walk->text);
}

/* Takes a tag, without its "<" and ">". */
static bool take_tag(struct walk *walk, struct str tag)
{
    if (tag.len == 0)
        return false;
    if (tag.data[0] == '?' || tag.data[0] == '!')
        return true;
    if (tag.data[0] == '/') {
        struct str name = local_name((struct str){tag.data + 1, tag.len - 1});
        if (walk->depth == 0 || !str_equal(name, walk->names[walk->depth - 1]))
            return false;
        ended(walk);
        return true;
    }
    if (walk->depth == DEPTH_MAX)
        return false;
    walk->names[walk->depth++] = local_name(tag);
    walk->mixed = false;
    buf_clear(&walk->text);
    if (tag.data[tag.len - 1] == '/')
        ended(walk);
    return true;
}

static bool walk_all(struct walk *walk)
{
    struct str text, tag;
    while (str_cut(walk->rest, '<', &text, &walk->rest)) {
        if (walk->depth > 0 && !add_text(&walk->text, text))
            return false;
        if (!str_cut(walk->rest, '>', &tag, &walk->rest) || !take_tag(walk, tag))
            return false;
    }
    return walk->depth == 0;
}

bool answer_walk(struct str xml, answer_element *element, void *context)
{
    struct walk walk = {.rest = xml, .element = element, .context = context};
    bool whole = walk_all(&walk);
    buf_done(&walk.text);
    return whole;
}

/* --- answers -------------------------------------------------------------------------------------- */

static void copy_printable(char *to, size_t size, struct str text)
{
    size_t len = text.len < size - 1 ? text.len : size - 1;
    for (size_t i = 0; i < len; i++)
        to[i] = text.data[i] >= ' ' && text.data[i] <= '~' ? text.data[i] : '?';
    to[len] = 0;
}

static void on_error_element(void *context, struct str parent, struct str name, struct str text)
{
    struct answer_error *error = context;
    if (!str_is(parent, "Error"))
        return;
    if (str_is(name, "Code"))
        copy_printable(error->code, sizeof error->code, text);
    else if (str_is(name, "Message"))
        copy_printable(error->message, sizeof error->message, text);
}

void answer_error(struct str xml, struct answer_error *ret)
{
    *ret = (struct answer_error){0};
    (void)answer_walk(xml, on_error_element, ret); /* the elements before a mistake still count */
}

static void on_id_element(void *context, struct str parent, struct str name, struct str text)
{
    char *id = context;
    bool fits = text.len > 0 && text.len < STORE_ID_MAX;
    if (str_is(name, "UploadId") && fits && memchr(text.data, 0, text.len) == NULL) {
        mem_copy(id, text.data, text.len);
        id[text.len] = 0;
    }
}

bool answer_upload_id(struct str xml, char ret_id[STORE_ID_MAX])
{
    ret_id[0] = 0;
    return answer_walk(xml, on_id_element, ret_id) && ret_id[0] != 0;
}

struct list_reading {
    struct arena *arena;
    struct object_list *list;
    struct answer_page *page;
    struct object_entry entry;
    bool wrong;
};

static void on_page_element(struct list_reading *reading, struct str name, struct str text)
{
    struct answer_page *page = reading->page;
    if (str_is(name, "IsTruncated"))
        page->truncated = str_is(text, "true");
    else if (str_is(name, "NextContinuationToken"))
        page->next_token = arena_str(reading->arena, text);
    else if (str_is(name, "NextKeyMarker"))
        page->next_key = arena_str(reading->arena, text);
    else if (str_is(name, "NextUploadIdMarker"))
        page->next_upload = arena_str(reading->arena, text);
}

static void on_list_element(void *context, struct str parent, struct str name, struct str text)
{
    struct list_reading *reading = context;
    int64_t number;
    if (str_is(name, "Contents") || str_is(name, "Upload")) {
        reading->wrong = reading->wrong || reading->entry.key.len == 0;
        if (reading->entry.key.len)
            vec_push(&reading->list->entries, reading->entry);
        reading->entry = (struct object_entry){0};
    } else if (!str_is(parent, "Contents") && !str_is(parent, "Upload")) {
        on_page_element(reading, name, text);
    } else if (str_is(name, "Key")) {
        reading->entry.key = arena_str(reading->arena, text);
    } else if (str_is(name, "UploadId")) {
        reading->entry.upload = arena_str(reading->arena, text);
    } else if (str_is(name, "Initiated")) {
        (void)time_parse(text, &reading->entry.begun_ns); /* 0: not known */
    } else if (str_is(name, "Size")) {
        bool valid = str_to_i64(text, 0, INT64_MAX, &number);
        reading->wrong = reading->wrong || !valid;
        reading->entry.bytes = valid ? (uint64_t)number : 0;
    }
}

bool answer_list(struct str xml, struct arena *arena, struct object_list *list, struct answer_page *ret)
{
    *ret = (struct answer_page){0};
    struct list_reading reading = {.arena = arena, .list = list, .page = ret};
    return answer_walk(xml, on_list_element, &reading) && !reading.wrong;
}
