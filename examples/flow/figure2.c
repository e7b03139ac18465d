/* The program of figure 2 of the Pathways paper, from C.
 *
 *     phalanx flow up --hosts 4 --devices 2 &        prints "ready unix:..."
 *     flow-figure2 unix:...
 *
 *     a = x * 2;  b = x + 1;  c = x / 2       each on two devices
 *     f(v) { x = a(v); y = b(x); z = a(c(x)); return (y, z); }
 *     f([1, 2]) is ([3, 5], [2, 4])
 */
#include <stdio.h>
#include <string.h>

#include "phalanx/flow.h"

static const char module[] = "module {\n"
                             "  func.func @a(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                             "    %0 = stablehlo.constant dense<2.0> : tensor<1xf32>\n"
                             "    %1 = stablehlo.multiply %x, %0 : tensor<1xf32>\n"
                             "    return %1 : tensor<1xf32>\n"
                             "  }\n"
                             "  func.func @b(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                             "    %0 = stablehlo.constant dense<1.0> : tensor<1xf32>\n"
                             "    %1 = stablehlo.add %x, %0 : tensor<1xf32>\n"
                             "    return %1 : tensor<1xf32>\n"
                             "  }\n"
                             "  func.func @c(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                             "    %0 = stablehlo.constant dense<2.0> : tensor<1xf32>\n"
                             "    %1 = stablehlo.divide %x, %0 : tensor<1xf32>\n"
                             "    return %1 : tensor<1xf32>\n"
                             "  }\n"
                             "}\n";

/* Three meshes of two devices each, and the functions that run on them. */
struct figure2 {
    phx_flow *flow;
    struct phx_flow_mesh meshes[3];
    uint64_t functions[3];
    phx_flow_program *program;
};

static int figure2_prepare(struct figure2 *figure, struct phx_error *error)
{
    static const char *const names[] = {"a", "b", "c"};
    const struct phx_flow_mesh_options two = {.rank = 1, .dims = {2}};
    for (int i = 0; i < 3; i++) {
        if (phx_flow_mesh_new(figure->flow, &two, &figure->meshes[i], error) < 0 ||
            phx_flow_function(figure->flow, module, strlen(module), names[i], &figure->functions[i], error) <
                0)
            return -1;
    }
    return 0;
}

/* Calls function i on its mesh; the value is brought there first. */
static uint32_t figure2_call(const struct figure2 *figure, int i, uint32_t value, struct phx_error *error)
{
    struct phx_flow_sharding cut = {figure->meshes[i].id, {1}};
    uint32_t there = phx_flow_program_reshard(figure->program, value, &cut), result = 0;
    phx_flow_program_call(figure->program, figure->functions[i], figure->meshes[i].id, &there, 1, &cut,
                          &result, 1, error);
    return result;
}

static int figure2_build(struct figure2 *figure, struct phx_error *error)
{
    const struct phx_flow_type type = {PHX_FLOW_FLOAT32, 1, {2}};
    struct phx_flow_sharding cut = {figure->meshes[0].id, {1}};
    figure->program = phx_flow_program_new(figure->flow);
    uint32_t v = phx_flow_program_arg(figure->program, &type, &cut);
    uint32_t x = figure2_call(figure, 0, v, error);
    uint32_t y = figure2_call(figure, 1, x, error);
    uint32_t z = figure2_call(figure, 0, figure2_call(figure, 2, x, error), error);
    phx_flow_program_result(figure->program, y);
    phx_flow_program_result(figure->program, z);
    return phx_flow_program_finish(figure->program, error);
}

static int figure2_run(struct figure2 *figure, struct phx_error *error)
{
    const struct phx_flow_type type = {PHX_FLOW_FLOAT32, 1, {2}};
    const struct phx_flow_sharding cut = {figure->meshes[0].id, {1}};
    const float v[2] = {1, 2};
    float y[2], z[2];
    uint64_t results[2], in = phx_flow_put(figure->flow, &type, &cut, v, sizeof v, error);
    if (in == 0 || phx_flow_launch(figure->flow, figure->program, &in, 1, results, 2, error) < 0 ||
        phx_flow_get(figure->flow, results[0], y, sizeof y, -1, NULL, error) < 0 ||
        phx_flow_get(figure->flow, results[1], z, sizeof z, -1, NULL, error) < 0)
        return -1;
    printf("(%g, %g), (%g, %g)\n", (double)y[0], (double)y[1], (double)z[0], (double)z[1]);
    phx_flow_release(figure->flow, in);
    phx_flow_release(figure->flow, results[0]);
    phx_flow_release(figure->flow, results[1]);
    return 0;
}

int main(int argc, char **argv)
{
    struct figure2 figure = {0};
    struct phx_error error = {0};
    /* Values that are lost with a device are made again, by so many launches at most. */
    const struct phx_flow_options options = {.rerun_launches = 8};
    if (argc != 2)
        return fprintf(stderr, "Usage: %s ADDRESS\n", argv[0]), 2;
    int rc = phx_flow_connect(argv[1], &options, &figure.flow, &error);
    if (rc == 0)
        rc = figure2_prepare(&figure, &error);
    if (rc == 0)
        rc = figure2_build(&figure, &error);
    if (rc == 0)
        rc = figure2_run(&figure, &error);
    if (rc != 0)
        fprintf(stderr, "%s\n", error.message);
    phx_flow_program_free(figure.program);
    phx_flow_close(figure.flow);
    return rc == 0 ? 0 : 1;
}
