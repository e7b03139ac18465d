/* env.c - the environment that every task gets: its rank and its world, addresses, its checkpoints, its
 * chips.
 *
 * Our variables come first, so that a user's own value of the same name wins and $(VAR) can refer to ours.
 * Names and meanings: torchrun ("Environment Variables" of torch.distributed.elastic), JAX
 * (jax.distributed.initialize), Cloud TPU (TPU_WORKER_ID, TPU_WORKER_HOSTNAMES).
 */
#include "core/launch/internal.h"

void env_set(env_list *env, struct str name, struct str value)
{
    CHECK(name.len > 0 && !memchr(name.data, '=', name.len));
    for (size_t i = 0; i < env->len; i++) {
        if (str_equal(env->items[i].name, name)) {
            env->items[i] = (struct env_var){name, value, false};
            return;
        }
    }
    struct env_var var = {name, value, false};
    vec_push(env, var);
}

/* Adds one of our variables, which the list must not have yet. Leaves out a value that is too long for a
 * process. */
static void env_add(env_list *env, struct str name, struct str value)
{
    CHECK(name.len > 0);
    struct env_var var = {name, value, false};
    if (value.len < ENV_VALUE_MAX)
        vec_push(env, var);
}

static struct str decimal(struct arena *arena, int64_t value)
{
    char digits[DECIMAL_TEXT_MAX];
    return arena_str(arena, str_decimal(value, digits));
}

/* Kubernetes' $(VAR) expansion: a known name is replaced, "$$(X)" becomes "$(X)", and an unknown name stays
 * unchanged. */
struct str env_expand(struct str text, const env_list *env, struct arena *arena)
{
    struct buf out BUF_CLEANUP = {0};
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '$' || i + 1 == text.len) {
            buf_add_char(&out, text.data[i]);
        } else if (text.data[i + 1] == '$') {
            buf_add_char(&out, '$');
            i++;
        } else if (text.data[i + 1] == '(') {
            const char *close = memchr(text.data + i, ')', text.len - i);
            size_t end = close ? (size_t)(close - text.data) : 0;
            struct str name = {text.data + i + 2, close ? end - i - 2 : 0};
            const struct env_var *found = NULL;
            for (size_t e = 0; close && e < env->len; e++)
                if (str_equal(env->items[e].name, name))
                    found = &env->items[e];
            if (found) {
                buf_add_str(&out, found->value);
                i = end;
            } else {
                buf_add_char(&out, '$');
            }
        } else {
            buf_add_char(&out, '$');
        }
    }
    return arena_str(arena, buf_str(&out));
}

/* Returns the key in "metadata.labels['key']", or an empty string if `path` is not of that form. */
static struct str subscript(struct str path, const char *prefix)
{
    struct str start = str_from(prefix);
    if (!str_starts(path, start) || path.len < start.len + 4 || !str_ends(path, STR("']")))
        return STR("");
    return (struct str){path.data + start.len + 2, path.len - start.len - 4};
}

/* Returns labels or annotations as lines of a file, key="value". */
static struct str label_lines(const struct labels *labels, struct arena *arena)
{
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < labels->len; i++)
        buf_printf(&text, "%s" STR_FORMAT "=\"" STR_FORMAT "\"", i > 0 ? "\n" : "",
                   STR_ARG(labels->items[i].key), STR_ARG(labels->items[i].value));
    return arena_str(arena, buf_str(&text));
}

static struct str label_field(const struct task *task, struct str path, struct arena *arena)
{
    const struct job *job = task->job;
    const struct labels *annotations = &job->rjob->job.pod.annotations;
    struct labels labels = job_labels(job, task, arena);
    struct str key;
    if (str_is(path, "metadata.labels"))
        return label_lines(&labels, arena);
    if (str_is(path, "metadata.annotations"))
        return label_lines(annotations, arena);
    if ((key = subscript(path, "metadata.labels")).len ||
        (key = subscript(path, "metadata.annotations")).len) {
        struct str value = labels_get(&labels, key, STR(""));
        if (value.len)
            return value;
        struct labels more = job_annotations(job, task, arena);
        return labels_get(annotations, key, labels_get(&more, key, STR("")));
    }
    return STR("");
}

struct str launch_field(const struct task *task, const struct machine *machine, struct str path,
                        struct arena *arena)
{
    char uid[UID_TEXT_MAX];
    if (str_is(path, "metadata.name"))
        return task->name;
    if (str_is(path, "metadata.namespace"))
        return task->job->jobset->namespace_;
    if (str_is(path, "metadata.uid")) {
        uid_text(task->uid, uid);
        return arena_str(arena, str_from(uid));
    }
    if (str_is(path, "spec.nodeName"))
        return machine->name;
    if (str_is(path, "spec.serviceAccountName"))
        return STR("default");
    if (str_is(path, "status.podIP") || str_is(path, "status.hostIP") || str_is(path, "status.podIPs") ||
        str_is(path, "status.hostIPs"))
        return machine->address;
    return label_field(task, path, arena);
}

static struct launch_place place_of(const struct launch_common *common, uint32_t rank)
{
    const struct gang_rank_table *rank_table = &common->rank_table;
    CHECK(rank < common->world && (common->places || rank_table->count == 0));
    if (rank < rank_table->count && rank_table->entries[rank].rank == rank)
        return common->places[rank];
    for (size_t i = 0; i < rank_table->count; i++)
        if (rank_table->entries[i].rank == rank)
            return common->places[i];
    return (struct launch_place){0};
}

static const struct rank_table_entry *rank_zero(const struct gang_rank_table *rank_table)
{
    for (size_t i = 0; i < rank_table->count; i++)
        if (rank_table->entries[i].rank == 0)
            return &rank_table->entries[i];
    return NULL;
}

/* Adds the address and port at which rank 0 listens. */
static void env_master(env_list *env, struct arena *arena, const struct task *task, struct str address)
{
    CHECK(!task_is_spare(task));
    struct str port = decimal(arena, task->port), rendezvous = decimal(arena, task->port + 1);
    env_add(env, STR("MASTER_ADDR"), address);
    env_add(env, STR("MASTER_PORT"), port);
    env_add(env, STR("JAX_COORDINATOR_ADDRESS"), ARENA_CONCAT(arena, address, STR(":"), port));
    env_add(env, STR("JAX_COORDINATOR_IP"), address);
    env_add(env, STR("JAX_COORDINATOR_PORT"), port);
    env_add(env, STR("PHX_RENDEZVOUS"), ARENA_CONCAT(arena, address, STR(":"), rendezvous));
}

static void env_world(env_list *env, struct arena *arena, const struct task *task,
                      const struct launch_common *common)
{
    if (task_is_spare(task)) {
        env_add(env, STR("PHX_SPARE"), STR("1"));
        return;
    }
    CHECK(task->rank < task->world && task->world == common->world);
    struct launch_place standing = place_of(common, task->rank);
    CHECK(standing.local_rank < standing.local_world || standing.local_world == 0);
    const struct rank_table_entry *master = rank_zero(&common->rank_table);
    struct str rank = decimal(arena, task->rank), world = decimal(arena, task->world);
    struct str node = decimal(arena, standing.node_rank);
    env_add(env, STR("RANK"), rank);
    env_add(env, STR("WORLD_SIZE"), world);
    env_add(env, STR("LOCAL_RANK"), decimal(arena, standing.local_rank));
    env_add(env, STR("LOCAL_WORLD_SIZE"), decimal(arena, standing.local_world));
    env_add(env, STR("NODE_RANK"), node);
    env_add(env, STR("GROUP_RANK"), node);
    env_add(env, STR("NNODES"), decimal(arena, common->nodes));
    env_add(env, STR("TPU_WORKER_ID"), rank);
    env_add(env, STR("JAX_PROCESS_ID"), rank);
    env_add(env, STR("JAX_NUM_PROCESSES"), world);
    env_add(env, STR("PHX_RANK"), rank);
    env_add(env, STR("PHX_WORLD_SIZE"), world);
    uint32_t full_world;
    (void)task_full_rank(task, &full_world);
    if (full_world > task->world)
        env_add(env, STR("PHX_FULL_WORLD_SIZE"), decimal(arena, full_world));
    if (master)
        env_master(env, arena, task, master->address);
    if (common->hostnames.data) {
        struct env_var names = {STR("TPU_WORKER_HOSTNAMES"), common->hostnames, true};
        vec_push(env, names);
    }
}

/* Returns the number of groups of replicated jobs. Each group is a world of ranks, and a checkpoint counts
 * when all of them have saved it. */
static uint32_t count_worlds(const struct jobset_spec *spec)
{
    uint32_t worlds = 0;
    for (size_t r = 0; r < spec->rjob_count; r++) {
        bool seen = false;
        for (size_t before = 0; before < r && !seen; before++)
            seen = str_equal(spec->rjobs[before].group, spec->rjobs[r].group);
        worlds += !seen;
    }
    CHECK(worlds > 0 && worlds <= spec->rjob_count);
    return worlds;
}

/* Adds the failure domain, a rack or a cube, across which copies are distributed, and the address at which
 * the machine's ranks listen. */
static void env_block(env_list *env, struct arena *arena, const struct machine *machine,
                      const struct cluster *cluster)
{
    CHECK(machine->pod < cluster->pod_count && machine->block < cluster->block_count);
    env_add(env, STR("PHX_RACK"),
            ARENA_CONCAT(arena, cluster->pods[machine->pod].name, STR("/"),
                         cluster->blocks[machine->block].name));
    env_add(env, STR("PHX_ADDRESS"), machine->address);
}

/* Adds the numbers of the task's chips on the machine. */
static void env_chips(env_list *env, struct arena *arena, const struct task *task)
{
    struct str resource = task->job->rjob->job.pod.chip_resource;
    char list[CHIPS_PER_MACHINE_MAX * 3], digits[DECIMAL_TEXT_MAX];
    size_t len = 0;
    for (uint32_t c = 0; c < CHIPS_PER_MACHINE_MAX; c++) {
        if (!(task->chips >> c & 1))
            continue;
        struct str number = str_decimal(c, digits);
        CHECK(len + 1 + number.len <= sizeof list);
        if (len)
            list[len++] = ',';
        memcpy(list + len, number.data, number.len);
        len += number.len;
    }
    if (!len)
        return;
    struct str chips = arena_str(arena, (struct str){list, len});
    env_add(env, STR("PHX_CHIPS"), chips);
    env_add(env,
            str_starts(resource, STR("nvidia.com")) ? STR("CUDA_VISIBLE_DEVICES") : STR("TPU_VISIBLE_CHIPS"),
            chips);
}

static void env_task(env_list *env, struct arena *arena, const struct task *task,
                     const struct cluster *cluster, const struct launch_common *common)
{
    const struct jobset *jobset = task->job->jobset;
    const struct labels *annotations = &jobset->spec.annotations;
    CHECK(task->attempt >= 0);
    char digits[DECIMAL_TEXT_MAX];
    struct str attempt = decimal(arena, task->attempt);
    if (!task_is_spare(task))
        env_add(env, STR("JOB_COMPLETION_INDEX"), decimal(arena, task->index));
    env_add(env, STR("PHX_TASK_UID"), arena_str(arena, str_decimal_unsigned(task->uid, digits)));
    env_add(env, STR("PHX_JOBSET"), jobset->key);
    env_add(env, STR("PHX_ATTEMPT"), attempt);
    env_add(env, STR("PHX_WORLDS"), decimal(arena, count_worlds(&jobset->spec)));
    env_block(env, arena, &cluster->machines[task->machine], cluster);
    struct str network = machine_chips_at(cluster, &cluster->machines[task->machine], arena);
    if (network.len && labels_get(annotations, STR(SLICE_KEY), STR("")).len)
        env_add(env, STR("PHX_CHIP_NETWORK"), network);
    env_add(env, STR("TORCHELASTIC_RESTART_COUNT"), attempt);
    struct str keep = labels_get(annotations, STR(CHECKPOINT_KEEP_KEY), STR(""));
    if (keep.len)
        env_add(env, STR("PHX_CHECKPOINT_KEEP"), keep);
    struct str interval = labels_get(annotations, STR(CHECKPOINT_INTERVAL_KEY), STR(""));
    if (interval.len)
        env_add(env, STR("PHX_CHECKPOINT_INTERVAL"), interval);
    if (jobset->checkpoint.committed_step >= 0) {
        env_add(env, STR("PHX_RESTORE_STEP"), decimal(arena, jobset->checkpoint.committed_step));
        env_add(env, STR("PHX_RESTORE_ATTEMPT"), decimal(arena, jobset->checkpoint.committed_attempt));
    }
    if (cluster->checkpoint_dir.len)
        env_add(env, STR("PHX_CHECKPOINT_DIR"), common->checkpoints);
    env_chips(env, arena, task);
}

void env_ours(env_list *env, struct arena *arena, const struct task *task, const struct cluster *cluster,
              const struct launch_common *common)
{
    CHECK(task->machine < cluster->machine_count && common->mttf_s >= 0);
    env_world(env, arena, task, common);
    env_task(env, arena, task, cluster, common);
    if (common->mttf_s > 0)
        env_add(env, STR("PHX_MTTF_S"), decimal(arena, common->mttf_s));
}
