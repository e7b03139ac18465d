/* client.c - API clients that create, suspend, resume and delete JobSets, Jobs and Pods, cordon Nodes, and
 * write stored objects (client_objects.c, client_queues.c). Requests take time, may find the controller down,
 * and may lose their replies to a crash. */
#include "sim/world.h"

#include "doc/json.h"
#include "base/units.h"
#include "core/slice/slice.h"
#include "core/health/fault.h"
#include "core/repair/repair.h"

static struct request *request_new(struct world *world, enum write_verb verb, enum object_kind object)
{
    struct request *request = mem_alloc(sizeof(*request));
    request->id = ++world->next_id;
    request->write = (struct write_event){
        .verb = verb, .object = object, .namespace_ = STR("default"), .grace_s = -1, .user = STR("torture")};
    vec_push(&world->requests, request);
    world_after(world, world_draw(world, world->swarm.delay_min_ns, world->swarm.delay_max_ns), SIM_REQUEST,
                0, request->id, 0);
    return request;
}

struct request *client_send(struct world *world, enum write_verb verb, enum object_kind object,
                            struct str namespace_, struct str name, struct str body)
{
    struct request *request = request_new(world, verb, object);
    request->write.namespace_ = arena_str(&request->arena, namespace_);
    request->write.name = arena_str(&request->arena, name);
    request->write.body = arena_str(&request->arena, body);
    return request;
}

bool client_has(struct world *world, enum sim_feature feature)
{
    return world_chance(world, world->swarm.features[feature]);
}

const char *client_any_namespace(struct world *world)
{
    static const char *const others[] = {"blue", "red"};
    return client_has(world, FEATURE_NAMESPACES) ? others[rng_below(&world->rng, 2)] : "default";
}

void client_may_vanish(struct world *world, struct str namespace_)
{
    for (size_t i = 0; i < world->known.len; i++)
        if (str_is(namespace_, world->known.items[i].namespace_))
            world->known.items[i].deletes = true;
}

static void request_free(struct request *request)
{
    arena_done(&request->arena);
    mem_free(request);
}

static const struct job_store *store_of(const struct world *world)
{
    return core_jobs(world->controller.core);
}

static struct known_jobset *known_find(struct world *world, struct str name)
{
    for (size_t i = 0; i < world->known.len; i++)
        if (str_is(name, world->known.items[i].name))
            return &world->known.items[i];
    return NULL;
}

/* --- what they want --------------------------------------------------------------------------- */

static void create_jobset(struct world *world)
{
    struct known_jobset known = {0};
    snprintf(known.name, sizeof(known.name), "js-%u", ++world->created);
    snprintf(known.namespace_, sizeof(known.namespace_), "%s", client_any_namespace(world));
    struct buf body BUF_CLEANUP = {0};
    if (world->swarm.cubes && world_chance(world, world->swarm.slice_ppm))
        spec_slice(world, known.namespace_, known.name, &body, &known.deletes);
    else if (world->swarm.ladder_ppm && world_chance(world, world->swarm.ladder_ppm))
        spec_ladder(world, known.namespace_, known.name, &body);
    else
        spec_jobset(world, known.namespace_, known.name, &body, &known.deletes);
    /* the namespace may be ending already */
    known.deletes = known.deletes || strcmp(known.namespace_, "default") != 0;
    client_send(world, WRITE_CREATE, OBJECT_JOBSET, str_from(known.namespace_), str_from(known.name),
                buf_str(&body));
    vec_push(&world->known, known);
    world_trace(world, "client: create %s: %s", known.name, body.data);
}

static void create_own(struct world *world)
{
    bool pod = world_chance(world, 500000);
    char name[32];
    snprintf(name, sizeof(name), "%s-%u", pod ? "pod" : "job", ++world->created);
    const char *ns = client_any_namespace(world);
    struct buf body BUF_CLEANUP = {0};
    if (pod)
        spec_pod(world, ns, name, &body);
    else
        spec_job(world, ns, name, &body);
    client_send(world, WRITE_CREATE, pod ? OBJECT_POD : OBJECT_JOB, str_from(ns), str_from(name),
                buf_str(&body));
    world_trace(world, "client: create %s: %s", name, body.data);
}

static void create(struct world *world)
{
    if (client_has(world, FEATURE_FORMS))
        create_own(world);
    else
        create_jobset(world);
}

static const struct jobset *any_jobset(struct world *world)
{
    const struct job_store *store = store_of(world);
    return store->jobsets.len ? store->jobsets.items[rng_below(&world->rng, store->jobsets.len)] : NULL;
}

enum object_kind client_kind_of(const struct jobset *jobset)
{
    static const enum object_kind kinds[] = {[FORM_JOBSET] = OBJECT_JOBSET,
                                             [FORM_JOB] = OBJECT_JOB,
                                             [FORM_POD] = OBJECT_POD,
                                             [FORM_WORKLOAD] = OBJECT_WORKLOAD};
    return kinds[jobset->form];
}

/* Deletes one of the objects that an owner left behind. */
static void delete_orphan(struct world *world, const struct jobset *jobset)
{
    bool pods = jobset->form == FORM_JOB;
    const struct job *job = jobset->jobs[rng_below(&world->rng, jobset->job_count)];
    if (!job || (pods && job->tasks.len == 0))
        return;
    struct str name = pods ? job->tasks.items[rng_below(&world->rng, job->tasks.len)]->name : job->name;
    client_send(world, WRITE_DELETE, pods ? OBJECT_POD : OBJECT_JOB, jobset->namespace_, name, STR(""));
    world_trace(world, "client: delete the orphan " STR_FORMAT, STR_ARG(name));
}

static void send_delete(struct world *world, const struct jobset *jobset)
{
    static const enum propagation ways[] = {PROPAGATION_DEFAULT, PROPAGATION_BACKGROUND,
                                            PROPAGATION_FOREGROUND, PROPAGATION_ORPHAN};
    struct known_jobset *known = known_find(world, jobset->name);
    if (known)
        known->deletes = true;
    struct request *request =
        client_send(world, WRITE_DELETE, client_kind_of(jobset), jobset->namespace_, jobset->name, STR(""));
    if (world->swarm.features[FEATURE_OBJECTS])
        request->write.propagation = ways[world_draw(world, 0, world->healing ? 1 : 3)];
    world_trace(world, "client: delete %s", request->write.name.data);
}

static void delete_jobset(struct world *world)
{
    const struct jobset *jobset = any_jobset(world);
    if (jobset && jobset->hidden)
        delete_orphan(world, jobset);
    else if (jobset)
        send_delete(world, jobset);
}

/* Changes the resource requests of the first replicated job's containers, possibly while its tasks still
 * end. */
static void ask_anew(struct world *world, struct arena *arena, struct doc *spec)
{
    struct doc *job = doc_path(doc_at(doc_get(spec, "replicatedJobs"), 0), "template", "spec", NULL);
    struct doc *container = doc_at(doc_path(job, "template", "spec", "containers", NULL), 0);
    if (!container)
        return;
    struct doc *limits = doc_need_object(arena, doc_need_object(arena, container, "resources"), "limits");
    doc_set(arena, limits, STR("google.com/tpu"),
            doc_new_int(arena, world_draw(world, 1, world->swarm.chips)));
    doc_set(arena, limits, STR("cpu"), doc_new_int(arena, world_draw(world, 1, 4)));
}

static void toggle_suspend(struct world *world)
{
    const struct jobset *jobset = any_jobset(world);
    if (!jobset || jobset->form == FORM_POD || jobset->form == FORM_WORKLOAD)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, jobset->document);
    struct doc *spec = doc_need_object(&arena, document, "spec");
    bool suspend = !doc_bool(doc_get(spec, "suspend"), false);
    doc_set(&arena, spec, STR("suspend"), doc_new_bool(&arena, suspend));
    if (world_chance(world, 300000))
        ask_anew(world, &arena, spec);
    struct buf body BUF_CLEANUP = {0};
    json_write(&body, document);
    struct request *request = client_send(world, WRITE_REPLACE, client_kind_of(jobset), jobset->namespace_,
                                          jobset->name, buf_str(&body));
    if (world_chance(world, 300000) && jobset->form == FORM_JOBSET)
        request->write.if_version = jobset->changed_seq;
    world_trace(world, "client: %s %s", suspend ? "suspend" : "resume", request->write.name.data);
}

struct choice {
    struct world *world;
    const struct task *task;
    const struct job *job;
    uint64_t seen;
};

static void choose_task(void *context, const struct task *task)
{
    struct choice *choice = context;
    if (rng_below(&choice->world->rng, ++choice->seen) == 0)
        choice->task = task;
}

static void choose_job(void *context, const struct job *job)
{
    struct choice *choice = context;
    if (rng_below(&choice->world->rng, ++choice->seen) == 0)
        choice->job = job;
}

static void delete_pod(struct world *world)
{
    struct choice choice = {.world = world};
    jobs_visit_tasks(store_of(world), choose_task, &choice);
    if (!choice.task)
        return;
    struct request *request = client_send(world, WRITE_DELETE, OBJECT_POD,
                                          choice.task->job->jobset->namespace_, choice.task->name, STR(""));
    request->write.grace_s = world_draw(world, -1, 2);
    world_trace(world, "client: delete pod %s", request->write.name.data);
}

static void delete_job(struct world *world)
{
    struct choice choice = {.world = world};
    jobs_visit_jobs(store_of(world), choose_job, &choice);
    if (!choice.job)
        return;
    struct request *request = client_send(world, WRITE_DELETE, OBJECT_JOB,
                                          choice.job->jobset->namespace_, choice.job->name, STR(""));
    world_trace(world, "client: delete job %s", request->write.name.data);
}

static void cordon(struct world *world, uint32_t index, bool on)
{
    struct request *request = request_new(world, WRITE_REPLACE, OBJECT_NODE);
    request->write.name = arena_str(&request->arena, str_from(world->machines[index].name));
    request->write.body = on ? STR("{\"spec\":{\"unschedulable\":true}}") : STR("{\"spec\":{}}");
    world_trace(world, "client: %s %s", on ? "cordon" : "uncordon", request->write.name.data);
}

void client_drain(struct world *world, bool cube, struct str name, bool on)
{
    struct request *request = request_new(world, WRITE_REPLACE, cube ? OBJECT_CUBE : OBJECT_SWITCH);
    request->write.name = arena_str(&request->arena, name);
    request->write.body = on ? STR("{\"spec\":{\"unschedulable\":true}}") : STR("{\"spec\":{}}");
    world_trace(world, "client: %s " STR_FORMAT, on ? "drain" : "undrain", STR_ARG(name));
}

/* Ends every drain of switches and cubes. */
static void end_drains(struct world *world)
{
    const struct slices *slices = core_slices(world->controller.core);
    for (size_t p = 0; p < slices->pod_count; p++) {
        const struct pod_now *pod = slices->pods[p];
        for (uint32_t i = 0; pod->switches && i < POD_SWITCHES; i++)
            if (pod->switches[i].drain)
                client_drain(world, false, pod->switches[i].shown.name, false);
        for (uint32_t i = 0; pod->all_cubes && i < pod->cubes; i++)
            if (pod->all_cubes[i].drain)
                client_drain(world, true, pod->all_cubes[i].shown.name, false);
    }
}

/* Deletes Pods with restartPolicy Always, which otherwise never end. */
static void end_for_ever(struct world *world)
{
    const struct job_store *store = store_of(world);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        struct str policy = doc_str(doc_path(jobset->document, "spec", "restartPolicy", NULL), STR(""));
        if (jobset->form == FORM_POD && str_is(policy, "Always") && !jobset->deleted_ns)
            send_delete(world, jobset);
    }
}

static void clear_fault(struct world *world, const struct fault *fault)
{
    struct request *request = request_new(world, WRITE_DELETE, OBJECT_FAULT);
    request->write.name = arena_str(&request->arena, fault->name);
    world_trace(world, "client: clear fault " STR_FORMAT, STR_ARG(fault->name));
}

static void clear_open(void *context, const struct fault *fault)
{
    if (fault->open)
        clear_fault(context, fault);
}

/* Clears the worst fault of a machine, as the person who repaired it would. */
static void repair(struct world *world)
{
    const struct sim_machine *machine = &world->machines[rng_below(&world->rng, world->swarm.machines)];
    const struct health *health = core_health(world->controller.core);
    const struct fault *fault = fault_of_machine(health, str_from(machine->name));
    if (fault)
        clear_fault(world, fault);
}

/* Closes the ticket of a repair: marks it done, or deletes it. */
static void close_ticket(struct world *world, const struct repair *repair)
{
    const struct object *object = object_find_uid(core_objects(world->controller.core), repair->uid);
    struct buf body BUF_CLEANUP = {0};
    bool done = world_chance(world, 500000);
    if (!object)
        return;
    buf_printf(&body,
               "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Repair\",\"metadata\":{\"name\":\"" STR_FORMAT
               "\"},\"spec\":{\"%s\":\"" STR_FORMAT "\",\"done\":true,\"reason\":\"%llu\"}}",
               STR_ARG(object->name), subject_is_place(repair->subject) ? "place" : "machine",
               STR_ARG(repair->subject), (unsigned long long)rng_next(&world->rng));
    client_send(world, done ? WRITE_REPLACE : WRITE_DELETE, OBJECT_REPAIR, STR(""), object->name,
                done ? buf_str(&body) : STR(""));
    world_trace(world, "client: %s repair " STR_FORMAT, done ? "end" : "delete", STR_ARG(object->name));
}

static void close_tickets(struct world *world, bool all)
{
    const struct repairs *repairs = core_repairs(world->controller.core);
    for (size_t i = 0; i < repairs_count(repairs); i++)
        if (repairs_at(repairs, i)->state == REPAIR_TICKETED && (all || world_chance(world, 300000)))
            close_ticket(world, repairs_at(repairs, i));
}

static void ask_for_repair(struct world *world)
{
    static const char *const actions[] = {"", ",\"action\":\"reboot\"", ",\"action\":\"reset-gpu\"",
                                          ",\"action\":\"odd\"", ",\"now\":true", ",\"qualify\":false"};
    struct buf body BUF_CLEANUP = {0};
    char name[24];
    snprintf(name, sizeof(name), "asked-%u", (unsigned)rng_below(&world->rng, 4));
    buf_printf(&body,
               "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Repair\",\"metadata\":{\"name\":\"%s\"},"
               "\"spec\":{\"machine\":\"%s\"%s}}",
               name, world->machines[rng_below(&world->rng, world->swarm.machines)].name,
               actions[rng_below(&world->rng, sizeof(actions) / sizeof(*actions))]);
    client_send(world, WRITE_CREATE, OBJECT_REPAIR, STR(""), str_from(name), buf_str(&body));
    world_trace(world, "client: repair: %s", body.data);
}

static void plan_maintenance(struct world *world)
{
    struct buf body BUF_CLEANUP = {0};
    char name[24], start[32], end[32];
    int64_t now_ns = core_now(world->controller.core), in_ns = world_draw(world, -2, 10) * NS_PER_SECOND;
    snprintf(name, sizeof(name), "window-%u", (unsigned)rng_below(&world->rng, 3));
    time_format(now_ns + in_ns, start);
    time_format(now_ns + in_ns + world_draw(world, 2, 15) * NS_PER_SECOND, end);
    buf_printf(&body,
               "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Maintenance\",\"metadata\":{\"name\":\"%s\"},"
               "\"spec\":{\"machines\":[\"%s\",\"%s\"],\"start\":\"%s\",\"end\":\"%s\",\"notice\":\"%llds\","
               "\"action\":\"%s\",\"qualify\":%s}}",
               name, world->machines[rng_below(&world->rng, world->swarm.machines)].name,
               world->machines[rng_below(&world->rng, world->swarm.machines)].name, start, end,
               (long long)world_draw(world, 0, 5), world_chance(world, 300000) ? "reboot" : "drain",
               world_chance(world, 500000) ? "true" : "false");
    bool drop = world_chance(world, 300000);
    client_send(world, drop ? WRITE_DELETE : WRITE_CREATE, OBJECT_MAINTENANCE, STR(""), str_from(name),
                drop ? STR("") : buf_str(&body));
    world_trace(world, "client: %s %s", drop ? "delete" : "maintenance:", drop ? name : body.data);
}

/* Limits how much other systems may report. */
static void limit_senders(struct world *world)
{
    struct buf body BUF_CLEANUP = {0};
    const struct object_store *objects = core_objects(world->controller.core);
    bool there = object_find(objects, OBJECT_FAULT_TABLE, STR(""), STR(FAULT_TABLE_NAME)) != NULL;
    buf_printf(&body,
               "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"FaultTable\",\"metadata\":{\"name\":\"%s\"},"
               "\"spec\":{\"public\":{\"perSecond\":%d,\"burst\":%d,\"perSender\":%d,\"total\":%d}}}",
               FAULT_TABLE_NAME, (int)world_draw(world, 1, 5), (int)world_draw(world, 1, 4),
               (int)world_draw(world, 1, 4), (int)world_draw(world, 1, 8));
    client_send(world, there ? WRITE_REPLACE : WRITE_CREATE, OBJECT_FAULT_TABLE, STR(""),
                STR(FAULT_TABLE_NAME), buf_str(&body));
    world_trace(world, "client: %s", body.data);
}

/* Reports a fault as another system would. */
static void report_fault(struct world *world)
{
    static const char *const assertions[] = {"occur", "occur", "recover", "once"};
    static const char *const severities[] = {"notice", "minor", "major", "critical"};
    struct buf body BUF_CLEANUP = {0};
    if (world_chance(world, 100000)) {
        limit_senders(world);
        return;
    }
    buf_printf(&body,
               "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Fault\",\"metadata\":{},\"spec\":{\"machine\":"
               "\"%s\",\"code\":\"public/%d\",\"assertion\":\"%s\",\"severity\":\"%s\",\"sender\":\"s-%d\"}}",
               world->machines[rng_below(&world->rng, world->swarm.machines)].name,
               (int)world_draw(world, 1, 3), assertions[rng_below(&world->rng, 4)],
               severities[rng_below(&world->rng, 4)], (int)world_draw(world, 1, 3));
    client_send(world, WRITE_CREATE, OBJECT_FAULT, STR(""), STR(""), buf_str(&body));
    world_trace(world, "client: %s", body.data);
}

/* Acts as an operator: reports faults, requests repairs, and plans maintenance. */
static void care_for_machines(struct world *world)
{
    switch (world_draw(world, 0, 7)) {
    case 6:
    case 7:
        report_fault(world);
        break;
    case 0:
        ask_for_repair(world);
        break;
    case 1:
        plan_maintenance(world);
        break;
    case 2:
        close_tickets(world, false);
        break;
    default:
        repair(world);
    }
}

/* Acts as an operator in the second phase: only repairs, and undoes cordons, quotas, finalizers and
 * drains. */
static void tidy(struct world *world)
{
    fault_visit(core_health(world->controller.core), clear_open, world);
    close_tickets(world, true);
    end_for_ever(world);
    hold_tidy(world);
    client_objects_tidy(world);
    client_queues_tidy(world);
    const struct cluster *cluster = core_cluster(world->controller.core);
    for (size_t i = 0; i < cluster->machine_count; i++)
        if (cluster->machines[i].cordoned)
            cordon(world, (uint32_t)i, false);
    end_drains(world);
}

/* Creates slices and drains switches only: slices run for long if nobody deletes or suspends them or cordons
 * their Nodes. */
static void want_slices(struct world *world)
{
    if (store_of(world)->jobsets.len < world->swarm.jobsets_max)
        create(world);
    else if (world_chance(world, 100000))
        sim_switches_maintain(world);
}

static void want_something(struct world *world)
{
    if (world->swarm.whole_ppm && world_chance(world, 900000)) {
        want_slices(world);
        return;
    }
    if (world->swarm.weights[FAULT_SIGNAL] && world_chance(world, 100000)) {
        care_for_machines(world);
        return;
    }
    if (world->swarm.ladder_ppm && world_chance(world, 60000)) {
        plan_maintenance(world); /* gangs with spares leave the machine between two steps */
        return;
    }
    if (world->swarm.features[FEATURE_QUEUES] && world_chance(world, 350000)) {
        client_queues_act(world);
        return;
    }
    if ((world->swarm.features[FEATURE_OBJECTS] || world->swarm.features[FEATURE_NAMESPACES]) &&
        world_chance(world, 300000)) {
        client_objects_act(world);
        return;
    }
    switch (world_draw(world, 0, 9)) {
    case 0:
        delete_jobset(world);
        break;
    case 1:
    case 2:
        toggle_suspend(world);
        break;
    case 3:
        delete_pod(world);
        break;
    case 4:
        if (world_chance(world, 300000))
            delete_job(world);
        break;
    case 5:
        cordon(world, (uint32_t)rng_below(&world->rng, world->swarm.machines), world_chance(world, 500000));
        break;
    default:
        if (store_of(world)->jobsets.len < world->swarm.jobsets_max)
            create(world);
        break;
    }
}

void client_act(struct world *world)
{
    int64_t pause_ns =
        world->healing ? 5 * NS_PER_SECOND : world_draw_about(world, world->swarm.client_every_ns);
    world_after(world, pause_ns, SIM_CLIENT, 0, 0, 0);
    if (world->healing && controller_is_open(world))
        tidy(world); /* requests wait while the disk is busy */
    else if (controller_reads(world))
        want_something(world);
}

/* --- requests and replies --------------------------------------------------------------------- */

static void arrive(struct world *world, struct request *request)
{
    struct effects refused = {0};
    if (request->id % 2) /* as hosts do with large documents */
        request->write.prepared = core_prepare_write(&request->write);
    if (core_check_write(world->controller.core, &request->write, core_now(world->controller.core), &refused,
                         request->write.prepared ? NULL : &request->write.prepared))
        controller_request(world, request);
    else
        world_trace(world, "client: refused: %d " STR_FORMAT, refused.list.items[0].reply.code,
                    STR_ARG(refused.list.items[0].reply.message));
    vec_done(&refused.list);
}

void client_request(struct world *world, const struct sim_event *event)
{
    for (size_t i = 0; i < world->requests.len; i++) {
        struct request *request = world->requests.items[i];
        if (request->id != event->id)
            continue;
        bool reads = controller_reads(world);
        request->waits = !reads && world->healing && world->controller.core;
        if (request->waits)
            return; /* client_unblock() continues */
        vec_remove(&world->requests, i);
        if (reads) /* otherwise the connection is refused, or given up */
            arrive(world, request);
        request_free(request);
        return;
    }
}

void client_unblock(struct world *world)
{
    for (size_t i = 0; i < world->requests.len && controller_reads(world);) {
        struct request *request = world->requests.items[i];
        if (!request->waits) {
            i++;
            continue;
        }
        vec_remove(&world->requests, i);
        arrive(world, request);
        request_free(request);
    }
}

void client_reply(struct world *world, const struct effect *effect)
{
    if (effect->reply.code != 201 || effect->reply.object.kind != OBJECT_JOBSET)
        return;
    struct known_jobset *known = known_find(world, effect->reply.object.jobset->name);
    if (known)
        known->uid = effect->reply.object.jobset->uid;
    world->outcome->jobsets++;
}

void client_done(struct world *world)
{
    for (size_t i = 0; i < world->requests.len; i++)
        request_free(world->requests.items[i]);
    vec_done(&world->requests);
    vec_done(&world->known);
}
