/* describe_events.c - the events of an object for `phalanx describe`. Events of an earlier object of the same
 * name are left out, and events are folded: equal ones are one line, and so are the ordinary ones of the Pods
 * and Jobs of a JobSet (each Pod is created, scheduled and started), with the newest message. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/describe.h"

struct line { /* events that are shown as one */
    const struct doc *newest;
    struct str message; /* without the object's name */
    int64_t first_ns, last_ns, count;
    size_t objects;    /* number of different objects */
    struct str object; /* the last object counted */
    size_t order;
};
struct lines {
    struct arena arena;
    VEC(struct line) list;
};

static int64_t time_at(const struct doc *event, const char *path)
{
    int64_t time_ns = 0;
    return time_parse(doc_text(event, path), &time_ns) ? time_ns : 0;
}

/* Returns true if the object's name is "<jobset>-<replicated job>-<number>...". */
static bool is_of_jobset(const struct doc *jobset, struct str name, struct str object)
{
    const struct doc *rjobs = doc_dotted(jobset, "spec.replicatedJobs");
    struct str rest = {object.data + name.len + 1, object.len - name.len - 1};
    for (size_t i = 0; i < doc_len(rjobs); i++) {
        struct str rjob = doc_text(doc_at(rjobs, i), "name");
        if (str_starts(rest, rjob) && rest.len > rjob.len + 1 && rest.data[rjob.len] == '-' &&
            rest.data[rjob.len + 1] >= '0' && rest.data[rjob.len + 1] <= '9')
            return true;
    }
    return false;
}

/* Returns true if the event is about the object. Deleted Jobs and Pods are recognised by their names, and no
 * event of a JobSet is older than the JobSet. */
bool describe_is_about(const struct doc *event, const struct resource *kind, const struct doc *object)
{
    struct str name = doc_text(object, "metadata.name"), its = doc_text(event, "involvedObject.name");
    struct str its_kind = doc_text(event, "involvedObject.kind"), uid = doc_text(event, "involvedObject.uid");
    if (str_equal(its, name) && str_is(its_kind, kind->kind))
        return uid.len == 0 || str_is(its_kind, "Node") || str_equal(uid, doc_text(object, "metadata.uid"));
    bool jobset = strcmp(kind->kind, "JobSet") == 0, job = strcmp(kind->kind, "Job") == 0;
    bool part = str_is(its_kind, "Pod") || (jobset && str_is(its_kind, "Job"));
    if (!(jobset || job) || !part || its.len <= name.len + 1 || !str_starts(its, name) ||
        its.data[name.len] != '-' || (jobset && !is_of_jobset(object, name, its)))
        return false;
    return time_at(event, "firstTimestamp") >= time_at(object, "metadata.creationTimestamp");
}

/* Returns the message with "*" for the object's name, so that equal messages of two Pods compare equal. */
static struct str without_name(struct arena *arena, const struct doc *event)
{
    struct str message = doc_text(event, "message"), name = doc_text(event, "involvedObject.name");
    struct buf out BUF_CLEANUP = {0};
    while (message.len > 0) {
        bool here = name.len > 0 && str_starts(message, name);
        size_t len = here ? name.len : 1;
        buf_add_str(&out, here ? STR("*") : (struct str){message.data, 1});
        message = (struct str){message.data + len, message.len - len};
    }
    return arena_str(arena, buf_str(&out));
}

static bool same_line(const struct line *line, const struct doc *event, struct str message, bool part)
{
    static const char *const paths[] = {"type", "reason", "involvedObject.kind"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (!str_equal(doc_text(line->newest, paths[i]), doc_text(event, paths[i])))
            return false;
    bool ordinary = part && str_is(doc_text(event, "type"), "Normal");
    return ordinary || str_equal(line->message, message);
}

static void take(struct lines *lines, const struct doc *event, bool part)
{
    struct str message = without_name(&lines->arena, event), object = doc_text(event, "involvedObject.name");
    int64_t first_ns = time_at(event, "firstTimestamp"), last_ns = time_at(event, "lastTimestamp");
    struct line *line = NULL;
    for (size_t i = 0; i < lines->list.len && !line; i++)
        if (same_line(&lines->list.items[i], event, message, part))
            line = &lines->list.items[i];
    if (!line) {
        struct line fresh = {
            .newest = event, .message = message, .first_ns = first_ns, .order = lines->list.len};
        vec_push(&lines->list, fresh);
        line = &vec_last(&lines->list);
    }
    line->objects += !str_equal(line->object, object);
    line->object = object;
    line->count += doc_number(event, "count", 1);
    line->first_ns = first_ns < line->first_ns ? first_ns : line->first_ns;
    if (last_ns >= line->last_ns) {
        line->last_ns = last_ns;
        line->newest = event;
        line->message = message;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->last_ns != y->last_ns)
        return (x->last_ns > y->last_ns) - (x->last_ns < y->last_ns);
    return (x->order > y->order) - (x->order < y->order);
}

static struct str since(struct arena *arena, int64_t time_ns)
{
    char text[24] = "";
    if (time_ns)
        age_format(client_wall() > time_ns ? client_wall() - time_ns : 0, text);
    return arena_str(arena, str_from(text));
}

static void add_line(struct text_table *table, const struct line *line)
{
    struct arena *arena = &table->arena;
    struct str last = since(arena, line->last_ns), first = since(arena, line->first_ns);
    struct str kind = doc_text(line->newest, "involvedObject.kind");
    table_add(table, line->count > 1 ? arena_printf(arena, STR_FORMAT " (x%lld over " STR_FORMAT ")",
                                                    STR_ARG(last), (long long)line->count, STR_ARG(first))
                                     : last);
    table_add(table, doc_text(line->newest, "type"));
    table_add(table, doc_text(line->newest, "reason"));
    table_add(table, line->objects > 1
                         ? arena_printf(arena, "%zu " STR_FORMAT "s", line->objects, STR_ARG(kind))
                         : doc_text(line->newest, "involvedObject.name"));
    table_add(table, doc_text(line->newest, "message"));
}

static void put_indented(struct buf *out, struct text_table *table)
{
    struct buf text BUF_CLEANUP = {0};
    table_print(table, &text, output_colors());
    struct str line, rest = buf_str(&text);
    while (str_cut(rest, '\n', &line, &rest))
        buf_printf(out, "  " STR_FORMAT "\n", STR_ARG(line));
}

void describe_events(struct client *client, struct buf *out, const struct resource *kind,
                     const struct doc *object)
{
    static const char *const names[] = {"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"};
    struct buf path BUF_CLEANUP = {0};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    struct lines lines = {0};
    struct client_reply list;
    struct str namespace_ = doc_text(object, "metadata.namespace");
    const char *in = namespace_.len ? arena_strdup(&table.arena, namespace_) : "default";
    kind_path(&path, kind_find(STR("events")), in, (struct str){0});
    int rc = client_get(client, buf_str(&path), &list);
    const struct doc *items = rc == EXIT_OK ? doc_get(list.doc, "items") : NULL;
    for (size_t i = 0; i < doc_len(items); i++)
        if (describe_is_about(doc_at(items, i), kind, object))
            take(&lines, doc_at(items, i),
                 !str_is(doc_text(doc_at(items, i), "involvedObject.kind"), kind->kind));
    if (lines.list.len > 1)
        qsort(lines.list.items, lines.list.len, sizeof *lines.list.items, by_time);
    table_heads(&table, names);
    for (size_t i = 0; i < lines.list.len; i++)
        add_line(&table, &lines.list.items[i]);
    buf_add_str(out, lines.list.len ? STR("Events\n") : STR("Events         none\n"));
    if (lines.list.len)
        put_indented(out, &table);
    table_done(&table);
    vec_done(&lines.list);
    arena_done(&lines.arena);
    if (rc == EXIT_OK)
        client_reply_done(&list);
}
