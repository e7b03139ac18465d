/* phalanx flow check: parses and verifies programs, and prints their mistakes with their places. */
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

/* Checks a file, and prints its counts or its mistake. */
static bool check_flow_file(const char *path, bool print)
{
    struct checked checked = {.print = print};
    int result = flow_modules(path, check_flow_module, &checked, &checked.error);
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
