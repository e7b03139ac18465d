/* verify_calls.c - checks that the graph of calls has no cycle and nests no deeper than IR_NESTING_MAX.
 *
 * Kahn's algorithm: a function is removed when all its callers have been; the functions that remain are in a
 * cycle, or called from one. The walk also yields the deepest nesting of each function.
 */
#include "flow/ir/verify.h"

#include "flow/ir/scope.h"

struct call_node {
    const struct ir_function *function;
    uint32_t callers; /* calls of the function from functions that are not removed yet */
    uint32_t nesting; /* most blocks that are active when its body runs, the body included */
    uint32_t deepest; /* as `nesting`, for the regions in the body */
};
struct call_graph {
    VEC(struct call_node) nodes;
    VEC(uint32_t) ready;
    struct scope index; /* function name to node */
    uint32_t from;      /* the node whose calls are being visited */
    bool counting;      /* true: calls are added to `callers`; false: subtracted */
};

/* Handles a call from inside `nesting` blocks. */
static void graph_edge(struct call_graph *graph, const struct ir_function *callee, uint32_t nesting)
{
    const struct scope_name *name = scope_find(&graph->index, callee->name);
    CHECK(name);
    struct call_node *node = &graph->nodes.items[name->count];
    if (graph->counting) {
        node->callers++;
        return;
    }
    node->nesting = nesting + 1 > node->nesting ? nesting + 1 : node->nesting;
    if (--node->callers == 0)
        vec_push(&graph->ready, name->count);
}

static void graph_block(struct call_graph *graph, const struct ir_block *block, uint32_t nesting)
{
    struct call_node *from = &graph->nodes.items[graph->from];
    from->deepest = nesting > from->deepest ? nesting : from->deepest;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->region_count; i++)
            graph_block(graph, &op->regions[i], nesting + 1);
        if (op->kind == IR_OP_CALL)
            graph_edge(graph, op->attributes.call.callee, nesting);
        uint64_t programs = op->kind == IR_OP_RUN_PARALLEL ? (uint64_t)op->attributes.parallel.replicas *
                                                                 op->attributes.parallel.partitions
                                                           : 0;
        for (uint64_t i = 0; i < programs; i++)
            graph_edge(graph, op->attributes.parallel.programs[i], nesting);
    }
}

bool verify_calls(struct verifier *v)
{
    struct call_graph graph = {.counting = true};
    bool ok = true;
    for (const struct ir_function *f = v->module->functions; f; f = f->next) {
        scope_push(&graph.index, f->name, NULL, (uint32_t)graph.nodes.len);
        vec_push(&graph.nodes, ((struct call_node){.function = f, .nesting = 1}));
    }
    for (graph.from = 0; graph.from < graph.nodes.len; graph.from++)
        graph_block(&graph, &graph.nodes.items[graph.from].function->body, 0);
    graph.counting = false;
    for (uint32_t i = 0; i < graph.nodes.len; i++) {
        if (graph.nodes.items[i].callers == 0)
            vec_push(&graph.ready, i);
    }
    while (graph.ready.len > 0) {
        graph.from = vec_pop(&graph.ready);
        const struct call_node *node = &graph.nodes.items[graph.from];
        graph_block(&graph, &node->function->body, node->nesting);
    }
    v->op = NULL;
    for (uint32_t i = 0; i < graph.nodes.len && ok; i++) {
        v->function = graph.nodes.items[i].function;
        if (graph.nodes.items[i].callers > 0)
            ok = verify_fail(v, "calls of it form a circle: recursion is not supported");
        else if (graph.nodes.items[i].deepest > IR_NESTING_MAX)
            ok = verify_fail(v, "more than %d regions and calls inside of each other", IR_NESTING_MAX);
    }
    vec_done(&graph.nodes);
    vec_done(&graph.ready);
    scope_done(&graph.index);
    return ok;
}
