/* verify_calls.c - the graph of calls has no circle and no chain beyond IR_CALLS_MAX.
 *
 * Kahn's algorithm: a function whose callers are all done is taken out; whoever remains is in a circle, or
 * called from one. The longest chain to each function falls out on the way.
 */
#include "flow/ir/verify.h"

#include "flow/ir/scope.h"

struct call_node {
    const struct ir_function *function;
    uint32_t callers; /* calls of it that are not counted yet */
    uint32_t chain;   /* functions in the longest chain that ends here */
};
struct call_graph {
    VEC(struct call_node) nodes;
    VEC(uint32_t) ready;
    struct scope index; /* function name to node */
    uint32_t from;      /* the node whose calls are looked at */
    bool counting;      /* callers are counted up; later they are taken away */
};

static void graph_edge(struct call_graph *graph, const struct ir_function *callee)
{
    const struct scope_name *name = scope_find(&graph->index, callee->name);
    CHECK(name);
    struct call_node *node = &graph->nodes.items[name->count];
    if (graph->counting) {
        node->callers++;
        return;
    }
    uint32_t chain = graph->nodes.items[graph->from].chain + 1;
    node->chain = chain > node->chain ? chain : node->chain;
    if (--node->callers == 0)
        vec_push(&graph->ready, name->count);
}

static void graph_block(struct call_graph *graph, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->region_count; i++)
            graph_block(graph, &op->regions[i]);
        if (op->kind == IR_OP_CALL)
            graph_edge(graph, op->attributes.call.callee);
        uint64_t programs = op->kind == IR_OP_RUN_PARALLEL ? (uint64_t)op->attributes.parallel.replicas *
                                                                 op->attributes.parallel.partitions
                                                           : 0;
        for (uint64_t i = 0; i < programs; i++)
            graph_edge(graph, op->attributes.parallel.programs[i]);
    }
}

bool verify_calls(struct verifier *v)
{
    struct call_graph graph = {.counting = true};
    bool ok = true;
    for (const struct ir_function *f = v->module->functions; f; f = f->next) {
        scope_push(&graph.index, f->name, NULL, (uint32_t)graph.nodes.len);
        vec_push(&graph.nodes, ((struct call_node){.function = f, .chain = 1}));
    }
    for (uint32_t i = 0; i < graph.nodes.len; i++)
        graph_block(&graph, &graph.nodes.items[i].function->body);
    graph.counting = false;
    for (uint32_t i = 0; i < graph.nodes.len; i++) {
        if (graph.nodes.items[i].callers == 0)
            vec_push(&graph.ready, i);
    }
    while (graph.ready.len > 0) {
        graph.from = vec_pop(&graph.ready);
        graph_block(&graph, &graph.nodes.items[graph.from].function->body);
    }
    v->op = NULL;
    for (uint32_t i = 0; i < graph.nodes.len && ok; i++) {
        v->function = graph.nodes.items[i].function;
        if (graph.nodes.items[i].callers > 0)
            ok = verify_fail(v, "calls of it form a circle: recursion is not supported");
        else if (graph.nodes.items[i].chain > IR_CALLS_MAX)
            ok = verify_fail(v, "more than %d functions in a chain of calls", IR_CALLS_MAX);
    }
    vec_done(&graph.nodes);
    vec_done(&graph.ready);
    scope_done(&graph.index);
    return ok;
}
