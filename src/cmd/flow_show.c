/* phalanx flow show: draws the operations of a function as an SVG picture. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/flow_picture.h"
#include "cmd/usage.h"

static const char usage[] =
    "Usage: phalanx flow show FILE [--function NAME] [-o PICTURE.svg]\n"
    "\n"
    "Draws a function of a StableHLO module: a box for each operation with its result's type, collectives\n"
    "and operations with regions in colours of their own. The file is text or flow's binary form.\n"
    "  --function NAME   which function (default: main, or the module's first one)\n"
    "  -o PICTURE.svg    where the picture goes (default: standard output)\n"
    "  --help            this text\n"
    "\n"
    "Example: phalanx flow show step.mlir -o step.svg\n"
    "\n"
    "Exit status: 0 drawn, 1 the file is wrong or too large to draw, 2 the command line is wrong.\n";

struct showing {
    const char *function;
    struct buf svg;
    bool shown;
    struct error error;
};

static enum picture_kind shown_kind(const struct ir_op *op)
{
    if (op->kind >= IR_OP_ALL_GATHER && op->kind <= IR_OP_REPLICA_ID)
        return PICTURE_COLLECTIVE;
    return op->region_count > 0 || op->kind == IR_OP_CALL ? PICTURE_REGION : PICTURE_OPERATION;
}

/* Writes a title, such as "reduce: add" for a region of one operation, or "call @f" for a call. */
static void title_of(const struct ir_op *op, char title[PICTURE_TEXT_MAX])
{
    const struct ir_op *first = op->region_count == 1 ? op->regions[0].first : NULL;
    if (op->kind == IR_OP_CALL)
        snprintf(title, PICTURE_TEXT_MAX, "call @" STR_FORMAT, STR_ARG(op->attributes.call.callee->name));
    else if (first && first->next == op->regions[0].last)
        snprintf(title, PICTURE_TEXT_MAX, "%s: %s", ir_op_name(op->kind), ir_op_name(first->kind));
    else
        snprintf(title, PICTURE_TEXT_MAX, "%s", ir_op_name(op->kind));
}

/* Writes the type without "tensor<" and ">". */
static void detail_of(const struct ir_type *type, char detail[PICTURE_TEXT_MAX])
{
    char text[IR_TYPE_TEXT_MAX];
    struct str whole = str_from(ir_type_text(type, text));
    if (str_starts(whole, STR("tensor<")))
        whole = (struct str){whole.data + 7, whole.len - 8};
    snprintf(detail, PICTURE_TEXT_MAX, STR_FORMAT, STR_ARG(whole));
}

/* Adds edges from all values that the operation or its regions read and that are defined outside of it. */
static void edges_of(struct flow_picture *picture, const uint32_t *made, const struct ir_op *op,
                     uint32_t node)
{
    for (uint32_t k = 0; k < op->operand_count; k++) {
        uint32_t from = made[op->operands[k]->number];
        if (from != 0 && from - 1 < node)
            flow_picture_edge(picture, from - 1, node);
    }
    for (uint32_t r = 0; r < op->region_count; r++)
        for (const struct ir_op *inner = op->regions[r].first; inner; inner = inner->next)
            edges_of(picture, made, inner, node);
}

/* `made` has 1 + the node of each value that is drawn. */
static void picture_function(struct flow_picture *picture, const struct ir_function *function, uint32_t *made)
{
    char title[PICTURE_TEXT_MAX], detail[PICTURE_TEXT_MAX];
    for (uint32_t k = 0; k < function->body.arg_count; k++) {
        snprintf(title, sizeof title, "argument %u", k);
        detail_of(&function->body.args[k].type, detail);
        made[function->body.args[k].number] = 1 + flow_picture_node(picture, PICTURE_ARGUMENT, title, detail);
    }
    for (const struct ir_op *op = function->body.first; op; op = op->next) {
        if (op->kind == IR_OP_RETURN) {
            for (uint32_t k = 0; k < op->operand_count; k++) {
                snprintf(title, sizeof title, "result %u", k);
                detail_of(&op->operands[k]->type, detail);
                uint32_t node = flow_picture_node(picture, PICTURE_RESULT, title, detail);
                flow_picture_edge(picture, made[op->operands[k]->number] - 1, node);
            }
            continue;
        }
        title_of(op, title);
        detail[0] = '\0';
        if (op->result_count > 0)
            detail_of(&op->results[0].type, detail);
        uint32_t node = flow_picture_node(picture, shown_kind(op), title, detail);
        for (uint32_t k = 0; k < op->result_count; k++)
            made[op->results[k].number] = 1 + node;
        edges_of(picture, made, op, node);
    }
}

static const struct ir_function *function_to_show(const struct ir_module *module, const char *name)
{
    if (name)
        return ir_function(module, str_from(name));
    const struct ir_function *main_function = ir_function(module, STR("main"));
    return main_function ? main_function : module->functions;
}

static int show_flow_module(struct ir_module *module, void *arg)
{
    struct showing *showing = arg;
    const struct ir_function *function = function_to_show(module, showing->function);
    if (showing->shown || !function)
        return 0;
    int code = ir_verify(module, &showing->error);
    if (code < 0)
        return code;
    size_t operations = 0;
    for (const struct ir_op *op = function->body.first; op; op = op->next)
        operations++;
    if (operations + function->body.arg_count > PICTURE_NODES_MAX)
        return error_set(&showing->error, ERROR_LIMIT, "@" STR_FORMAT " has %zu operations; %d can be drawn",
                         STR_ARG(function->name), operations, PICTURE_NODES_MAX);
    struct flow_picture picture = {0};
    uint32_t *made = mem_alloc((function->value_count + 1) * sizeof *made);
    picture_function(&picture, function, made);
    flow_picture_svg(&picture, &showing->svg);
    flow_picture_done(&picture);
    mem_free(made);
    showing->shown = true;
    return 0;
}

static int picture_write(const struct buf *svg, const char *path, struct error *error)
{
    FILE *file = path ? fopen(path, "w") : stdout;
    if (!file)
        return error_set_errno(error, errno, "%s", path);
    bool written = fwrite(svg->data, 1, svg->len, file) == svg->len;
    written = (path ? fclose(file) : fflush(file)) == 0 && written;
    return written ? 0 : error_set_errno(error, errno, "%s", path ? path : "standard output");
}

int flow_show(int argc, char **argv)
{
    static const struct option options[] = {
        {"function", required_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct showing showing = {0};
    const char *output = NULL;
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (letter == 'f')
            showing.function = optarg;
        else if (letter == 'o')
            output = optarg;
        else
            return usage_wrong(usage, NULL);
    }
    if (optind + 1 != argc)
        return usage_wrong(usage, optind == argc ? "FILE is missing" : "one FILE is drawn at a time");
    int code = flow_modules(argv[optind], show_flow_module, &showing, &showing.error);
    if (code == 0 && !showing.shown)
        code = error_set(&showing.error, ERROR_NOT_FOUND, "%s: no function @%s", argv[optind],
                         showing.function ? showing.function : "main");
    if (code == 0)
        code = picture_write(&showing.svg, output, &showing.error);
    buf_done(&showing.svg);
    if (code < 0)
        fprintf(stderr, "%s\n", showing.error.text);
    return code < 0 ? EXIT_FAILED : EXIT_OK;
}
