#include "core/lemon/lemon.h"

#include "base/map.h"
#include "core/step.h"

/* Days of one record: more than a window, because the tick that drops old days may be late. */
enum { ENTRY_DAYS_MAX = 2 * LEMON_WINDOW_DAYS_MAX };

struct lemon_store {
    VEC(struct lemon *) all; /* in order of their first count */
    struct str_map by_machine;
    VEC(struct lemon *) stirred; /* judged before the step ends */
    int64_t oldest_day;          /* of all entries; INT64_MAX: there are none */
    bool emptied;                /* some records have no entries any more */
    bool (*excused)(const struct step *step, const struct machine *machine); /* NULL: no event is excused */
    int64_t sums[LEMON_COUNTERS];                                            /* over all machines */
};

_Static_assert((int)LEMON_COUNTERS <= UINT16_MAX, "`counter` of struct lemon_entry has 16 bits");

const char *lemon_signal_name(enum lemon_signal signal)
{
    static const char *const names[LEMON_SIGNALS] = {
        "excl_jobid_count",
        "xid_cnt",
        "tickets",
        "out_count",
        "multi_node_node_fails",
        "single_node_node_fails",
        "single_node_node_failure_rate",
    };
    CHECK((unsigned)signal < LEMON_SIGNALS);
    return names[signal];
}

struct lemon_store *lemon_store_new(void)
{
    struct lemon_store *store = mem_alloc(sizeof(*store));
    store->oldest_day = INT64_MAX;
    return store;
}

void lemon_store_excuse(struct lemon_store *store,
                        bool (*excused)(const struct step *step, const struct machine *machine))
{
    store->excused = excused;
}

static void lemon_free(struct lemon *lemon)
{
    mem_free((char *)lemon->machine.data);
    vec_done(&lemon->entries);
    mem_free(lemon);
}

void lemon_store_free(struct lemon_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < store->all.len; i++)
        lemon_free(store->all.items[i]);
    vec_done(&store->all);
    vec_done(&store->stirred);
    str_map_done(&store->by_machine);
    mem_free(store);
}

static struct lemon *add(struct lemon_store *store, struct str machine)
{
    CHECK(!lemon_find(store, machine)); /* one record for each machine */
    struct lemon *lemon = mem_alloc(sizeof(*lemon));
    struct buf name = {0};
    buf_add_str(&name, machine);
    lemon->machine = buf_str(&name);
    vec_push(&store->all, lemon);
    str_map_put(&store->by_machine, lemon->machine, lemon);
    return lemon;
}

const struct lemon *lemon_find(const struct lemon_store *store, struct str machine)
{
    return str_map_get(&store->by_machine, machine);
}

int64_t lemon_sum(const struct lemon_store *store, enum lemon_counter counter)
{
    CHECK((unsigned)counter < LEMON_COUNTERS);
    return store->sums[counter];
}

static void stir(struct lemon_store *store, struct lemon *lemon)
{
    if (!lemon->stirred)
        vec_push(&store->stirred, lemon);
    lemon->stirred = true;
}

/* --- counting --------------------------------------------------------------------------------- */

static struct lemon_entry *entry_of(struct lemon *lemon, int32_t day, enum lemon_counter counter)
{
    CHECK(day >= 0 && (unsigned)counter < LEMON_COUNTERS);
    size_t at = lemon->entries.len;
    while (at > 0 &&
           (lemon->entries.items[at - 1].day > day ||
            (lemon->entries.items[at - 1].day == day && lemon->entries.items[at - 1].counter > counter)))
        at--;
    if (at > 0 && lemon->entries.items[at - 1].day == day && lemon->entries.items[at - 1].counter == counter)
        return &lemon->entries.items[at - 1];
    struct lemon_entry entry = {day, (uint16_t)counter, 0};
    vec_push(&lemon->entries, entry);
    for (size_t i = lemon->entries.len - 1; i > at; i--)
        lemon->entries.items[i] = lemon->entries.items[i - 1];
    lemon->entries.items[at] = entry;
    return &lemon->entries.items[at];
}

void lemon_count(struct step *step, const struct machine *machine, enum lemon_counter counter)
{
    CHECK((unsigned)counter < LEMON_COUNTERS && step->now_ns >= 0);
    bool fails = counter != LEMON_EXCLUSION && counter != LEMON_SINGLE_NODE_RUN;
    struct lemon_store *store = step->lemons;
    if (fails && store->excused && store->excused(step, machine))
        return;
    int64_t day = step->now_ns / LEMON_DAY_NS;
    CHECK(day <= INT32_MAX);
    struct lemon *lemon = str_map_get(&store->by_machine, machine->name);
    if (!lemon)
        lemon = add(store, machine->name);
    struct lemon_entry *entry = entry_of(lemon, (int32_t)day, counter);
    if (entry->count == UINT16_MAX)
        return;
    entry->count++;
    lemon->totals[counter]++;
    store->sums[counter]++;
    lemon->changed_seq = step->seq;
    store->oldest_day = day < store->oldest_day ? day : store->oldest_day;
    if (counter == LEMON_SINGLE_NODE_RUN)
        return; /* a run is no evidence against the machine */
    lemon->grew = true;
    stir(store, lemon);
}

/* --- the window ------------------------------------------------------------------------------- */

static void forget(struct lemon_store *store, struct lemon *lemon, int64_t before_day)
{
    size_t old = 0;
    while (old < lemon->entries.len && lemon->entries.items[old].day < before_day)
        old++;
    if (!old)
        return;
    for (size_t i = 0; i < old; i++) {
        const struct lemon_entry *entry = &lemon->entries.items[i];
        CHECK(lemon->totals[entry->counter] >= entry->count);
        lemon->totals[entry->counter] -= entry->count;
        store->sums[entry->counter] -= entry->count;
    }
    for (size_t i = old; i < lemon->entries.len; i++)
        lemon->entries.items[i - old] = lemon->entries.items[i];
    lemon->entries.len -= old;
    stir(store, lemon);
}

/* Drops old entries. Records without entries are removed after they were judged. */
void lemon_tick(struct step *step)
{
    struct lemon_store *store = step->lemons;
    int64_t first_day = step->now_ns / LEMON_DAY_NS - step->cluster->policy.lemons.window_days + 1;
    if (store->oldest_day >= first_day)
        return;
    store->oldest_day = INT64_MAX;
    for (size_t i = 0; i < store->all.len; i++) {
        struct lemon *lemon = store->all.items[i];
        forget(store, lemon, first_day);
        if (lemon->entries.len && lemon->entries.items[0].day < store->oldest_day)
            store->oldest_day = lemon->entries.items[0].day;
    }
}

void lemon_cluster(struct step *step, const struct lemon_settings *before)
{
    bool removes = step->cluster->policy.lemons.remove && !before->remove;
    lemon_tick(step);
    for (size_t i = 0; i < step->lemons->all.len; i++) {
        struct lemon *lemon = step->lemons->all.items[i];
        lemon->grew |= removes;
        stir(step->lemons, lemon);
    }
}

int64_t lemon_deadline(const struct lemon_store *store, const struct lemon_settings *settings)
{
    return store->oldest_day == INT64_MAX ? INT64_MAX
                                          : (store->oldest_day + settings->window_days) * LEMON_DAY_NS;
}

/* --- judging ---------------------------------------------------------------------------------- */

int64_t lemon_value(const struct lemon *lemon, enum lemon_signal signal)
{
    CHECK((unsigned)signal < LEMON_SIGNALS);
    if (signal != LEMON_SIGNAL_FAILURE_RATE)
        return lemon->totals[signal];
    uint32_t failures = lemon->totals[LEMON_SINGLE_NODE_FAILURE], runs = lemon->totals[LEMON_SINGLE_NODE_RUN];
    if (failures < LEMON_RATE_FAILURES_MIN)
        return 0;
    return failures >= runs ? 100 : (int64_t)failures * 100 / runs;
}

bool lemon_exceeds(const struct lemon *lemon, const struct lemon_settings *settings, enum lemon_signal signal)
{
    int64_t threshold = settings->thresholds[signal];
    return threshold > 0 && lemon_value(lemon, signal) >= threshold;
}

int64_t lemon_score(const struct lemon *lemon, const struct lemon_settings *settings)
{
    int64_t score = 0;
    for (int s = 0; s < LEMON_SIGNALS; s++) {
        int64_t threshold = settings->thresholds[s];
        int64_t share = threshold > 0 ? lemon_value(lemon, (enum lemon_signal)s) * 100 / threshold : 0;
        score += share < LEMON_SHARE_MAX ? share : LEMON_SHARE_MAX;
    }
    return score;
}

static bool judge(const struct lemon *lemon, const struct lemon_settings *settings)
{
    bool any = false;
    for (int s = 0; s < LEMON_SIGNALS; s++)
        any |= s != LEMON_SIGNAL_EXCLUSIONS && lemon_exceeds(lemon, settings, (enum lemon_signal)s);
    return any;
}

void lemon_describe(const struct lemon *lemon, const struct lemon_settings *settings, struct buf *out)
{
    size_t start = out->len;
    for (int s = 0; s < LEMON_SIGNALS; s++)
        if (lemon_exceeds(lemon, settings, (enum lemon_signal)s))
            buf_printf(out, "%s%s %lld (threshold %lld)", out->len > start ? ", " : "",
                       lemon_signal_name((enum lemon_signal)s),
                       (long long)lemon_value(lemon, (enum lemon_signal)s),
                       (long long)settings->thresholds[s]);
    bool exceeds = out->len > start;
    for (int s = 0; !exceeds && s < LEMON_SIGNALS; s++)
        if (lemon_value(lemon, (enum lemon_signal)s))
            buf_printf(out, "%s%s %lld", out->len > start ? ", " : "",
                       lemon_signal_name((enum lemon_signal)s),
                       (long long)lemon_value(lemon, (enum lemon_signal)s));
}

/* Removes records without entries. */
static void sweep(struct lemon_store *store)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->all.len; i++) {
        struct lemon *lemon = store->all.items[i];
        if (lemon->entries.len) {
            store->all.items[kept++] = lemon;
            continue;
        }
        CHECK(!lemon->is_lemon && !lemon->stirred);
        str_map_remove(&store->by_machine, lemon->machine);
        lemon_free(lemon);
    }
    store->all.len = kept;
    store->emptied = false;
}

bool lemon_next_verdict(struct step *step, struct lemon_verdict *ret_verdict)
{
    struct lemon_store *store = step->lemons;
    while (store->stirred.len > 0) {
        struct lemon *lemon = vec_pop(&store->stirred);
        CHECK(lemon->stirred);
        bool now = judge(lemon, &step->cluster->policy.lemons), turned = now != lemon->is_lemon;
        *ret_verdict = (struct lemon_verdict){lemon, turned, lemon->grew};
        lemon->stirred = lemon->grew = false;
        lemon->is_lemon = now;
        store->emptied |= lemon->entries.len == 0;
        if (turned) {
            lemon->since_ns = step->now_ns;
            lemon->changed_seq = step->seq;
        }
        if (turned || (now && ret_verdict->grew))
            return true;
    }
    if (store->emptied)
        sweep(store);
    return false;
}

/* --- snapshots -------------------------------------------------------------------------------- */

void lemon_visit(const struct lemon_store *store, void (*visit)(void *context, const struct lemon *lemon),
                 void *context)
{
    for (size_t i = 0; i < store->all.len; i++)
        visit(context, store->all.items[i]);
}

static bool in_order(const struct lemon *saved)
{
    for (size_t i = 0; i < saved->entries.len; i++) {
        const struct lemon_entry *entry = &saved->entries.items[i], *before = entry - 1;
        if (entry->day < 0 || entry->counter >= LEMON_COUNTERS || !entry->count)
            return false;
        if (i &&
            (entry->day < before->day || (entry->day == before->day && entry->counter <= before->counter)))
            return false;
    }
    return true;
}

bool lemon_restore(struct lemon_store *store, const struct lemon *saved)
{
    if (!saved->machine.len || saved->machine.len > NAME_MAX_BYTES || lemon_find(store, saved->machine) ||
        store->all.len >= MACHINES_MAX || saved->since_ns < 0 || !saved->entries.len ||
        saved->entries.len > (size_t)LEMON_COUNTERS * ENTRY_DAYS_MAX || !in_order(saved))
        return false;
    struct lemon *lemon = add(store, saved->machine);
    for (size_t i = 0; i < saved->entries.len; i++) {
        const struct lemon_entry *entry = &saved->entries.items[i];
        vec_push(&lemon->entries, *entry);
        lemon->totals[entry->counter] += entry->count;
        store->sums[entry->counter] += entry->count;
    }
    if (lemon->entries.len && lemon->entries.items[0].day < store->oldest_day)
        store->oldest_day = lemon->entries.items[0].day;
    lemon->is_lemon = saved->is_lemon;
    lemon->since_ns = saved->since_ns;
    lemon->changed_seq = saved->changed_seq;
    return true;
}

void lemon_check(const struct lemon_store *store)
{
    int64_t oldest_day = INT64_MAX, sums[LEMON_COUNTERS] = {0};
    CHECK(store->stirred.len == 0);
    for (size_t i = 0; i < store->all.len; i++) {
        const struct lemon *lemon = store->all.items[i];
        uint32_t totals[LEMON_COUNTERS] = {0};
        CHECK(lemon_find(store, lemon->machine) == lemon && in_order(lemon) && !lemon->stirred);
        for (size_t e = 0; e < lemon->entries.len; e++)
            totals[lemon->entries.items[e].counter] += lemon->entries.items[e].count;
        CHECK(memcmp(totals, lemon->totals, sizeof(totals)) == 0);
        for (int counter = 0; counter < LEMON_COUNTERS; counter++)
            sums[counter] += totals[counter];
        if (lemon->entries.len && lemon->entries.items[0].day < oldest_day)
            oldest_day = lemon->entries.items[0].day;
    }
    CHECK(oldest_day == store->oldest_day && memcmp(sums, store->sums, sizeof(sums)) == 0);
}
