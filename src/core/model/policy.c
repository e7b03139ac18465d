#include "core/model/policy.h"

#include "base/check.h"

#define SECOND_NS NS_PER_SECOND
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
#define YEAR_NS   (365 * DAY_NS)

enum { REBOOTS_MAX = 100, HISTORY_MAX = 3000, CHIP_TERAFLOPS_MAX = 1000000 };
#define MIB (INT64_C(1) << 20)
#define TIB (INT64_C(1) << 40)

const char *const sub_health_names[SUB_HEALTHS] = {"ignore", "graceExit", "forceExit", "hotSwitch"};
static const char *const timestamps[] = {"Eviction", "Creation"};

bool sub_health_read(struct str text, enum sub_health *ret)
{
    for (int i = 0; i < SUB_HEALTHS; i++) {
        if (str_is(text, sub_health_names[i])) {
            *ret = (enum sub_health)i;
            return true;
        }
    }
    return false;
}

#define AT(member) offsetof(struct policy, member)
#define COUNT(path, member, fallback, min, max, text)                                                        \
    {                                                                                                        \
        path, POLICY_COUNT, AT(member), fallback, min, max, NULL, NULL, text                                 \
    }
#define DURATION(path, member, fallback, min, max, text)                                                     \
    {                                                                                                        \
        path, POLICY_DURATION, AT(member), fallback, min, max, NULL, NULL, text                              \
    }
#define SECONDS(path, member, fallback, max, text)                                                           \
    {                                                                                                        \
        path, POLICY_SECONDS, AT(member), fallback, 0, max, NULL, NULL, text                                 \
    }
#define BYTES(path, member, fallback, text)                                                                  \
    {                                                                                                        \
        path, POLICY_BYTES, AT(member), fallback, 4 * MIB, TIB, NULL, NULL, text                             \
    }
#define SWITCH(path, member, fallback, text)                                                                 \
    {                                                                                                        \
        path, POLICY_SWITCH, AT(member), fallback, 0, 1, NULL, NULL, text                                    \
    }
#define CHOICE(path, member, fallback, names, most, text)                                                    \
    {                                                                                                        \
        path, POLICY_CHOICE, AT(member), fallback, 0, most, names, NULL, text                                \
    }
#define LEMON(key, signal, fallback, most, text)                                                             \
    COUNT("settings.lemons.thresholds." key, lemons.thresholds[signal], fallback, 0, most, text)

const struct policy_field policy_fields[] = {
    DURATION("settings.lease", lease_ns, LEASE_DEFAULT_NS, 100 * NS_PER_MS, HOUR_NS,
             "a machine that is silent for so long is lost"),
    {"settings.heartbeat", POLICY_DURATION, AT(heartbeat_ns), 0, 10 * NS_PER_MS, HOUR_NS, NULL, "automatic",
     "time between two heartbeats of a machine, at most half of the lease; by default 1s, or a third "
     "of a shorter lease"},
    DURATION("settings.backfillWindow", backfill_window_ns, 10 * MINUTE_NS, 0, 30 * DAY_NS,
             "how long later gangs may overtake one that waits at the head of the queue"),
    CHOICE(
        "settings.subHealth", sub_health, SUB_HEALTH_IGNORE, sub_health_names, SUB_HEALTHS - 1,
        "what jobs that do not say (`phalanx.dev/sub-health`) do about a machine that is slow or otherwise "
        "not well"),
    DURATION("settings.paceWindow", pace_window_ns, PACE_WINDOW_DEFAULT_NS, PACE_WINDOW_MIN_NS,
             PACE_WINDOW_MAX_NS, "time over which the ranks of a job are compared; at least two heartbeats"),
    COUNT("settings.chipTeraflops", chip_teraflops, 0, 0, CHIP_TERAFLOPS_MAX,
          "peak of one chip in 10^12 floating-point operations a second, for the MFU of jobs in `phalanx "
          "report`; 0: unknown"),
    SWITCH("settings.actOnFailureTarget", act_on_failure, true,
           "whether JobSets that do not say (`phalanx.dev/act-on-failure-target`) act on a Job's failure at "
           "once, not when its pods have ended"),
    SWITCH("settings.hangs.enabled", hangs.enabled, true,
           "whether jobs that do not say are watched for hangs"),
    COUNT("settings.hangs.factor", hangs.factor, 5, 2, 1000,
          "a job is suspected after so many times the longest time between two of its steps"),
    DURATION("settings.hangs.minimum", hangs.minimum_ns, MINUTE_NS, SECOND_NS, DAY_NS,
             "and not before this time"),
    DURATION("settings.hangs.firstStep", hangs.first_step_ns, 30 * MINUTE_NS, SECOND_NS, 7 * DAY_NS,
             "time for the start, the restore and the first steps"),
    DURATION("settings.hangs.checkpoint", hangs.checkpoint_ns, 10 * MINUTE_NS, SECOND_NS, DAY_NS,
             "time without a step while a checkpoint is being saved"),
    DURATION("settings.hangs.answer", hangs.answer_ns, 2 * SECOND_NS, SECOND_NS / 10, MINUTE_NS,
             "time for a rank to say what it waits for"),
    DURATION("settings.hangs.join", hangs.join_ns, MINUTE_NS, SECOND_NS, DAY_NS,
             "a rank is late that has not joined so long after its peers have"),
    DURATION("settings.faults.breakerWindow", faults.breaker_window_ns, HOUR_NS, MINUTE_NS, 7 * DAY_NS,
             "time over which the breaker counts the machines that faults took out of work"),
    COUNT("settings.lemons.windowDays", lemons.window_days, LEMON_WINDOW_DAYS_MAX, 1, LEMON_WINDOW_DAYS_MAX,
          "days over which a machine's failures count"),
    SWITCH("settings.lemons.remove", lemons.remove, false, "whether lemons are drained"),
    LEMON("exclJobidCount", LEMON_SIGNAL_EXCLUSIONS, 5, UINT16_MAX,
          "jobs that excluded the machine; 0: unused"),
    LEMON("xidCnt", LEMON_SIGNAL_XIDS, 10, UINT16_MAX, "XID errors of its chips; 0: unused"),
    LEMON("tickets", LEMON_SIGNAL_TICKETS, 3, UINT16_MAX, "repair tickets; 0: unused"),
    LEMON("outCount", LEMON_SIGNAL_OUTS, 5, UINT16_MAX, "times that it was taken out of work; 0: unused"),
    LEMON("multiNodeNodeFails", LEMON_SIGNAL_MULTI_NODE_FAILURES, 3, UINT16_MAX,
          "failures of jobs on several machines that it caused; 0: unused"),
    LEMON("singleNodeNodeFails", LEMON_SIGNAL_SINGLE_NODE_FAILURES, 3, UINT16_MAX,
          "failures of jobs on it alone that it caused; 0: unused"),
    LEMON("singleNodeNodeFailureRatePercent", LEMON_SIGNAL_FAILURE_RATE, 50, 100,
          "those failures, in per cent of the jobs on it alone; 0: unused"),
    BYTES("settings.storedBytes.namespace", stored_bytes.namespace_max, 256 * MIB,
          "documents of one namespace that the controller keeps"),
    BYTES("settings.storedBytes.cluster", stored_bytes.cluster_max, 2048 * MIB,
          "documents that it keeps in all"),
    DURATION("queues.minimumRunTime", queues.min_run_ns, 2 * HOUR_NS, 0, YEAR_NS,
             "time after its admission for which a workload is not preempted"),
    DURATION("queues.maximumLifetime", queues.max_life_ns, 7 * DAY_NS, 0, YEAR_NS,
             "of one admission; 0: no limit"),
    COUNT("queues.preemptionsPerRequeue", queues.victims_max, 0, 0, INT32_MAX,
          "victims of one gang while it waits; 0: no limit"),
    SWITCH("queues.waitForPodsReady.enable", queues.wait_ready, false,
           "whether an admitted workload that does not become ready is evicted"),
    SWITCH("queues.waitForPodsReady.blockAdmission", queues.block_admission, false,
           "whether nothing is admitted while an admitted workload is not ready"),
    DURATION("queues.waitForPodsReady.timeout", queues.ready_timeout_ns, 30 * MINUTE_NS, SECOND_NS, YEAR_NS,
             "time for an admitted workload to become ready"),
    {"queues.waitForPodsReady.recoveryTimeout", POLICY_DURATION, AT(queues.recovery_timeout_ns), -1,
     SECOND_NS, YEAR_NS, NULL, "none", "time for a workload that was ready to become so again"},
    CHOICE("queues.waitForPodsReady.requeuingStrategy.timestamp", queues.creation_timestamp, 0, timestamps, 1,
           "what an evicted workload's place in the queue follows"),
    {"queues.waitForPodsReady.requeuingStrategy.backoffLimitCount", POLICY_COUNT, AT(queues.backoff_limit),
     -1, 0, INT32_MAX, NULL, "no limit", "requeuings after which it is deactivated"},
    SECONDS("queues.waitForPodsReady.requeuingStrategy.backoffBaseSeconds", queues.backoff_base_ns,
            60 * SECOND_NS, INT32_MAX *SECOND_NS, "wait before the first requeuing; doubles"),
    SECONDS("queues.waitForPodsReady.requeuingStrategy.backoffMaxSeconds", queues.backoff_max_ns,
            3600 * SECOND_NS, INT32_MAX *SECOND_NS, "the longest wait; not less than backoffBaseSeconds"),
    SWITCH("queues.fairSharing.enable", queues.fair, false, "whether admission follows fair shares"),
    SWITCH("repair.qualify", repair.qualify, true,
           "whether a repaired machine is tested before it comes back"),
    DURATION("repair.absent", repair.absent_ns, 10 * MINUTE_NS, 0, DAY_NS,
             "a machine whose agent is away for longer cannot be repaired by a hook"),
    DURATION("repair.watch", repair.watch_ns, DAY_NS, 0, YEAR_NS,
             "time for which a repaired machine is watched after its return"),
    DURATION("repair.recall", repair.recall_ns, 30 * DAY_NS, 0, YEAR_NS,
             "time for which an earlier repair counts"),
    COUNT("repair.reboots", repair.reboots_max, 2, 0, REBOOTS_MAX,
          "reboots for one fault code within that time; after them, a ticket"),
    COUNT("repair.history", repair.history_max, 1000, 0, HISTORY_MAX,
          "number of ended Repairs that are kept"),
};
const size_t policy_field_count = sizeof(policy_fields) / sizeof(*policy_fields);

_Static_assert(sizeof(enum sub_health) == sizeof(int), "a choice is stored as an int");

int64_t policy_get(const struct policy *policy, const struct policy_field *field)
{
    const char *at = (const char *)policy + field->offset;
    switch (field->type) {
    case POLICY_SWITCH:
        return *(const bool *)at;
    case POLICY_CHOICE:
        return *(const int *)at;
    case POLICY_COUNT:
    case POLICY_DURATION:
    case POLICY_SECONDS:
    case POLICY_BYTES:
        break;
    }
    return *(const int64_t *)at;
}

void policy_set(struct policy *policy, const struct policy_field *field, int64_t value)
{
    char *at = (char *)policy + field->offset;
    CHECK(value == field->fallback || (value >= field->min && value <= field->max));
    if (field->type == POLICY_SWITCH)
        *(bool *)at = value != 0;
    else if (field->type == POLICY_CHOICE)
        *(int *)at = (int)value;
    else
        *(int64_t *)at = value;
}

struct policy policy_default(void)
{
    struct policy policy = {0};
    for (size_t i = 0; i < policy_field_count; i++)
        policy_set(&policy, &policy_fields[i], policy_fields[i].fallback);
    return policy;
}

/* --- for people --------------------------------------------------------------------------------------- */

/* Appends a duration as duration_parse reads it: "1h30m", "250ms". */
static void print_duration(int64_t value_ns, struct buf *out)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"d", DAY_NS}, {"h", HOUR_NS}, {"m", MINUTE_NS}, {"s", SECOND_NS}, {"ms", NS_PER_MS}};
    if (value_ns == 0)
        buf_printf(out, "0");
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (value_ns >= units[i].ns)
            buf_printf(out, "%lld%s", (long long)(value_ns / units[i].ns), units[i].name);
        value_ns %= units[i].ns;
    }
}

/* Appends bytes in the largest unit that divides them: "256Mi". */
static void print_bytes(int64_t bytes, struct buf *out)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t unit = 0;
    while (bytes > 0 && bytes % 1024 == 0 && unit < sizeof(units) / sizeof(*units) - 1) {
        bytes /= 1024;
        unit++;
    }
    buf_printf(out, "%lld%s", (long long)bytes, units[unit]);
}

void policy_print_value(const struct policy_field *field, int64_t value, struct buf *out)
{
    if (field->fallback_text && value == field->fallback) {
        buf_printf(out, "%s", field->fallback_text);
        return;
    }
    switch (field->type) {
    case POLICY_SWITCH:
        buf_printf(out, "%s", value ? "true" : "false");
        return;
    case POLICY_CHOICE:
        buf_printf(out, "%s", field->names[value]);
        return;
    case POLICY_DURATION:
        print_duration(value, out);
        return;
    case POLICY_BYTES:
        print_bytes(value, out);
        return;
    case POLICY_COUNT:
    case POLICY_SECONDS:
        break;
    }
    buf_printf(out, "%lld", (long long)(field->type == POLICY_SECONDS ? value / SECOND_NS : value));
}

void policy_print_range(const struct policy_field *field, struct buf *out)
{
    for (int64_t i = 0; field->type == POLICY_CHOICE && i <= field->max; i++)
        buf_printf(out, "%s%s", i ? ", " : "", field->names[i]);
    if (field->type == POLICY_CHOICE)
        return;
    if (field->type == POLICY_SWITCH) {
        buf_printf(out, "true, false");
        return;
    }
    policy_print_value(field, field->min, out);
    buf_printf(out, " to ");
    policy_print_value(field, field->max, out);
}

void policy_document(struct buf *out)
{
    buf_printf(
        out, "# Policy\n"
             "The constants of the controller's behaviour that the [cluster file](cluster-file.md) may set,\n"
             "below `spec`. This page is what `phalanx cluster policy --markdown` prints;\n"
             "`phalanx cluster policy FILE` prints the values that a file gives.\n"
             "\n"
             "| field | default | values | meaning |\n"
             "|---|---|---|---|\n");
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *field = &policy_fields[i];
        buf_printf(out, "| `%s` | ", field->path);
        policy_print_value(field, field->fallback, out);
        buf_printf(out, " | ");
        policy_print_range(field, out);
        buf_printf(out, " | %s |\n", field->text);
    }
}
