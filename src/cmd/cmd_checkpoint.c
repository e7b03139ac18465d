/* phalanx checkpoint: lists and verifies a folder of checkpoints, and exports its regions to a file for other
 * programs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doc/json.h"
#include "base/units.h"
#include "cmd/usage.h"
#include "cmd/checkpoint_gc.h"
#include "cmd/checkpoint_mirror.h"
#include "cmd/checkpoint_of.h"
#include "cmd/client.h"
#include "cmd/export.h"
#include "cmd/memory_list.h"
#include "host/objectstore/objectstore.h"

static const char usage[] =
    "Usage: phalanx checkpoint list PLACE [-o json]\n"
    "       phalanx checkpoint show PLACE [--step N] [-o json]\n"
    "       phalanx checkpoint verify PLACE [--step N] [-o json]\n"
    "       phalanx checkpoint export PLACE [--step N] -o FILE\n"
    "       phalanx checkpoint gc PLACE [--dry-run]\n"
    "\n"
    "PLACE is one of\n"
    "  jobset/NAME  a job of the cluster, if its checkpoint directory is mounted on this machine too;\n"
    "               jobset/NAME/GROUP if several groups of ranks have a folder each\n"
    "  DIR          the folder that a job's programs see in PHX_CHECKPOINT_DIR or PHX_MEMORY_DIR\n"
    "  ADDRESS      the job's folder in a store (docs/checkpoints.md), such as\n"
    "               s3://bucket/prefix/default/train-x7k2m, whose files are copied to /tmp first\n"
    "\n"
    "Actions:\n"
    "  list    the steps, and whether every rank's part exists, without reading the parts; for a folder\n"
    "          in memory: what its ranks hold, and copies of other machines' parts\n"
    "  show    the parts of one step, and the regions in them\n"
    "  verify  read every part in full; exit status 1 if one is damaged or missing\n"
    "  export  write all regions of one step to one safetensors file, joining parts along their axis\n"
    "  gc      delete what no restore can need: unfinished and incomplete checkpoints older than the\n"
    "          newest complete one; in a store (s3://..., file:///...) also uploads older than a day\n"
    "\n"
    "Options:\n"
    "  --step N        the step (default: show, export: the newest complete one; verify: all)\n"
    "  -o, --output    list, show, verify: json, for one JSON object (also --json);\n"
    "                  export: the FILE, written whole or not at all\n"
    "  --dry-run       gc: print what would be deleted\n"
    "  -n, --namespace NAME   the namespace of jobset/NAME (default: default)\n"
    "  -s, --server URL       the controller to ask about jobset/NAME\n"
    "  -h, --help      this text\n"
    "\n"
    "Exit status: 0 done, 1 damaged, missing or not written, 2 wrong usage, 3 no such checkpoint.\n";

struct options {
    struct client_options client; /* for jobset/NAME */
    const char *verb, *folder, *output;
    int64_t step; /* -1: none was named */
    bool json, dry_run;
};

static struct str number(struct text_table *table, uint64_t value)
{
    return arena_printf(&table->arena, "%llu", (unsigned long long)value);
}

static struct str size_text(struct text_table *table, uint64_t bytes)
{
    char text[24];
    bytes_format(bytes, text);
    return arena_printf(&table->arena, "%s", text);
}

static struct str set_state(struct arena *arena, const struct shard_set *set)
{
    if (!set->world)
        return STR("unreadable");
    if (!set->missing)
        return STR("complete");
    return arena_printf(arena, "%u missing: rank %u%s", set->missing, set->missing_first,
                        set->missing > 1 ? ", ..." : "");
}

static int print(struct buf *out, int status)
{
    output_write(out);
    buf_done(out);
    return status;
}

/* --- list ----------------------------------------------------------------------------------------- */

static void json_set(struct json_writer *writer, const struct shards *shards, const struct shard_set *set)
{
    const struct shard *first = &shards->list.items[set->first];
    json_pair_int(writer, "step", (int64_t)first->step);
    json_pair_int(writer, "attempt", first->attempt);
    json_pair_int(writer, "world", set->world);
    json_pair_int(writer, "bytes", (int64_t)set->bytes);
    json_pair_int(writer, "missing", set->missing);
    json_pair_bool(writer, "complete", set->world > 0 && !set->missing);
}

static int list(const struct options *options, struct shards *shards)
{
    static const char *const names[] = {"STEP", "ATTEMPT", "RANKS", "SIZE", "STATE"};
    struct buf out = {0};
    struct json_writer writer = {.out = &out};
    struct text_table table = {.columns = 5};
    table_heads(&table, names);
    if (options->json) {
        json_begin_object(&writer);
        json_key(&writer, "checkpoints");
        json_begin_array(&writer);
    }
    for (size_t i = 0; i < shards->sets.len; i++) {
        const struct shard_set *set = &shards->sets.items[i];
        const struct shard *first = &shards->list.items[set->first];
        if (options->json) {
            json_begin_object(&writer);
            json_set(&writer, shards, set);
            json_end_object(&writer);
            continue;
        }
        table_add(&table, number(&table, first->step));
        table_add(&table, number(&table, first->attempt));
        table_add(&table, number(&table, set->world));
        table_add(&table, size_text(&table, set->bytes));
        table_add(&table, set_state(&table.arena, set));
    }
    if (options->json) {
        json_end_array(&writer);
        json_end_object(&writer);
        buf_add_char(&out, '\n');
    } else {
        table_print(&table, &out, output_colors());
    }
    table_done(&table);
    return print(&out, EXIT_OK);
}

/* --- show ----------------------------------------------------------------------------------------- */

static void show_regions(struct text_table *table, struct shards *shards, const struct shard *shard)
{
    const uint8_t *data;
    const struct doc *header = shard_regions(shards, shard, &data),
                     *metadata = doc_get(header, "__metadata__");
    for (size_t i = 0; i < doc_len(header); i++) {
        const struct doc_member *member = &header->object.members[i];
        const struct doc *offsets = doc_get(member->value, "data_offsets");
        struct buf shape BUF_CLEANUP = {0};
        if (str_is(member->key, "__metadata__"))
            continue;
        json_write(&shape, doc_get(member->value, "shape"));
        struct str key = arena_printf(&table->arena, "phalanx.shard." STR_FORMAT, STR_ARG(member->key));
        table_add(table, number(table, shard->rank));
        table_add(table, arena_str(&table->arena, member->key));
        table_add(table, doc_str(doc_get(member->value, "dtype"), STR("?")));
        table_add(table, arena_str(&table->arena, buf_str(&shape)));
        table_add(table, size_text(table, (uint64_t)(doc_int(doc_at(offsets, 1), 0) -
                                                     doc_int(doc_at(offsets, 0), 0))));
        table_add(table, doc_str(doc_get_str(metadata, key), STR("whole")));
    }
    if (!header) {
        table_add(table, number(table, shard->rank));
        table_add(table, STR("-"));
        table_add(table, STR("-"));
        table_add(table, STR("-"));
        table_add(table, size_text(table, shard->header.len));
        table_add(table, shard->damage ? str_from(shard->damage) : STR("without named regions"));
    }
}

static void json_shards(struct json_writer *writer, struct shards *shards, const struct shard_set *set)
{
    json_begin_object(writer);
    json_set(writer, shards, set);
    json_key(writer, "shards");
    json_begin_array(writer);
    for (size_t i = 0; i < set->count; i++) {
        const struct shard *shard = &shards->list.items[set->first + i];
        const uint8_t *data;
        const struct doc *header = shard->data ? shard_regions(shards, shard, &data) : NULL;
        json_begin_object(writer);
        json_pair_int(writer, "rank", shard->rank);
        json_pair_str(writer, "file", shard->path);
        json_pair_int(writer, "bytes", (int64_t)shard->header.len);
        if (shard->damage)
            json_pair_text(writer, "damage", shard->damage);
        if (header) {
            json_key(writer, "regions");
            json_put_doc(writer, header);
        }
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static int show(const struct options *options, struct shards *shards, const struct shard_set *set)
{
    static const char *const names[] = {"RANK", "REGION", "DTYPE", "SHAPE", "SIZE", "PART"};
    struct buf out = {0};
    for (size_t i = 0; i < set->count; i++)
        shard_open(&shards->list.items[set->first + i]);
    if (options->json) {
        json_shards(&(struct json_writer){.out = &out}, shards, set);
        buf_add_char(&out, '\n');
        return print(&out, EXIT_OK);
    }
    struct text_table table = {.columns = 6};
    struct str state = set_state(&table.arena, set);
    buf_printf(&out, "step %llu, attempt %u, %u ranks: " STR_FORMAT "\n",
               (unsigned long long)shards->list.items[set->first].step,
               shards->list.items[set->first].attempt, set->world, STR_ARG(state));
    table_heads(&table, names);
    for (size_t i = 0; i < set->count; i++)
        show_regions(&table, shards, &shards->list.items[set->first + i]);
    table_print(&table, &out, output_colors());
    table_done(&table);
    return print(&out, EXIT_OK);
}

/* --- verify --------------------------------------------------------------------------------------- */

static int verify(const struct options *options, struct shards *shards)
{
    struct buf out = {0};
    struct json_writer writer = {.out = &out};
    size_t damaged = 0, read = 0, incomplete = 0;
    for (size_t i = 0; i < shards->sets.len; i++) {
        struct shard_set *set = &shards->sets.items[i];
        uint64_t step = shards->list.items[set->first].step;
        if (options->step >= 0 && step != (uint64_t)options->step)
            continue;
        incomplete += !set->world || set->missing > 0;
        if (!options->json && (!set->world || set->missing))
            buf_printf(&out, "step %llu, attempt %u: " STR_FORMAT "\n", (unsigned long long)step,
                       shards->list.items[set->first].attempt, STR_ARG(set_state(&shards->arena, set)));
        for (size_t k = 0; k < set->count; k++, read++) {
            struct shard *shard = &shards->list.items[set->first + k];
            if (shard_verify(shard))
                continue;
            damaged++;
            if (!options->json)
                buf_printf(&out, STR_FORMAT ": %s\n", STR_ARG(shard->path), shard->damage);
        }
        for (size_t k = 0; k < set->count; k++)
            shard_close(&shards->list.items[set->first + k]);
    }
    if (options->json) {
        json_begin_object(&writer);
        json_pair_int(&writer, "shards", (int64_t)read);
        json_pair_int(&writer, "damaged", (int64_t)damaged);
        json_pair_int(&writer, "incomplete", (int64_t)incomplete);
        json_end_object(&writer);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%zu parts read, %zu damaged, %zu checkpoints incomplete\n", read, damaged,
                   incomplete);
    }
    return print(&out, damaged || incomplete ? EXIT_FAILED : EXIT_OK);
}

/* --- export --------------------------------------------------------------------------------------- */

static int export_regions(const struct options *options, struct shards *shards, const struct shard_set *set)
{
    struct error error;
    if (!set->world || set->missing) {
        say("step %llu: " STR_FORMAT, (unsigned long long)shards->list.items[set->first].step,
            STR_ARG(set_state(&shards->arena, set)));
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < set->count; i++) {
        struct shard *shard = &shards->list.items[set->first + i];
        if (!shard_verify(shard)) {
            say(STR_FORMAT ": %s", STR_ARG(shard->path), shard->damage);
            return EXIT_FAILED;
        }
    }
    if (checkpoint_export(shards, set, options->output, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    printf("%s: step %llu of %u ranks\n", options->output,
           (unsigned long long)shards->list.items[set->first].step, set->world);
    return EXIT_OK;
}

/* --- the command line ----------------------------------------------------------------------------- */

static int parse(struct options *options, int argc, char **argv)
{
    static const char *const verbs[] = {"list", "show", "verify", "export", "gc"};
    static const struct option known[] = {{"step", required_argument, NULL, 'S'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"dry-run", no_argument, NULL, 'd'},
                                          {"namespace", required_argument, NULL, 'n'},
                                          {"server", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int option; (option = usage_option(argc, argv, "ho:n:s:", known, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return -1;
        } else if (option == 'S' && !str_to_i64(str_from(optarg), 0, INT64_MAX, &options->step)) {
            say("--step %s: expected a number from 0", optarg);
            return EXIT_USAGE;
        } else if (option == 'o') {
            options->output = optarg;
        } else if (option == 'n' || option == 's') {
            (void)client_option(&options->client, option, optarg);
        } else if (option == 'd') {
            options->dry_run = true;
        } else if (option == 'j') {
            options->json = true;
        } else if (option == '?') {
            return usage_wrong(usage, NULL);
        }
    }
    if (argc - optind != 2) {
        return usage_wrong(usage, "an action and a PLACE are needed");
    }
    options->verb = argv[optind];
    options->folder = argv[optind + 1];
    bool export = strcmp(options->verb, "export") == 0, is_known = false;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        is_known |= strcmp(options->verb, verbs[i]) == 0;
    if (!is_known) {
        usage_unknown("action", str_from(options->verb), verbs, sizeof verbs / sizeof *verbs);
        return usage_wrong(usage, NULL);
    }
    if (export && !options->output)
        return usage_wrong(usage, "export needs -o FILE");
    if (!export && options->output) { /* list, show and verify print text or JSON */
        if (!usage_json(options->output, &options->json))
            return EXIT_USAGE;
        options->output = NULL;
    }
    return EXIT_OK;
}

static int inspect(const struct options *options)
{
    struct shards shards;
    struct error error;
    struct buf held = {0};
    int status;
    if (options->verb[0] == 'l' && memory_list(options->folder, options->json, &held))
        return print(&held, EXIT_OK);
    if (shards_scan(options->folder, &shards, &error) < 0) {
        say("%s", error.text);
        return error.code == ERROR_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_FAILED;
    }
    bool one = options->verb[0] == 's' || options->verb[0] == 'e';
    const struct shard_set *set = one || options->step >= 0 ? shards_choose(&shards, options->step) : NULL;
    if (!set && options->step >= 0) {
        say("%s: there is no step %lld", options->folder, (long long)options->step);
        status = EXIT_NOT_FOUND;
    } else if (!set && one) {
        say("%s: no checkpoint is complete; --step N names one", options->folder);
        status = EXIT_NOT_FOUND;
    } else if (options->verb[0] == 'l') {
        status = list(options, &shards);
    } else if (options->verb[0] == 'v') {
        status = verify(options, &shards);
    } else {
        status =
            options->verb[0] == 's' ? show(options, &shards, set) : export_regions(options, &shards, set);
    }
    shards_done(&shards);
    return status;
}

/* Fetches the headers first, which have the steps and everything that a list needs, then the whole shards of
 * the chosen step. */
static int fetch(struct options *options, const char *folder, struct error *error)
{
    struct shards shards;
    bool one = options->verb[0] == 's' || options->verb[0] == 'e';
    int rc = checkpoint_mirror(options->folder, folder, options->step, false, error);
    if (rc < 0 || options->verb[0] == 'l')
        return rc;
    if (one && options->step < 0 && shards_scan(folder, &shards, NULL) == 0) {
        const struct shard_set *set = shards_choose(&shards, -1);
        options->step = set ? (int64_t)shards.list.items[set->first].step : -1;
        shards_done(&shards);
        if (!set)
            return 0; /* the caller that looks for the step reports it */
    }
    return checkpoint_mirror(options->folder, folder, options->step, true, error);
}

static int inspect_store(struct options *options)
{
    char folder[] = "/tmp/phalanx-checkpoint-XXXXXX";
    struct error error;
    struct buf output BUF_CLEANUP = {0};
    char *here = getcwd(NULL, 0);
    if (!here || !mkdtemp(folder)) {
        say("%s: %s", folder, strerror(errno));
        free(here);
        return EXIT_FAILED;
    }
    buf_printf(&output, "%s/%s", here, options->output ? options->output : "");
    if (options->output && options->output[0] != '/')
        options->output = output.data;
    int rc = fetch(options, folder, &error), status = EXIT_FAILED;
    if (rc == 0 && chdir(folder) == 0) { /* messages about files then name their keys */
        options->folder = ".";
        status = inspect(options);
        rc = chdir(here);
    } else if (rc < 0) {
        say("%s", error.text);
        status = rc == ERROR_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_FAILED;
    }
    checkpoint_mirror_remove(folder);
    free(here);
    return status;
}

int cmd_checkpoint(int argc, char **argv)
{
    struct options options = {.step = -1};
    int status = parse(&options, argc, argv);
    if (status != EXIT_OK)
        return status < 0 ? EXIT_OK : status;
    struct buf folder BUF_CLEANUP = {0};
    if (checkpoint_is_of_job(options.folder)) {
        status = checkpoint_of_job(options.folder, &options.client, &folder);
        if (status != EXIT_OK)
            return status;
        options.folder = folder.data;
    }
    if (options.verb[0] == 'g')
        return checkpoint_gc(options.folder, options.dry_run);
    return store_place_is(options.folder) ? inspect_store(&options) : inspect(&options);
}
