/* phalanx flow check: parses and verifies programs, and says what is wrong with them and where. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/ir/ir.h"

static const char usage[] =
    "Usage: phalanx flow check [--print] FILE...\n"
    "\n"
    "Parses and verifies StableHLO text, as jax.jit(f).lower(x).as_text() prints it, and modules in\n"
    "flow's binary form. A text may hold several modules, separated by lines of \"// -----\".\n"
    "  --print   also print each module in the generic form\n"
    "  --help    this text\n"
    "\n"
    "Exit status: 0 every program is valid, 1 not, 2 the command line is wrong.\n";

struct checked {
    bool print;
    unsigned long long modules, functions, operations; /* of the file */
    struct error error;
};

static unsigned long long block_operations(const struct ir_block *block)
{
    unsigned long long count = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        count++;
        for (uint32_t i = 0; i < op->region_count; i++)
            count += block_operations(&op->regions[i]);
    }
    return count;
}

static int check_flow_module(struct ir_module *module, void *arg)
{
    struct checked *checked = arg;
    int result = ir_verify(module, &checked->error);
    if (result < 0)
        return result;
    checked->modules++;
    for (const struct ir_function *function = module->functions; function; function = function->next) {
        checked->functions++;
        checked->operations += block_operations(&function->body);
    }
    if (checked->print) {
        struct arena ARENA_CLEANUP arena = {0};
        printf(STR_FORMAT, STR_ARG(ir_print(module, &arena)));
    }
    return 0;
}

static int read_whole_file(const char *path, struct buf *text, struct error *error)
{
    char part[65536];
    size_t len;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return error_set_errno(error, errno, "%s", path);
    while ((len = fread(part, 1, sizeof part, file)) > 0 && text->len <= IR_TEXT_MAX)
        buf_add(text, part, len);
    int failed = ferror(file) ? errno : 0;
    if (file != stdin)
        fclose(file);
    return failed ? error_set_errno(error, failed, "%s", path) : 0;
}

/* Prints the file's counts, or what is wrong. */
static bool check_flow_file(const char *path, bool print)
{
    struct buf BUF_CLEANUP text = {0};
    struct checked checked = {.print = print};
    int result = read_whole_file(path, &text, &checked.error);
    if (result == 0 && str_starts(buf_str(&text), STR("PHXF"))) {
        struct ir_module *module = NULL;
        result = ir_decode(buf_str(&text), &module, &checked.error);
        if (result < 0)
            error_wrap(&checked.error, "%s", path);
        else
            result = check_flow_module(module, &checked);
        ir_module_free(module);
    } else if (result == 0) {
        result = ir_parse_split(buf_str(&text), path, check_flow_module, &checked, &checked.error);
    }
    if (result < 0)
        fprintf(stderr, "%s\n", checked.error.text);
    else if (!print)
        printf("%s: %llu modules, %llu functions, %llu operations\n", path, checked.modules,
               checked.functions, checked.operations);
    return result == 0;
}

int flow_check(int argc, char **argv)
{
    static const struct option options[] = {
        {"print", no_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool print = false;
    int refused = 0;
    for (int letter; (letter = usage_option(argc, argv, "h", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (letter != 'p')
            return usage_wrong(usage, NULL);
        print = true;
    }
    if (optind == argc)
        return usage_wrong(usage, "FILE is missing");
    for (int i = optind; i < argc; i++)
        refused += !check_flow_file(argv[i], print);
    if (!print && argc - optind > 1)
        printf("%d files: %d valid, %d refused\n", argc - optind, argc - optind - refused, refused);
    return refused ? EXIT_FAILED : EXIT_OK;
}
