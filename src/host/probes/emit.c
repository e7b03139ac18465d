/* emit.c - turns findings into signals: conditions that begin and end, events that are reported once,
 * counters that are judged by their growth. */
#include "host/probes/internal.h"

#include <stdio.h>

enum { KEY_MAX = 320 };

struct condition { /* lasts */
    char *key;
    struct probe *probe;
    bool held; /* in a sweep */
    int64_t first_ns;
    enum signal_severity severity;
    struct str code, place; /* in `key` */
    char evidence[SIGNAL_EVIDENCE_MAX + 1];
};
struct queued { /* in the order of the round */
    struct signal signal;
    struct probe *probe;
    char code[SIGNAL_CODE_MAX + 1], place[SIGNAL_PLACE_MAX + 1], evidence[SIGNAL_EVIDENCE_MAX + 1];
};
struct recent { /* an event of the last PROBES_SAME_NS */
    char *key;
    int64_t first_ns, wall_ns; /* of the event; when it was reported */
    struct queued *queued;     /* while it is */
};
struct counter {
    char *key;
    uint64_t value, sum;
    bool begun;        /* value is of an earlier look */
    int64_t window_ns; /* when it began */
};

/* Makes printable ASCII of any bytes, without blanks at the ends and with a NUL. Returns its length. */
static size_t clean(char *ret_text, size_t max, struct str text)
{
    text = str_trim(text);
    size_t len = text.len < max ? text.len : max;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        ret_text[i] = c == '\n' || c == '\t' ? ' ' : c < 0x20 || c > 0x7e ? '?' : (char)c;
    }
    ret_text[len] = 0;
    return len;
}

struct probe_place place_of(const char *format, ...)
{
    struct probe_place place;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    clean(place.text, SIGNAL_PLACE_MAX, str_from(text));
    return place;
}

static struct str key_of(char ret_key[KEY_MAX], const char *a, const char *b, const char *c)
{
    int len = snprintf(ret_key, KEY_MAX, "%s %s%s%s", a, b, c ? "\n" : "", c ? c : "");
    return (struct str){ret_key, len < KEY_MAX ? (size_t)len : KEY_MAX - 1};
}

static char *copy_of(struct str key)
{
    char *copy = mem_alloc(key.len + 1);
    memcpy(copy, key.data, key.len);
    return copy;
}

int32_t emit_chip(struct probes *all, const char *place)
{
    if (all->gpu_count == 0 && strncmp(place, "gpu/", 4) == 0) /* the driver may have come after us */
        probes_find_gpus(all);
    const char *address = strncmp(place, "gpu/", 4) == 0 || strncmp(place, "pci/", 4) == 0 ? place + 4 : "";
    for (size_t i = 0; i < all->gpu_count; i++)
        if (strcmp(all->gpus[i], address) == 0)
            return (int32_t)i;
    return -1;
}

static struct queued *enqueue(struct probe *probe, const char *code, const char *place,
                              enum signal_assertion assertion, enum signal_severity severity, int64_t at_ns,
                              struct str evidence)
{
    struct probes *all = probe->all;
    struct queued *queued = mem_alloc(sizeof *queued);
    queued->probe = probe;
    struct signal *signal = &queued->signal;
    signal->code.len = clean(queued->code, SIGNAL_CODE_MAX, str_from(code));
    signal->place.len = clean(queued->place, SIGNAL_PLACE_MAX, str_from(place));
    signal->evidence.len = clean(queued->evidence, SIGNAL_EVIDENCE_MAX, evidence);
    signal->code.data = queued->code;
    signal->place.data = queued->place;
    signal->evidence.data = queued->evidence;
    signal->assertion = assertion;
    signal->severity = severity;
    signal->chip = emit_chip(all, queued->place);
    signal->first_ns = signal->last_ns = at_ns;
    signal->count = 1;
    CHECK(signal_is_valid(signal));
    vec_push(&all->queue, queued);
    probe->standing.said++;
    return queued;
}

/* --- conditions ----------------------------------------------------------------------------------- */

static struct condition *condition_find(const struct probes *all, const char *code, const char *place)
{
    char key[KEY_MAX];
    return str_map_get(&all->condition_map, key_of(key, code, place, NULL));
}

static void condition_end(struct probes *all, size_t index, const char *evidence)
{
    struct condition *condition = all->conditions.items[index];
    char code[SIGNAL_CODE_MAX + 1], place[SIGNAL_PLACE_MAX + 1];
    clean(code, SIGNAL_CODE_MAX, condition->code);
    clean(place, SIGNAL_PLACE_MAX, condition->place);
    enqueue(condition->probe, code, place, SIGNAL_RECOVER, condition->severity, all->wall_ns,
            str_from(evidence));
    condition->probe->standing.conditions--;
    str_map_remove(&all->condition_map, str_from(condition->key));
    vec_remove(&all->conditions, index);
    mem_free(condition->key);
    mem_free(condition);
}

static size_t condition_index(const struct probes *all, const struct condition *condition)
{
    size_t i = 0;
    while (all->conditions.items[i] != condition)
        i++;
    return i;
}

static void condition_begin(struct probe *probe, const char *code, const char *place,
                            enum signal_severity severity, const char *evidence)
{
    struct probes *all = probe->all;
    char key[KEY_MAX];
    if (all->conditions.len >= CONDITIONS_MAX) {
        probe->standing.unsaid++;
        return;
    }
    struct condition *condition = mem_alloc(sizeof *condition);
    condition->key = copy_of(key_of(key, code, place, NULL));
    condition->code = (struct str){condition->key, strlen(code)};
    condition->place = str_from(condition->key + strlen(code) + 1);
    condition->probe = probe;
    condition->severity = severity;
    condition->first_ns = all->wall_ns;
    condition->held = true;
    clean(condition->evidence, SIGNAL_EVIDENCE_MAX, str_from(evidence));
    vec_push(&all->conditions, condition);
    str_map_put(&all->condition_map, str_from(condition->key), condition);
    probe->standing.conditions++;
    enqueue(probe, code, place, SIGNAL_OCCUR, severity, all->wall_ns, str_from(evidence));
}

void probe_condition(struct probe *probe, const char *code, const char *place, bool on,
                     enum signal_severity severity, const char *evidence, ...)
{
    struct probes *all = probe->all;
    struct condition *condition = condition_find(all, code, place);
    char text[SIGNAL_EVIDENCE_MAX + 1];
    if (!on && !condition)
        return;
    va_list args;
    va_start(args, evidence);
    vsnprintf(text, sizeof text, evidence, args);
    va_end(args);
    if (condition && on && severity == condition->severity) {
        condition->held = true;
    } else if (condition && on && severity > condition->severity) { /* reported again: it became worse */
        condition->held = true;
        condition->severity = severity;
        clean(condition->evidence, SIGNAL_EVIDENCE_MAX, str_from(text));
        enqueue(probe, code, place, SIGNAL_OCCUR, severity, all->wall_ns, str_from(text));
    } else {
        if (condition)
            condition_end(all, condition_index(all, condition), text);
        if (on)
            condition_begin(probe, code, place, severity, text);
    }
}

bool probe_is_on(const struct probe *probe, const char *code, const char *place)
{
    return condition_find(probe->all, code, place) != NULL;
}

void probe_sweep_begin(struct probe *probe)
{
    for (size_t i = 0; i < probe->all->conditions.len; i++)
        if (probe->all->conditions.items[i]->probe == probe)
            probe->all->conditions.items[i]->held = false;
}

void probe_keep(struct probe *probe, const char *code, const char *place)
{
    struct condition *condition = condition_find(probe->all, code, place);
    if (condition)
        condition->held = true;
}

void probe_sweep_end(struct probe *probe)
{
    struct probes *all = probe->all;
    for (size_t i = all->conditions.len; i-- > 0;)
        if (all->conditions.items[i]->probe == probe && !all->conditions.items[i]->held)
            condition_end(all, i, "not seen any more");
}

void probes_conditions(struct probes *all, probes_sink *sink, void *context)
{
    for (size_t i = 0; i < all->conditions.len; i++) {
        const struct condition *condition = all->conditions.items[i];
        struct signal signal = {.code = condition->code,
                                .place = condition->place,
                                .evidence = str_from(condition->evidence),
                                .assertion = SIGNAL_OCCUR,
                                .severity = condition->severity,
                                .chip = emit_chip(all, condition->place.data),
                                .first_ns = condition->first_ns,
                                .last_ns = condition->first_ns,
                                .count = 1};
        all->speaking = condition->probe->kind->name;
        sink(context, &signal);
    }
}

/* --- events --------------------------------------------------------------------------------------- */

static uint32_t sum_of(uint32_t a, uint64_t b)
{
    return b > UINT32_MAX - a ? UINT32_MAX : a + (uint32_t)b;
}

void probe_once(struct probe *probe, const char *code, const char *place, enum signal_severity severity,
                int64_t at_ns, uint64_t count, struct str evidence)
{
    struct probes *all = probe->all;
    char text[KEY_MAX];
    struct str key = key_of(text, code, place, NULL);
    struct recent *recent = str_map_get(&all->recent_map, key);
    int64_t apart;
    bool same = recent && !__builtin_sub_overflow(at_ns, recent->first_ns, &apart) &&
                apart < PROBES_SAME_NS && apart > -PROBES_SAME_NS;
    if (same && recent->queued) {
        struct signal *signal = &recent->queued->signal;
        signal->count = sum_of(signal->count, count);
        signal->first_ns = at_ns < signal->first_ns ? at_ns : signal->first_ns;
        signal->last_ns = at_ns > signal->last_ns ? at_ns : signal->last_ns;
        probe->standing.unsaid += count;
        return;
    }
    if (same) {
        probe->standing.unsaid += count;
        return;
    }
    if (!recent) {
        recent = mem_alloc(sizeof *recent);
        recent->key = copy_of(key);
        vec_push(&all->recents, recent);
        str_map_put(&all->recent_map, str_from(recent->key), recent);
    }
    recent->first_ns = at_ns;
    recent->wall_ns = all->wall_ns;
    recent->queued = enqueue(probe, code, place, SIGNAL_ONCE, severity, at_ns, evidence);
    recent->queued->signal.count = sum_of(0, count > 0 ? count : 1);
}

void probe_oncef(struct probe *probe, const char *code, const char *place, enum signal_severity severity,
                 uint64_t count, const char *evidence, ...)
{
    char text[SIGNAL_EVIDENCE_MAX + 1];
    va_list args;
    va_start(args, evidence);
    vsnprintf(text, sizeof text, evidence, args);
    va_end(args);
    probe_once(probe, code, place, severity, probe->all->wall_ns, count, str_from(text));
}

/* Forgets events that are too old to match another, which bounds the number kept by the events of that
 * time. */
static void forget_recents(struct probes *all)
{
    for (size_t i = all->recents.len; i-- > 0;) {
        struct recent *recent = all->recents.items[i];
        recent->queued = NULL;
        int64_t age = all->wall_ns - recent->wall_ns;
        if (age >= 0 && age < 2 * PROBES_SAME_NS)
            continue;
        str_map_remove(&all->recent_map, str_from(recent->key));
        mem_free(recent->key);
        mem_free(recent);
        all->recents.items[i] = vec_last(&all->recents);
        all->recents.len--;
    }
}

void emit_flush(struct probes *all, probes_sink *sink, void *context)
{
    for (size_t i = 0; i < all->queue.len; i++) {
        all->speaking = all->queue.items[i]->probe->kind->name;
        if (sink)
            sink(context, &all->queue.items[i]->signal);
        mem_free(all->queue.items[i]);
    }
    vec_clear(&all->queue);
    forget_recents(all);
}

/* --- counters ------------------------------------------------------------------------------------- */

static struct counter *counter_get(struct probe *probe, const char *place, const char *name, bool make)
{
    struct probes *all = probe->all;
    char text[KEY_MAX];
    struct str key = key_of(text, probe->kind->name, place, name);
    struct counter *counter = str_map_get(&all->counter_map, key);
    if (counter || !make)
        return counter;
    if (all->counters.len >= COUNTERS_MAX) /* never on a real machine: start again rather than grow */
        return NULL;
    counter = mem_alloc(sizeof *counter);
    counter->key = copy_of(key);
    vec_push(&all->counters, counter);
    str_map_put(&all->counter_map, str_from(counter->key), counter);
    return counter;
}

uint64_t probe_delta(struct probe *probe, const char *place, const char *name, uint64_t value)
{
    struct counter *counter = counter_get(probe, place, name, true);
    if (!counter)
        return 0;
    uint64_t delta = counter->begun && value > counter->value ? value - counter->value : 0;
    counter->value = value;
    counter->begun = true;
    return delta;
}

uint64_t probe_window(struct probe *probe, const char *place, const char *name, uint64_t add,
                      uint64_t threshold, int64_t window_ns)
{
    char with[160];
    if (add == 0)
        return 0;
    snprintf(with, sizeof with, "%s window", name);
    struct counter *counter = counter_get(probe, place, with, true);
    if (!counter)
        return 0;
    int64_t now_ns = probe->all->now_ns;
    if (!counter->begun || now_ns - counter->window_ns >= window_ns) {
        counter->begun = true;
        counter->sum = 0;
        counter->window_ns = now_ns;
    }
    if (__builtin_add_overflow(counter->sum, add, &counter->sum))
        counter->sum = UINT64_MAX;
    uint64_t sum = counter->sum;
    if (sum < threshold)
        return 0;
    counter->begun = false;
    return sum;
}

bool probe_seen(struct probe *probe, const char *place, const char *name)
{
    struct counter *counter = counter_get(probe, place, name, false);
    return counter && counter->begun;
}

void probe_see(struct probe *probe, const char *place, const char *name)
{
    struct counter *counter = counter_get(probe, place, name, true);
    if (counter)
        counter->begun = true;
}

void probe_unsee(struct probe *probe, const char *place, const char *name)
{
    struct counter *counter = counter_get(probe, place, name, false);
    if (counter)
        counter->begun = false;
}

void emit_done(struct probes *all)
{
    emit_flush(all, NULL, NULL);
    for (size_t i = 0; i < all->conditions.len; i++) {
        mem_free(all->conditions.items[i]->key);
        mem_free(all->conditions.items[i]);
    }
    for (size_t i = 0; i < all->recents.len; i++) {
        mem_free(all->recents.items[i]->key);
        mem_free(all->recents.items[i]);
    }
    for (size_t i = 0; i < all->counters.len; i++) {
        mem_free(all->counters.items[i]->key);
        mem_free(all->counters.items[i]);
    }
    vec_done(&all->queue);
    vec_done(&all->conditions);
    vec_done(&all->recents);
    vec_done(&all->counters);
    str_map_done(&all->condition_map);
    str_map_done(&all->recent_map);
    str_map_done(&all->counter_map);
}

/* --- facts ---------------------------------------------------------------------------------------- */

void fact_put(struct buf *facts, const char *place, const char *name, const char *format, ...)
{
    buf_printf(facts, "%s\t%s\t", place, name);
    size_t start = facts->len;
    va_list args;
    va_start(args, format);
    buf_vprintf(facts, format, args);
    va_end(args);
    for (size_t i = start; i < facts->len; i++)
        if ((unsigned char)facts->data[i] < 0x20)
            facts->data[i] = ' ';
    buf_add_char(facts, '\n');
}

bool fact_next(struct str *rest, struct fact *ret_fact)
{
    struct str line, tail, place, name, value;
    while (str_cut(*rest, '\n', &line, &tail)) {
        *rest = tail;
        if (str_cut(line, '\t', &place, &tail) && str_cut(tail, '\t', &name, &value)) {
            *ret_fact = (struct fact){place, name, value};
            return true;
        }
    }
    return false;
}
