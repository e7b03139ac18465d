/* phalanx get, phalanx events: print the server's own tables, or the objects as JSON, YAML or names. */
#include <stdio.h>

#include "doc/yaml.h"
#include "cmd/usage.h"
#include "cmd/client.h"

static const char usage[] =
    "Usage: phalanx get KIND[,KIND...] [NAME...] [options]\n"
    "       phalanx get KIND/NAME... [options]\n"
    "\n"
    "Lists objects: jobsets (js), jobs, pods (po, tasks), nodes (no, machines), events (ev), namespaces\n"
    "(ns), faults, repairs, lemons, queues, workloads and every other kind that the controller serves.\n"
    "\n"
    "  -o, --output FORMAT    table, wide, json, yaml or name (default: table)\n"
    "  -l, --selector TEXT    only objects with these labels: a=b, a!=b, a in (x,y), a, !a; comma for\n"
    "                         and\n"
    "      --field-selector T only objects with these fields: metadata.name=x, spec.nodeName=x, ...\n"
    "  -A, --all-namespaces   in every namespace\n"
    "  -w, --watch            keep printing changes until interrupted\n"
    "      --no-headers       omit the line of column names\n" CLIENT_HELP CLIENT_EXIT_HELP;

static const char events_usage[] =
    "Usage: phalanx events [options]\n"
    "\n"
    "Lists what happened, oldest first.\n"
    "\n"
    "      --for KIND/NAME    only what is about this object\n"
    "  -o, --output FORMAT    table, wide, json, yaml or name (default: table)\n"
    "  -A, --all-namespaces   in every namespace\n"
    "  -w, --watch            go on printing until interrupted\n" CLIENT_HELP CLIENT_EXIT_HELP;

enum format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_YAML, FORMAT_NAME };

struct getting {
    struct client client;
    struct client_options options;
    enum format format;
    const char *labels, *fields, *about;
    bool watch, no_headers, several;
    const struct resource *kind;
    struct text_table table;
};

#define ACCEPT_TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

static bool parse_format(const char *text, enum format *ret_format)
{
    static const char *const names[] = {"table", "wide", "json", "yaml", "name"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_format = (enum format)i;
            return true;
        }
    }
    usage_unknown("output format", str_from(text), names, 5);
    return false;
}

/* --- tables ------------------------------------------------------------------------------------ */

/* Takes the columns of a Table document; the first column of ours is the namespace when all are shown. */
static void take_columns(struct getting *getting, const struct doc *document)
{
    const struct doc *columns = doc_get(document, "columnDefinitions");
    struct text_table *table = &getting->table;
    bool spaces = getting->options.all_namespaces && getting->kind->namespaced;
    if (doc_len(columns) == 0)
        return;
    table->columns = doc_len(columns) + spaces;
    if (table->columns > TABLE_COLUMNS_MAX)
        table->columns = TABLE_COLUMNS_MAX;
    memset(table->hidden, 0, sizeof table->hidden);
    memset(table->width, 0, sizeof table->width);
    memset(table->worth, 0, sizeof table->worth);
    for (size_t i = 0; i + spaces < table->columns; i++) {
        table->worth[i + spaces] = doc_number(doc_at(columns, i), "priority", 0) > 0;
        table->hidden[i + spaces] = getting->format != FORMAT_WIDE && table->worth[i + spaces];
    }
    if (getting->no_headers)
        return;
    if (spaces)
        table_add(table, STR("NAMESPACE"));
    for (size_t i = 0; i + spaces < table->columns; i++) {
        char name[64];
        struct str text = doc_text(doc_at(columns, i), "name");
        size_t len = text.len < sizeof name ? text.len : sizeof name;
        for (size_t k = 0; k < len; k++)
            name[k] = text.data[k] >= 'a' && text.data[k] <= 'z' ? (char)(text.data[k] - 32) : text.data[k];
        table_add(table, (struct str){name, len});
    }
}

static void take_rows(struct getting *getting, const struct doc *document)
{
    const struct doc *rows = doc_get(document, "rows");
    struct text_table *table = &getting->table;
    bool spaces = getting->options.all_namespaces && getting->kind->namespaced;
    for (size_t r = 0; r < doc_len(rows) && table->columns; r++) {
        const struct doc *row = doc_at(rows, r), *cells = doc_get(row, "cells");
        if (spaces)
            table_add(table, doc_text(row, "object.metadata.namespace"));
        for (size_t i = 0; i + spaces < table->columns; i++) {
            const struct doc *value = doc_at(cells, i);
            struct str cell = doc_str(value, STR(""));
            if (value && value->kind == DOC_INT)
                cell = arena_printf(&table->arena, "%lld", (long long)value->integer);
            /* kubectl prefixes names when several kinds are asked for, so that the output can be an input. */
            if (i == 0 && getting->several)
                cell = arena_printf(&table->arena, "%s/" STR_FORMAT, getting->kind->singular, STR_ARG(cell));
            table_add(table, cell);
        }
    }
}

/* Hides columns of `-o wide` for which no row has a value. */
static void hide_unused(struct text_table *table, size_t first)
{
    for (size_t column = 0; column < table->columns; column++) {
        bool used = table->worth[column] == 0 || table->cells.len <= first;
        for (size_t i = first + column; i < table->cells.len && !used; i += table->columns)
            used = !str_is(table->cells.items[i], "<none>");
        table->hidden[column] |= !used;
    }
}

static void print_table(struct getting *getting)
{
    struct buf out BUF_CLEANUP = {0};
    if (!getting->watch)
        hide_unused(&getting->table, getting->no_headers ? 0 : getting->table.columns);
    table_print(&getting->table, &out, output_colors());
    output_write(&out);
}

/* --- documents --------------------------------------------------------------------------------- */

static void put_name(struct buf *out, const struct getting *getting, const struct doc *object)
{
    buf_printf(out, "%s/" STR_FORMAT "\n", getting->kind->singular,
               STR_ARG(doc_text(object, "metadata.name")));
}

static void print_document(struct getting *getting, const struct doc *document)
{
    struct buf out BUF_CLEANUP = {0};
    const struct doc *items = doc_get(document, "items");
    if (getting->format == FORMAT_NAME) {
        if (!items)
            put_name(&out, getting, document);
        for (size_t i = 0; i < doc_len(items); i++)
            put_name(&out, getting, doc_at(items, i));
    } else if (getting->format == FORMAT_YAML) {
        if (getting->several)
            buf_add_str(&out, STR("---\n"));
        yaml_write(&out, document);
    } else {
        json_write_pretty(&out, document);
        output_escape(&out);
    }
    output_write(&out);
}

static bool on_change(void *context, struct str line)
{
    struct getting *getting = context;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *change;
    if (json_parse(&arena, line, &change, NULL) < 0)
        return true;
    struct str type = doc_text(change, "type");
    const struct doc *object = doc_get(change, "object");
    if (str_is(type, "ERROR")) {
        say(STR_FORMAT, STR_ARG(doc_text(object, "message")));
        return false;
    }
    if (str_is(type, "BOOKMARK"))
        return true;
    if (getting->format <= FORMAT_WIDE) {
        take_rows(getting, object);
        print_table(getting);
    } else {
        print_document(getting, object);
    }
    return true;
}

/* --- one kind ---------------------------------------------------------------------------------- */

static void add_selectors(struct getting *getting, struct buf *path, struct str name)
{
    if (getting->labels) {
        buf_printf(path, "%slabelSelector=", strchr(path->data, '?') ? "&" : "?");
        url_add(path, str_from(getting->labels));
    }
    if (getting->fields || name.len) {
        struct buf text BUF_CLEANUP = {0};
        buf_printf(&text, "%s%s", getting->fields ? getting->fields : "",
                   getting->fields && name.len ? "," : "");
        if (name.len)
            buf_printf(&text, "metadata.name=" STR_FORMAT, STR_ARG(name));
        buf_printf(path, "%sfieldSelector=", strchr(path->data, '?') ? "&" : "?");
        url_add(path, buf_str(&text));
    }
}

static int follow(struct getting *getting, struct str name, struct str version)
{
    struct buf path BUF_CLEANUP = {0};
    bool ended;
    kind_path(&path, getting->kind, client_namespace(&getting->options), (struct str){0});
    buf_printf(&path, "?watch=true&resourceVersion=" STR_FORMAT, STR_ARG(version));
    add_selectors(getting, &path, name);
    return client_stream(&getting->client, buf_str(&path),
                         getting->format <= FORMAT_WIDE ? ACCEPT_TABLE : NULL, 0, on_change, getting, &ended);
}

static int get_one(struct getting *getting, struct str name)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    bool table = getting->format <= FORMAT_WIDE;
    kind_path(&path, getting->kind, client_namespace(&getting->options), name);
    if (name.len == 0)
        add_selectors(getting, &path, name);
    struct client_request request = {.path = buf_str(&path), .accept = table ? ACCEPT_TABLE : NULL};
    int rc = client_call(&getting->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    if (reply.code >= 400 || !reply.doc) {
        rc = client_refused(&reply, NULL);
    } else if (table) {
        if (!getting->table.cells.len && !getting->table.header_printed)
            take_columns(getting, reply.doc);
        getting->table.header_printed = true;
        take_rows(getting, reply.doc);
    } else {
        print_document(getting, reply.doc);
    }
    struct arena arena ARENA_CLEANUP = {0};
    struct str version = arena_str(&arena, doc_text(reply.doc, "metadata.resourceVersion"));
    client_reply_done(&reply);
    if (rc == EXIT_OK && getting->watch) {
        print_table(getting);
        rc = follow(getting, name, version);
    }
    return rc;
}

static int get_names(struct getting *getting, struct str *names, size_t count)
{
    int result = EXIT_OK;
    getting->table = (struct text_table){0};
    for (size_t i = 0; i < (count ? count : 1); i++) {
        int rc = get_one(getting, count ? names[i] : (struct str){0});
        if (rc != EXIT_OK)
            result = rc;
        if (rc == EXIT_UNREACHABLE)
            break;
    }
    bool table = getting->format <= FORMAT_WIDE;
    if (table && result == EXIT_OK && !getting->watch &&
        getting->table.cells.len <= (getting->no_headers ? 0 : getting->table.columns)) {
        if (!getting->several)
            fprintf(stderr, "no %s found%s%s\n", getting->kind->plural,
                    getting->kind->namespaced && client_namespace(&getting->options) ? " in namespace " : "",
                    getting->kind->namespaced && client_namespace(&getting->options)
                        ? client_namespace(&getting->options)
                        : "");
    } else if (table) {
        print_table(getting);
    }
    table_done(&getting->table);
    return result;
}

/* Gets "jobsets,pods" [NAME...]. */
static int get_kinds(struct getting *getting, const char *list, char **names, int count)
{
    struct str rest = str_from(list), head, tail;
    VEC(struct str) wanted = {0};
    int result = EXIT_OK;
    bool printed = false;
    for (int i = 0; i < count; i++)
        vec_push(&wanted, str_from(names[i]));
    getting->several = strchr(list, ',') != NULL;
    do {
        bool more = str_cut(rest, ',', &head, &tail);
        if (!more)
            head = rest;
        rest = more ? tail : (struct str){0};
        getting->kind = kind_find(head);
        if (!getting->kind) {
            kind_say_unknown(head);
            result = EXIT_USAGE;
            break;
        }
        if (printed && getting->format <= FORMAT_WIDE)
            putchar('\n');
        printed = true;
        int rc = get_names(getting, wanted.items, wanted.len);
        if (rc != EXIT_OK)
            result = rc;
    } while (rest.len && result != EXIT_UNREACHABLE);
    vec_done(&wanted);
    return result;
}

static int get_pairs(struct getting *getting, char **pairs, int count)
{
    int result = EXIT_OK;
    getting->several = count > 1;
    for (int i = 0; i < count; i++) {
        struct str name;
        if (!kind_split(pairs[i], &getting->kind, &name))
            return EXIT_USAGE;
        int rc = get_names(getting, &name, 1);
        if (rc != EXIT_OK)
            result = rc;
    }
    return result;
}

static bool parse(struct getting *getting, int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"selector", required_argument, NULL, 'l'},
                                            {"field-selector", required_argument, NULL, 'F'},
                                            {"watch", no_argument, NULL, 'w'},
                                            {"no-headers", no_argument, NULL, 'H'},
                                            {"for", required_argument, NULL, 'R'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:l:w", options, NULL)) != -1) {
        switch (letter) {
        case 'o':
            if (!parse_format(optarg, &getting->format))
                return false;
            break;
        case 'l':
            getting->labels = optarg;
            break;
        case 'F':
            getting->fields = optarg;
            break;
        case 'w':
            getting->watch = true;
            break;
        case 'H':
            getting->no_headers = true;
            break;
        case 'R':
            getting->about = optarg;
            break;
        default:
            if (!client_option(&getting->options, letter, optarg))
                return false;
        }
    }
    return true;
}

int cmd_get(int argc, char **argv)
{
    struct getting getting = {0};
    bool good = parse(&getting, argc, argv);
    if (getting.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (!good || optind == argc || getting.about) {
        return usage_wrong(usage, !good           ? NULL
                                  : getting.about ? "--for is an option of `phalanx events`"
                                                  : "KIND is missing");
    }
    client_open(&getting.client, &getting.options);
    int rc = strchr(argv[optind], '/')
                 ? get_pairs(&getting, argv + optind, argc - optind)
                 : get_kinds(&getting, argv[optind], argv + optind + 1, argc - optind - 1);
    client_close(&getting.client);
    return rc;
}

int cmd_events(int argc, char **argv)
{
    struct getting getting = {0};
    struct buf fields BUF_CLEANUP = {0};
    bool good = parse(&getting, argc, argv);
    if (getting.options.help) {
        fputs(events_usage, stdout);
        return EXIT_OK;
    }
    if (!good || optind < argc) {
        return good ? usage_wrong(events_usage, "unexpected argument \"%s\"", argv[optind])
                    : usage_wrong(events_usage, NULL);
    }
    if (getting.about) {
        const struct resource *kind;
        struct str name;
        if (!kind_split(getting.about, &kind, &name))
            return EXIT_USAGE;
        buf_printf(&fields, "%s%sinvolvedObject.kind=%s,involvedObject.name=" STR_FORMAT,
                   getting.fields ? getting.fields : "", getting.fields ? "," : "", kind->kind,
                   STR_ARG(name));
        getting.fields = fields.data;
    }
    client_open(&getting.client, &getting.options);
    getting.kind = kind_find(STR("events"));
    int rc = get_names(&getting, NULL, 0);
    client_close(&getting.client);
    return rc;
}
