/* render_report.c - the report on the use of chips: the cluster's accounts, losses, failures by size, and the
 * accounts of jobs and queues (core/ledger/ledger.h). One document of the kind Report, computed when it is
 * read. */
#include "base/map.h"
#include "core/core.h"
#include "core/ledger/mttf_bounds.h"
#include "kube/render.h"

/* Sums of the JobSets of one queue. */
struct queue_sum {
    struct str namespace_, name; /* name empty: JobSets without a queue */
    struct ledger_account account;
    int64_t jobs;
    int64_t restarts;
};

struct sums {
    struct arena *arena;
    struct str_map places; /* "namespace/queue" -> struct queue_sum */
    VEC(struct queue_sum *) queues;
    struct ledger_account all; /* of all JobSets, existing and deleted */
};

/* --- parts ------------------------------------------------------------------------------------ */

static void put_seconds(struct json_writer *out, const char *key, const int64_t *chip_us)
{
    json_key(out, key);
    json_begin_object(out);
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        if (chip_us[owner] == 0)
            continue;
        json_key(out, ledger_owner_name((enum ledger_owner)owner));
        json_put_fixed(out, chip_us[owner], 6);
    }
    json_end_object(out);
}

static void pair_seconds(struct json_writer *out, const char *key, int64_t us)
{
    json_key(out, key);
    json_put_fixed(out, us, 6);
}

static void pair_ettr(struct json_writer *out, const struct ledger_account *account)
{
    int64_t ppm = ledger_ettr_ppm(account);
    if (ppm >= 0)
        json_pair_int(out, "ettrPpm", ppm);
}

static void put_cluster(struct json_writer *out, const struct cluster *cluster, const struct ledger *book)
{
    json_key(out, "cluster");
    json_begin_object(out);
    json_pair_str(out, "name", cluster->name);
    json_pair_int(out, "machines", (int64_t)cluster->machine_count);
    json_pair_int(out, "chips", (int64_t)cluster->chip_count);
    json_key(out, "chipsNow");
    json_begin_object(out);
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        if (book->chips[owner])
            json_pair_int(out, ledger_owner_name((enum ledger_owner)owner), book->chips[owner]);
    json_end_object(out);
    put_seconds(out, "chipSeconds", book->chip_us);
    pair_seconds(out, "allChipSeconds", book->all_chip_us);
    int64_t made_us = book->chip_us[OWNER_KEPT] + book->chip_us[OWNER_UNKEPT];
    if (book->all_chip_us > 0)
        json_pair_int(out, "normalisedGoodputPpm",
                      (int64_t)((__int128)made_us * 1000000 / book->all_chip_us));
    json_end_object(out);
}

static void put_loss(struct json_writer *out, const char *order, enum ledger_cause cause,
                     const struct ledger_loss *loss)
{
    json_begin_object(out);
    json_pair_text(out, "order", order);
    json_pair_text(out, "cause", ledger_cause_name(cause));
    json_pair_int(out, "count", loss->count);
    pair_seconds(out, "assumedChipSeconds", loss->assumed_us);
    json_end_object(out);
}

static void put_losses(struct json_writer *out, const struct ledger *book)
{
    json_key(out, "losses");
    json_begin_array(out);
    for (int cause = 0; cause < LEDGER_CAUSES; cause++)
        put_loss(out, "first", (enum ledger_cause)cause, &book->first_order[cause]);
    for (int cause = 0; cause < LEDGER_CAUSES; cause++)
        put_loss(out, "second", (enum ledger_cause)cause, &book->second_order[cause]);
    json_end_array(out);
}

/* The mean time to a failure of a job of 2^size_class chips at this size's rate of one chip, and its bounds.
 * Without a failure there is only a lower bound. */
static void put_mttf(struct json_writer *out, const struct ledger_size *size, int size_class)
{
    uint64_t failures = size->ends[CAUSE_INFRASTRUCTURE];
    struct ledger_bounds bounds = ledger_mttf_bounds(failures, size->chip_us);
    if (failures > 0)
        pair_seconds(out, "mttfSeconds", size->chip_us / (int64_t)failures >> size_class);
    if (size->chip_us > 0)
        pair_seconds(out, "mttfLowSeconds", bounds.low_us >> size_class);
    if (bounds.high_us >= 0)
        pair_seconds(out, "mttfHighSeconds", bounds.high_us >> size_class);
}

static void put_sizes(struct json_writer *out, const struct ledger *book)
{
    json_key(out, "sizes");
    json_begin_array(out);
    for (int i = 0; i < LEDGER_SIZES; i++) {
        const struct ledger_size *size = &book->sizes[i];
        uint64_t failures = size->ends[CAUSE_INFRASTRUCTURE];
        if (size->chip_us == 0 && size->chips == 0 && failures == 0)
            continue;
        json_begin_object(out);
        json_pair_int(out, "chips", (int64_t)1 << i);
        pair_seconds(out, "exposureChipSeconds", size->chip_us);
        json_key(out, "ends");
        json_begin_object(out);
        for (int cause = 0; cause < LEDGER_CAUSES; cause++)
            json_pair_int(out, ledger_cause_name((enum ledger_cause)cause), (int64_t)size->ends[cause]);
        json_end_object(out);
        put_mttf(out, size, i);
        json_end_object(out);
    }
    json_end_array(out);
    json_pair_int(out, "mttfConfidencePpm", LEDGER_CONFIDENCE_PPM);
}

/* The failure rate of the reference counts jobs of more than 128 chips: smaller ones share machines. */
static void put_rate(struct json_writer *out, const struct cluster *cluster, const struct ledger *book)
{
    enum { SMALL_CLASS = 7 }; /* up to 128 chips */
    uint64_t failures = 0;
    int64_t chip_us = 0;
    for (int i = SMALL_CLASS + 1; i < LEDGER_SIZES; i++) {
        failures += book->sizes[i].ends[CAUSE_INFRASTRUCTURE];
        chip_us += book->sizes[i].chip_us;
    }
    json_key(out, "failureRate");
    json_begin_object(out);
    json_pair_int(out, "overChips", (int64_t)1 << SMALL_CLASS);
    json_pair_int(out, "failures", (int64_t)failures);
    if (cluster->chip_count > 0) {
        __int128 machine_us =
            (__int128)chip_us * (int64_t)cluster->machine_count / (int64_t)cluster->chip_count;
        const int64_t day_us = (int64_t)86400 * 1000000;
        pair_seconds(out, "machineDays", (int64_t)(machine_us * 1000000 / day_us));
        if (machine_us > 0) /* failures in 1,000 machine days */
            pair_seconds(out, "perThousandMachineDays",
                         (int64_t)((__int128)failures * 1000 * day_us * 1000000 / machine_us));
    }
    json_end_object(out);
}

/* --- jobs and queues -------------------------------------------------------------------------- */

static struct queue_sum *sum_of(struct sums *sums, const struct jobset *jobset)
{
    struct str name = labels_get(&jobset->spec.labels, STR("kueue.x-k8s.io/queue-name"), STR(""));
    struct str key =
        arena_printf(sums->arena, STR_FORMAT "/" STR_FORMAT, STR_ARG(jobset->namespace_), STR_ARG(name));
    struct queue_sum *sum = str_map_get(&sums->places, key);
    if (sum)
        return sum;
    sum = ARENA_NEW(sums->arena, struct queue_sum);
    sum->namespace_ = jobset->namespace_;
    sum->name = name;
    str_map_put(&sums->places, key, sum);
    vec_push(&sums->queues, sum);
    return sum;
}

static void put_job(struct json_writer *out, const struct jobset *jobset,
                    const struct ledger_account *account, int64_t chip_teraflops)
{
    static const char *const forms[] = {[FORM_JOBSET] = "JobSet", [FORM_JOB] = "Job", [FORM_POD] = "Pod"};
    json_begin_object(out);
    json_pair_text(out, "kind", forms[jobset->form]);
    json_pair_str(out, "namespace", jobset->namespace_);
    json_pair_str(out, "name", jobset->name);
    json_pair_int(out, "chips", account->chips);
    json_pair_int(out, "restarts", jobset->history.record_count);
    pair_ettr(out, account);
    int64_t mfu = progress_mfu_ppm(&jobset->progress, account->chips, chip_teraflops);
    if (mfu >= 0)
        json_pair_int(out, "mfuPpm", mfu);
    put_seconds(out, "chipSeconds", account->chip_us);
    json_end_object(out);
}

static void put_jobs(struct json_writer *out, const struct core *core, int64_t now_ns, struct sums *sums)
{
    const struct job_store *store = core_jobs(core);
    const struct cluster *cluster = core_cluster(core);
    json_key(out, "jobs");
    json_begin_array(out);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        if (jobset->form == FORM_WORKLOAD)
            continue;
        struct ledger_account account = jobset_account(jobset, now_ns);
        struct queue_sum *sum = sum_of(sums, jobset);
        sum->jobs++;
        sum->restarts += jobset->history.record_count;
        ledger_account_add(&sum->account, &account);
        ledger_account_add(&sums->all, &account);
        if (account.wanted_chip_us > 0 || account.chips > 0)
            put_job(out, jobset, &account, cluster ? cluster->policy.chip_teraflops : 0);
    }
    json_end_array(out);
}

static void put_queues(struct json_writer *out, const struct sums *sums)
{
    json_key(out, "queues");
    json_begin_array(out);
    for (size_t i = 0; i < sums->queues.len; i++) {
        const struct queue_sum *sum = sums->queues.items[i];
        json_begin_object(out);
        json_pair_str(out, "namespace", sum->namespace_);
        json_pair_str(out, "name", sum->name);
        json_pair_int(out, "jobs", sum->jobs);
        json_pair_int(out, "restarts", sum->restarts);
        pair_ettr(out, &sum->account);
        put_seconds(out, "chipSeconds", sum->account.chip_us);
        json_end_object(out);
    }
    json_end_array(out);
}

void render_report(struct render *render)
{
    struct json_writer *out = &render->out;
    struct sums sums = {.arena = render->scratch};
    int64_t now_ns = render->now_ns > core_now(render->core) ? render->now_ns : core_now(render->core);
    struct ledger book = ledger_at(core_ledger(render->core), now_ns / NS_PER_US);
    json_begin_object(out);
    render_type(render, "phalanx.dev/v1", "Report");
    json_key(out, "metadata");
    json_begin_object(out);
    json_pair_text(out, "name", "cluster");
    json_end_object(out);
    json_key(out, "status");
    json_begin_object(out);
    render_micro_time(render, "since", book.opened_us * NS_PER_US);
    render_micro_time(render, "asOf", now_ns);
    put_cluster(out, core_cluster(render->core), &book);
    put_losses(out, &book);
    put_sizes(out, &book);
    put_rate(out, core_cluster(render->core), &book);
    put_jobs(out, render->core, now_ns, &sums);
    put_queues(out, &sums);
    json_key(out, "gone"); /* JobSets that were deleted */
    json_begin_object(out);
    put_seconds(out, "chipSeconds", book.gone_chip_us);
    json_end_object(out);
    struct ledger_account gone = {.wanted_chip_us = book.gone_wanted_chip_us};
    mem_copy(gone.chip_us, book.gone_chip_us, sizeof gone.chip_us);
    ledger_account_add(&sums.all, &gone);
    json_key(out, "all");
    json_begin_object(out);
    pair_ettr(out, &sums.all);
    put_seconds(out, "chipSeconds", sums.all.chip_us);
    json_end_object(out);
    json_end_object(out);
    json_end_object(out);
    str_map_done(&sums.places);
    vec_done(&sums.queues);
}
