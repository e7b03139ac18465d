#include "core/health/sender.h"

#include "core/health/internal.h"

/* Returns the index of the name, or where it would be inserted. */
static size_t place_of(const struct health *health, struct str name)
{
    size_t low = 0, high = health->senders.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_compare(health->senders.items[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sender *find(const struct health *health, struct str name)
{
    size_t place = place_of(health, name);
    bool found = place < health->senders.len && str_equal(health->senders.items[place]->name, name);
    return found ? health->senders.items[place] : NULL;
}

static void free_sender(struct sender *sender)
{
    CHECK(sender->faults == 0 && sender->open == 0); /* faults point to it */
    mem_free((char *)sender->name.data);
    mem_free(sender);
}

static bool is_idle(const struct sender *sender, int64_t now_ns)
{
    return sender->faults == 0 && sender->busy_ns <= now_ns;
}

static void forget_idle(struct health *health, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < health->senders.len; i++) {
        struct sender *sender = health->senders.items[i];
        if (is_idle(sender, now_ns))
            free_sender(sender);
        else
            health->senders.items[kept++] = sender;
    }
    health->senders.len = kept;
}

static struct sender *add(struct health *health, struct str name)
{
    struct sender *sender = mem_alloc(sizeof(*sender));
    char *text = mem_alloc(name.len + 1);
    size_t place = place_of(health, name);
    CHECK(name.len > 0 && health->senders.len < SENDERS_MAX);
    CHECK(place == health->senders.len || !str_equal(health->senders.items[place]->name, name));
    mem_copy(text, name.data, name.len);
    sender->name = (struct str){text, name.len};
    vec_push(&health->senders, sender);
    memmove(&health->senders.items[place + 1], &health->senders.items[place],
            (health->senders.len - 1 - place) * sizeof(sender));
    health->senders.items[place] = sender;
    return sender;
}

struct sender *sender_need(struct health *health, struct str name, int64_t now_ns)
{
    struct sender *sender = find(health, name);
    if (sender)
        return sender;
    if (health->senders.len >= SENDERS_MAX)
        forget_idle(health, now_ns);
    return health->senders.len < SENDERS_MAX ? add(health, name) : NULL;
}

void senders_free(struct health *health)
{
    for (size_t i = 0; i < health->senders.len; i++)
        free_sender(health->senders.items[i]);
    vec_done(&health->senders);
}

/* --- limits --------------------------------------------------------------------------------------------- */

static int64_t step_ns(const struct fault_public *limits)
{
    CHECK(limits->per_second > 0 && limits->per_second <= FAULT_PUBLIC_MAX);
    return NS_PER_SECOND / limits->per_second;
}

void sender_charge(struct sender *sender, const struct fault_table *table, int64_t now_ns)
{
    int64_t from_ns = sender->busy_ns > now_ns ? sender->busy_ns : now_ns;
    sender->busy_ns = from_ns + step_ns(fault_table_public(table));
    CHECK(sender->busy_ns > now_ns);
}

static bool names(const struct str *list, size_t count, struct str text)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(list[i], text))
            return true;
    return count == 0;
}

/* Whether the sender may report this code ("family/name"). Its list may contain a family with a slash and a
 * star. */
static bool names_code(const struct fault_sender *allowed, struct str code)
{
    for (size_t i = 0; i < allowed->code_count; i++) {
        struct str rule = allowed->codes[i];
        bool family = str_ends(rule, STR("/*"));
        if (str_equal(rule, code) || (family && str_starts(code, (struct str){rule.data, rule.len - 1})))
            return true;
    }
    return allowed->code_count == 0;
}

static enum sender_verdict judge_name(const struct fault_public *limits, const struct sighting *sighting)
{
    enum sender_verdict verdict = SENDER_UNKNOWN;
    if (!limits->listed)
        return SENDER_MAY;
    for (size_t i = 0; i < limits->sender_count; i++) {
        const struct fault_sender *allowed = &limits->senders[i];
        if (!str_equal(allowed->name, sighting->sender) ||
            !names(allowed->users, allowed->user_count, sighting->user))
            continue;
        if (names_code(allowed, sighting->signal->code))
            return SENDER_MAY;
        verdict = SENDER_OTHER_CODE;
    }
    return verdict;
}

/* Whether the report would open a fault. A report about an open fault does not count against the limits. */
static bool opens(const struct health *health, const struct sighting *sighting)
{
    const struct signal *signal = sighting->signal;
    const struct fault *fault = store_find(health, sighting->machine, signal->code, signal->place);
    return signal->assertion != SIGNAL_RECOVER && !(fault && fault->open);
}

enum sender_verdict sender_judge(const struct health *health, const struct sighting *sighting, int64_t now_ns,
                                 int64_t *ret_wait_ns)
{
    const struct fault_public *limits = fault_table_public(health->table);
    const struct sender *sender = find(health, sighting->sender);
    enum sender_verdict verdict = judge_name(limits, sighting);
    if (verdict != SENDER_MAY)
        return verdict;
    CHECK(limits->burst > 0);
    int64_t ahead_ns = sender && sender->busy_ns > now_ns ? sender->busy_ns - now_ns : 0;
    int64_t room_ns = step_ns(limits) * (limits->burst - 1);
    if (ahead_ns > room_ns) {
        *ret_wait_ns = ahead_ns - room_ns;
        return SENDER_TOO_FAST;
    }
    bool room = sender || health->senders.len < SENDERS_MAX;
    uint64_t open = 0;
    for (size_t i = 0; i < health->senders.len; i++) {
        open += health->senders.items[i]->open;
        room = room || is_idle(health->senders.items[i], now_ns);
    }
    bool more = opens(health, sighting);
    if (more && sender && sender->open >= limits->per_sender)
        return SENDER_TOO_MANY;
    return !room || (more && open >= limits->total) ? SENDERS_TOO_MANY : SENDER_MAY;
}

/* --- for snapshots -------------------------------------------------------------------------------------- */

void sender_visit(const struct health *health, void (*visit)(void *context, const struct sender *sender),
                  void *context)
{
    for (size_t i = 0; i < health->senders.len; i++)
        visit(context, health->senders.items[i]);
}

bool sender_restore(struct health *health, struct str name, int64_t busy_ns)
{
    struct sender *sender = find(health, name); /* faults may have been restored before their sender */
    if (!name.len || name.len > SENDER_NAME_MAX || (sender && sender->busy_ns) ||
        (!sender && health->senders.len >= SENDERS_MAX))
        return false;
    if (!sender)
        sender = add(health, name);
    sender->busy_ns = busy_ns;
    return true;
}
