/* Lowering: resharding moves the right bytes, and no more than brute force finds necessary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "flow/lower/lower.h"

enum { HOSTS = 4, DEVICES = 4, ELEMENTS_MAX = 4096 };

struct drawn {
    struct program *program;
    struct flow_mesh meshes[2];
    struct lower_place places[2][16];
    struct lower_map maps[2];
    struct program_value values[2];
};

static void draw_mesh(struct rng *rng, struct drawn *drawn, int m)
{
    struct flow_mesh *mesh = &drawn->meshes[m];
    *mesh = (struct flow_mesh){.id = (uint32_t)m + 1, .rank = (int32_t)rng_range(rng, 1, 3)};
    for (int a = 0; a < mesh->rank; a++)
        mesh->dims[a] = (uint32_t)(mesh->rank == 1 ? rng_range(rng, 1, 16) : rng_range(rng, 1, 2));
    uint32_t count = flow_mesh_devices(mesh);
    bool taken[HOSTS * DEVICES] = {false};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at;
        do
            at = (uint32_t)rng_below(rng, HOSTS * DEVICES);
        while (taken[at]);
        taken[at] = true;
        drawn->places[m][i] = (struct lower_place){at / DEVICES, at % DEVICES};
    }
    drawn->maps[m] = (struct lower_map){mesh->id, count, drawn->places[m]};
}

static void draw_sharding(struct rng *rng, const struct flow_mesh *mesh, int32_t rank,
                          struct flow_sharding *ret)
{
    *ret = (struct flow_sharding){.mesh = mesh->id};
    for (int a = 0; a < mesh->rank; a++) {
        uint64_t d = rng_below(rng, (uint64_t)rank + 1);
        if (d < (uint64_t)rank)
            ret->axes[d] |= (uint8_t)(1u << a);
    }
}

/* A program that reshards its argument once. */
static void draw(struct rng *rng, struct drawn *drawn)
{
    draw_mesh(rng, drawn, 0);
    draw_mesh(rng, drawn, 1);
    struct ir_type type = {.element = IR_I32, .rank = (int32_t)rng_range(rng, 1, 3)};
    for (int i = 0; i < 2; i++)
        draw_sharding(rng, &drawn->meshes[i], type.rank, &drawn->values[i].sharding);
    for (int d = 0; d < type.rank; d++) {
        uint32_t a = flow_sharding_parts(&drawn->values[0].sharding, &drawn->meshes[0], d);
        uint32_t b = flow_sharding_parts(&drawn->values[1].sharding, &drawn->meshes[1], d);
        type.dims[d] = (int64_t)a * b;
        if (ir_type_elements(&(struct ir_type){type.element, 1, {type.dims[d]}}) > 64)
            type.dims[d] = (int64_t)(a > b ? a : b) * (a > b ? (a % b ? b : 1) : (b % a ? a : 1));
    }
    drawn->program = program_new();
    for (int i = 0; i < 2; i++) {
        drawn->values[i].type = type;
        program_add_mesh(drawn->program, &drawn->meshes[i]);
    }
    uint32_t x = program_arg(drawn->program, &type, &drawn->values[0].sharding);
    program_result(drawn->program, program_reshard(drawn->program, x, &drawn->values[1].sharding));
}

static int64_t element_at(const struct ir_type *type, const struct flow_box *box, int64_t i)
{
    int64_t whole = 0, at[IR_RANK_MAX];
    for (int32_t d = type->rank - 1; d >= 0; d--) {
        at[d] = box->start[d] + i % box->size[d];
        i /= box->size[d];
    }
    for (int32_t d = 0; d < type->rank; d++)
        whole = whole * type->dims[d] + at[d];
    return whole;
}

static int64_t box_elements(const struct ir_type *type, const struct flow_box *box)
{
    return flow_box_bytes(type, box) / ir_element_size(type->element);
}

/* Elements that hosts need and do not hold, counted one by one. */
static int64_t brute_bytes(const struct drawn *drawn)
{
    const struct ir_type *type = &drawn->values[0].type;
    int64_t missing = 0;
    for (uint32_t h = 0; h < HOSTS; h++) {
        static bool has[2][1 << 16];
        memset(has, 0, sizeof has);
        for (int m = 0; m < 2; m++)
            for (uint32_t i = 0; i < drawn->maps[m].count; i++) {
                struct flow_box box =
                    flow_shard_box(type, &drawn->values[m].sharding, &drawn->meshes[m], i, NULL);
                for (int64_t e = 0; drawn->places[m][i].host == h && e < box_elements(type, &box); e++)
                    has[m][element_at(type, &box, e)] = true;
            }
        for (int64_t e = 0; e < ir_type_elements(type); e++)
            missing += has[1][e] && !has[0][e];
    }
    return missing * ir_element_size(type->element);
}

struct moved {
    const struct plan_step *send;
    const int32_t *from;
};

/* Carries the plans out as workers would, and checks every element of every shard. */
static int64_t carry_out(const struct drawn *drawn, struct plan *const *plans)
{
    const struct ir_type *type = &drawn->values[0].type;
    static int32_t memory[HOSTS][64][ELEMENTS_MAX];
    int64_t sent = 0;
    for (uint32_t h = 0; h < HOSTS; h++)
        for (size_t p = 0; plans[h] && p < plans[h]->args.len; p++) {
            struct plan_port port = plans[h]->args.items[p];
            struct flow_box box =
                flow_shard_box(type, &drawn->values[0].sharding, &drawn->meshes[0], port.shard, NULL);
            for (int64_t e = 0; e < box_elements(type, &box); e++)
                memory[h][port.slot][e] = (int32_t)element_at(type, &box, e);
        }
    struct moved by_tag[1024] = {{0}};
    for (uint32_t h = 0; h < HOSTS; h++)
        for (size_t s = 0; plans[h] && s < plans[h]->steps.len; s++) {
            const struct plan_step *step = &plans[h]->steps.items[s];
            if (step->op != PLAN_SEND)
                continue;
            assert_true(step->peer != h && step->tag < 1024 && !by_tag[step->tag].send);
            by_tag[step->tag] = (struct moved){step, memory[h][step->in[0]]};
            sent += flow_box_bytes(type, &step->box);
        }
    for (uint32_t h = 0; h < HOSTS; h++)
        for (size_t s = 0; plans[h] && s < plans[h]->steps.len; s++) {
            const struct plan_step *step = &plans[h]->steps.items[s];
            const struct plan_step *source = step->op == PLAN_RECV ? by_tag[step->tag].send : step;
            const int32_t *from = step->op == PLAN_RECV ? by_tag[step->tag].from
                                  : step->in_count      ? memory[h][step->in[0]]
                                                        : NULL;
            for (uint32_t k = 0; step->op != PLAN_SEND && k < step->out_count; k++)
                flow_box_copy(type, &step->box, from, &source->from, memory[h][step->out[k]], &step->to);
        }
    for (uint32_t h = 0; h < HOSTS; h++)
        for (size_t p = 0; plans[h] && p < plans[h]->results.len; p++) {
            struct plan_port port = plans[h]->results.items[p];
            struct flow_box box =
                flow_shard_box(type, &drawn->values[1].sharding, &drawn->meshes[1], port.shard, NULL);
            for (int64_t e = 0; e < box_elements(type, &box); e++)
                assert_int_equal(memory[h][port.slot][e], element_at(type, &box, e));
        }
    return sent;
}

static void reshard_moves_the_least_bytes(void **state)
{
    struct rng rng;
    rng_seed(&rng, 19);
    int64_t total = 0;
    for (int i = 0; i < 3000; i++) {
        struct drawn drawn;
        struct plan **plans;
        struct error error;
        draw(&rng, &drawn);
        if (ir_type_elements(&drawn.values[0].type) > ELEMENTS_MAX) {
            program_free(drawn.program);
            continue;
        }
        if (program_verify(drawn.program, &error) < 0)
            fail_msg("%s", error.text);
        assert_int_equal(lower_program(drawn.program, drawn.maps, 2, HOSTS, &plans, &error), 0);
        int64_t sent = carry_out(&drawn, plans);
        assert_int_equal(sent, brute_bytes(&drawn));
        total += sent;
        lower_free(plans, HOSTS);
        program_free(drawn.program);
    }
    assert_true(total > 100000);
}

static void plan_survives_encoding(void **state)
{
    struct rng rng;
    rng_seed(&rng, 3);
    for (int i = 0; i < 200; i++) {
        struct drawn drawn;
        struct plan **plans, *back;
        struct buf bytes = {0}, again = {0};
        draw(&rng, &drawn);
        assert_int_equal(lower_program(drawn.program, drawn.maps, 2, HOSTS, &plans, NULL), 0);
        for (uint32_t h = 0; h < HOSTS; h++) {
            if (!plans[h])
                continue;
            buf_clear(&bytes);
            buf_clear(&again);
            plan_encode(plans[h], &bytes);
            assert_int_equal(plan_decode(buf_str(&bytes), &back, NULL), 0);
            plan_encode(back, &again);
            assert_true(str_equal(buf_str(&bytes), buf_str(&again)));
            plan_free(back);
            for (int k = 0; k < 50; k++) { /* damaged: refused, or a plan that is within its bounds */
                buf_clear(&again);
                buf_add_str(&again, buf_str(&bytes));
                again.data[rng_below(&rng, again.len)] ^= (char)(1 + rng_below(&rng, 255));
                again.len -= rng_below(&rng, 2) ? rng_below(&rng, again.len) : 0;
                if (plan_decode(buf_str(&again), &back, NULL) == 0)
                    plan_free(back);
            }
        }
        buf_done(&bytes);
        buf_done(&again);
        lower_free(plans, HOSTS);
        program_free(drawn.program);
    }
}

/* x → f → g on one device: f's result lives until g is done, g's until the end. */
static void peak_is_what_lives_at_once(void **state)
{
    struct flow_mesh mesh = {1, 1, {1}};
    struct ir_type big = {IR_F32, 1, {100}}, small = {IR_F32, 1, {10}};
    struct flow_sharding here = {.mesh = 1};
    struct lower_place place = {0, 0};
    struct lower_map map = {1, 1, &place};
    struct plan **plans;
    struct program *program = program_new();
    program_add_mesh(program, &mesh);
    uint32_t x = program_arg(program, &small, &here);
    uint32_t y = program_call(program, 1, 1, &x, 1, &(struct program_value){big, here}, 1);
    uint32_t z = program_call(program, 2, 1, &y, 1, &(struct program_value){small, here}, 1);
    uint32_t w = program_call(program, 3, 1, &z, 1, &(struct program_value){big, here}, 1);
    program_result(program, w);
    assert_int_equal(lower_program(program, &map, 1, 1, &plans, NULL), 0);
    assert_int_equal(plans[0]->peak_bytes[0], 440);
    assert_int_equal(plans[0]->result_bytes[0], 400);
    lower_free(plans, 1);
    program_free(program);
}

/* A program of few bytes may ask for millions of steps: it is refused, and takes no more memory than they. */
static void too_many_steps_are_refused(void **state)
{
    enum { PLACES = 64, CALLS = PLAN_STEPS_MAX / PLACES + 1 };
    struct flow_mesh mesh = {1, 1, {PLACES}};
    struct lower_place places[PLACES];
    struct lower_map map = {1, PLACES, places};
    struct plan **plans = NULL;
    struct error error;
    for (uint32_t i = 0; i < PLACES; i++)
        places[i] = (struct lower_place){0, i};
    struct program *program = program_new();
    program_add_mesh(program, &mesh);
    for (int i = 0; i < CALLS; i++)
        program_call(program, 1, 1, NULL, 0, NULL, 0);
    assert_int_equal(lower_program(program, &map, 1, 1, &plans, &error), ERROR_LIMIT);
    assert_null(plans);
    program_free(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshard_moves_the_least_bytes),
        cmocka_unit_test(plan_survives_encoding),
        cmocka_unit_test(peak_is_what_lives_at_once),
        cmocka_unit_test(too_many_steps_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
