/* A training on the flow runtime that loses a worker, and one that loses its head, by kill -9, with lineage:
 * from the kill until the loss of the next step is here, the launches that went again for it, and whether
 * every loss is that of an undisturbed run, bit by bit. A step is one of a descent, w - 0.1 (w - target), on
 * 4 of 6 devices on 3 hosts; weights are checkpointed every 10 steps, and the kill comes 6 steps after a
 * checkpoint. The next head is started at once. Medians of 5 rounds, each on processes of its own; the limit
 * is a step without a kill. */
#include "flow_process.h"
#include "phalanx/flow.h"
#include "timing.h"

enum { WORKERS = 3, MESH = 4, ELEMENTS = 64, STEPS = 60, KILL_AT = 37, CHECKPOINT_EVERY = 10, ROUNDS = 5 };

static const char step_text[] =
    "module {\n"
    "  func.func @step(%w: tensor<16xf32>, %b: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {\n"
    "    %rate = stablehlo.constant dense<0.1> : tensor<16xf32>\n"
    "    %away = stablehlo.subtract %w, %b : tensor<16xf32>\n"
    "    %slope = stablehlo.multiply %away, %rate : tensor<16xf32>\n"
    "    %next = stablehlo.subtract %w, %slope : tensor<16xf32>\n"
    "    %loss = stablehlo.multiply %away, %away : tensor<16xf32>\n"
    "    return %next, %loss : tensor<16xf32>, tensor<16xf32>\n"
    "  }\n"
    "}\n";

enum victim { NOBODY, WORKER, HEAD };

struct training {
    char folder[64], head_at[96];
    struct process head, workers[WORKERS];
    phx_flow *flow;
    phx_flow_program *step;
    struct phx_flow_type type;
    struct phx_flow_sharding cut;
    struct phx_error error;
    float losses[STEPS][ELEMENTS];
    double step_ms[STEPS];
};

static void training_must(int rc, const struct training *training)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench: %s\n", training->error.message);
    exit(1); /* heads and workers end with this process */
}

static void training_start_head(struct training *training)
{
    const char *const head[] = {"phalanx", "flow", "head", "--listen", training->head_at, NULL};
    process_start(&training->head, head);
}

/* The program of a step: weights and batch to weights and loss, all cut over the devices. */
static void training_make_step(struct training *training)
{
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {MESH}};
    struct phx_flow_mesh mesh;
    struct phx_error *error = &training->error;
    uint64_t function;
    uint32_t args[2], results[2];
    training_must(phx_flow_mesh_new(training->flow, &options, &mesh, error), training);
    training_must(
        phx_flow_function(training->flow, step_text, sizeof step_text - 1, "step", &function, error),
        training);
    training->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {ELEMENTS}};
    training->cut = (struct phx_flow_sharding){mesh.id, {1}};
    const struct phx_flow_sharding cuts[2] = {training->cut, training->cut};
    training->step = phx_flow_program_new(training->flow);
    for (int i = 0; i < 2; i++)
        args[i] = phx_flow_program_arg(training->step, &training->type, &training->cut);
    training_must(phx_flow_program_call(training->step, function, mesh.id, args, 2, cuts, results, 2, error),
                  training);
    for (int i = 0; i < 2; i++)
        phx_flow_program_result(training->step, results[i]);
    training_must(phx_flow_program_finish(training->step, error), training);
}

static void training_start(struct training *training)
{
    *training = (struct training){.folder = "/tmp/bench-lost-XXXXXX"};
    if (!mkdtemp(training->folder))
        exit(1);
    snprintf(training->head_at, sizeof training->head_at, "unix:%s/head.sock", training->folder);
    training_start_head(training);
    for (int w = 0; w < WORKERS; w++) {
        char listen[96];
        snprintf(listen, sizeof listen, "unix:%s/worker-%d.sock", training->folder, w);
        const char *const worker[] = {"phalanx",  "flow", "worker",    "--head", training->head_at,
                                      "--listen", listen, "--devices", "2",      NULL};
        process_start(&training->workers[w], worker);
    }
    struct phx_flow_options options = {.rerun_launches = 2 * CHECKPOINT_EVERY};
    training_must(phx_flow_connect(training->head_at, &options, &training->flow, &training->error), training);
    training_make_step(training);
}

/* Worker 0 may be gone already. A head that was killed leaves its board. */
static void training_stop(struct training *training)
{
    char name[96];
    phx_flow_program_free(training->step);
    phx_flow_close(training->flow);
    for (int w = 0; w < WORKERS; w++) {
        process_stop(&training->workers[w], SIGTERM);
        snprintf(name, sizeof name, "%s/worker-%d.sock", training->folder, w);
        unlink(name);
    }
    process_stop(&training->head, SIGTERM);
    unlink(training->head_at + strlen("unix:"));
    snprintf(name, sizeof name, "%s/head.sock.board", training->folder);
    unlink(name);
    rmdir(training->folder);
}

static uint64_t training_put(struct training *training, float first)
{
    float data[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = first + 0.25f * (float)i;
    uint64_t value =
        phx_flow_put(training->flow, &training->type, &training->cut, data, sizeof data, &training->error);
    training_must(value ? 0 : -1, training);
    return value;
}

static void training_lose(struct training *training, enum victim victim)
{
    if (victim == WORKER)
        kill(training->workers[0].pid, SIGKILL);
    if (victim == HEAD) {
        process_stop(&training->head, SIGKILL);
        training_start_head(training);
    }
}

/* Trains; the victim is killed before step KILL_AT. A step ends when its loss is here. */
static void training_run(struct training *training, enum victim victim)
{
    uint64_t weights = training_put(training, 3);
    for (int step = 1; step <= STEPS; step++) {
        uint64_t args[2] = {weights, training_put(training, (float)(step % 7))}, results[2];
        double begin = now_ms();
        if (step == KILL_AT)
            training_lose(training, victim);
        training_must(phx_flow_launch(training->flow, training->step, args, 2, results, 2, &training->error),
                      training);
        training_must(phx_flow_get(training->flow, results[1], training->losses[step - 1],
                                   sizeof training->losses[0], -1, NULL, &training->error),
                      training);
        training->step_ms[step - 1] = now_ms() - begin;
        phx_flow_release(training->flow, args[0]);
        phx_flow_release(training->flow, args[1]);
        phx_flow_release(training->flow, results[1]);
        weights = results[0];
        if (step % CHECKPOINT_EVERY == 0)
            training_must(phx_flow_checkpoint(training->flow, weights, -1, NULL, &training->error), training);
    }
    phx_flow_release(training->flow, weights);
}

/* Prints the rows of one kind of loss; `calm`: the losses of an undisturbed run. */
static void lost_rows(enum victim victim, const char *name, const float calm[STEPS][ELEMENTS], double step_ms)
{
    static struct training training;
    double next_ms[ROUNDS], again[ROUNDS];
    int others = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct phx_flow_reruns reruns;
        training_start(&training);
        training_run(&training, victim);
        phx_flow_count_reruns(training.flow, &reruns);
        next_ms[round] = training.step_ms[KILL_AT - 1];
        again[round] = (double)reruns.launches;
        for (int step = 0; step < STEPS; step++)
            others += memcmp(training.losses[step], calm[step], sizeof calm[step]) != 0;
        training_stop(&training);
    }
    double ms = median(next_ms, ROUNDS);
    printf("{\"bench\":\"flow_lost\",\"case\":\"%s killed: the next step is over\",\"value\":%.4g,"
           "\"best\":%.4g,\"unit\":\"ms\",\"limit\":%.4g,\"ratio_limit\":%.4g}\n",
           name, ms, next_ms[0], step_ms, ms / step_ms);
    printf("{\"bench\":\"flow_lost\",\"case\":\"%s killed: launches that went again\",\"value\":%g,"
           "\"unit\":\"launches\"}\n",
           name, median(again, ROUNDS));
    printf("{\"bench\":\"flow_lost\",\"case\":\"%s killed: losses unlike an undisturbed run's\",\"value\":%d,"
           "\"unit\":\"steps\"}\n",
           name, others);
    fflush(stdout);
}

int main(void)
{
    static struct training calm;
    training_start(&calm);
    training_run(&calm, NOBODY);
    training_stop(&calm);
    double step_ms = median(calm.step_ms, STEPS);
    lost_rows(WORKER, "worker", calm.losses, step_ms);
    lost_rows(HEAD, "head", calm.losses, step_ms);
    return 0;
}
