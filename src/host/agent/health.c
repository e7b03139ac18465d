/* health.c - the machine's probes (host/probes/probes.h) on the agent's loop: their signals are fed to the
 * agent.
 *
 * The state directory keeps two lines of knowledge across restarts of the agent: "health" has the lasting
 * conditions and the position in the kernel log. A condition that lasted then, but is not seen in the next
 * agent's first complete round of probes, has ended. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "host/probes/probes.h"

/* A first round that has not ended by then counts as complete: a probe that hangs is a condition itself. */
#define FIRST_LOOK_NS (60 * NS_PER_SECOND)

struct condition {
    struct buf code, place;
};

struct health_watch {
    struct live *live;
    struct probes *probes;
    uv_poll_t poll;
    uv_timer_t timer;
    int open_handles;
    char path[PATH_BYTES + 16];
    /* Conditions that lasted when the last agent ended; empty after the first round. */
    VEC(struct condition) before;
    int64_t begun_ns;
    bool looked;
    int64_t again_ns;   /* since when a new run of all probes is awaited; 0: none is */
    struct buf written; /* contents of the file */
};

/* --- signals ------------------------------------------------------------------------------------------- */

/* Makes UTF-8 for the controller of a text from the kernel log, which may hold any byte. */
static struct str clean(struct str text, char ret_bytes[SIGNAL_EVIDENCE_MAX])
{
    size_t len = 0, at = 0;
    while (at < text.len && len < SIGNAL_EVIDENCE_MAX) {
        size_t size = str_utf8_len(text.data + at, text.len - at);
        bool plain = size > 0 && text.data[at] != 0;
        if (size > SIGNAL_EVIDENCE_MAX - len)
            break;
        if (plain)
            memcpy(ret_bytes + len, text.data + at, size);
        else
            ret_bytes[len] = '?';
        len += plain ? size : 1;
        at += size > 0 ? size : 1;
    }
    return (struct str){ret_bytes, len};
}

static void on_signal(void *context, const struct signal *signal)
{
    struct health_watch *watch = context;
    char evidence[SIGNAL_EVIDENCE_MAX];
    struct signal copy = *signal;
    copy.evidence = clean(signal->evidence, evidence);
    if (signal_is_valid(&copy))
        local_saw(watch->live, &copy);
    else
        local_note(watch->live->machine, STR("a probe said something that is no signal"));
}

/* --- what stood before ---------------------------------------------------------------------------------- */

static void add_condition(void *context, const struct signal *signal)
{
    buf_printf(context, STR_FORMAT " " STR_FORMAT "\n", STR_ARG(signal->code), STR_ARG(signal->place));
}

static void save(struct health_watch *watch)
{
    char position[PROBES_POSITION_MAX], fresh[sizeof watch->path + 8];
    struct buf text BUF_CLEANUP = {0};
    if (!watch->looked)
        return;
    probes_position(watch->probes, position);
    buf_printf(&text, "log %s\n", position);
    probes_conditions(watch->probes, add_condition, &text);
    if (str_equal(buf_str(&text), buf_str(&watch->written)))
        return;
    snprintf(fresh, sizeof fresh, "%s.new", watch->path);
    FILE *file = fopen(fresh, "we");
    bool whole = file && fwrite(text.data, 1, text.len, file) == text.len;
    if (file && fclose(file) == 0 && whole && rename(fresh, watch->path) == 0) {
        buf_clear(&watch->written);
        buf_add_str(&watch->written, buf_str(&text));
    }
}

static void take_line(struct health_watch *watch, struct str line, char ret_position[PROBES_POSITION_MAX])
{
    struct str head, tail;
    if (!str_cut(line, ' ', &head, &tail))
        return;
    if (str_is(head, "log")) {
        snprintf(ret_position, PROBES_POSITION_MAX, STR_FORMAT, STR_ARG(tail));
        return;
    }
    struct condition condition = {0};
    buf_add_str(&condition.code, head);
    buf_add_str(&condition.place, tail);
    vec_push(&watch->before, condition);
}

static void load(struct health_watch *watch, char ret_position[PROBES_POSITION_MAX])
{
    enum { TEXT_MAX = 64 * 1024 };
    char *text = mem_alloc(TEXT_MAX);
    FILE *file = fopen(watch->path, "re");
    struct str rest = {text, file ? fread(text, 1, TEXT_MAX, file) : 0}, line;
    if (file)
        fclose(file);
    while (str_cut(rest, '\n', &line, &rest))
        take_line(watch, line, ret_position);
    mem_free(text);
}

struct search {
    const struct condition *condition;
    bool found;
};

static void compare(void *context, const struct signal *signal)
{
    struct search *search = context;
    search->found = search->found || (str_equal(signal->code, buf_str(&search->condition->code)) &&
                                      str_equal(signal->place, buf_str(&search->condition->place)));
}

static void forget_before(struct health_watch *watch)
{
    for (size_t i = 0; i < watch->before.len; i++) {
        buf_done(&watch->before.items[i].code);
        buf_done(&watch->before.items[i].place);
    }
    vec_done(&watch->before);
}

/* Ends the conditions of the last agent that were not seen in the first round, which is complete. */
static void end_first_look(struct health_watch *watch)
{
    watch->looked = true;
    for (size_t i = 0; i < watch->before.len; i++) {
        struct search search = {.condition = &watch->before.items[i]};
        probes_conditions(watch->probes, compare, &search);
        if (search.found)
            continue;
        int64_t now_ns = local_wall_ns();
        struct signal over = {.code = buf_str(&search.condition->code),
                              .place = buf_str(&search.condition->place),
                              .evidence = STR("not seen any more by a new agent"),
                              .assertion = SIGNAL_RECOVER,
                              .severity = SEVERITY_NOTICE,
                              .chip = -1,
                              .first_ns = now_ns,
                              .last_ns = now_ns,
                              .count = 1};
        on_signal(watch, &over);
    }
    forget_before(watch);
}

/* --- the loop ------------------------------------------------------------------------------------------- */

static void on_due(uv_timer_t *timer);

static void wake_at(struct health_watch *watch, int64_t at_ns)
{
    int64_t wait_ns = at_ns - local_boot_ns();
    uv_update_time(watch->live->machine->host->loop);
    uv_timer_start(&watch->timer, on_due, wait_ns > 0 ? (uint64_t)((wait_ns + NS_PER_MS - 1) / NS_PER_MS) : 1,
                   0);
}

static void look(struct health_watch *watch)
{
    int64_t now_ns = local_boot_ns();
    probes_round(watch->probes, now_ns, on_signal, watch);
    if (!watch->looked && (!probes_busy(watch->probes) || now_ns - watch->begun_ns > FIRST_LOOK_NS))
        end_first_look(watch);
    if (watch->again_ns && (!probes_busy(watch->probes) || now_ns - watch->again_ns > FIRST_LOOK_NS)) {
        watch->again_ns = 0;
        probes_conditions(watch->probes, on_signal, watch);
    }
    save(watch);
    wake_at(watch, probes_next_ns(watch->probes));
}

static void on_due(uv_timer_t *timer)
{
    look(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    look(poll->data);
}

void local_health_say_again(struct live *live)
{
    struct health_watch *watch = live->health;
    if (!watch)
        return;
    watch->again_ns = local_boot_ns();
    probes_hurry(watch->probes);
    wake_at(watch, watch->again_ns);
}

void local_health_clock(struct live *live, int64_t ahead_ns, int64_t error_ns)
{
    if (!live->health)
        return;
    probes_clock_offset(live->health->probes, ahead_ns, error_ns);
    wake_at(live->health, probes_next_ns(live->health->probes));
}

int local_health_new(struct live *live, const struct agent_host_options *options, struct error *error)
{
    struct agent_host *host = live->machine->host;
    if (!options->probes)
        return 0;
    struct health_watch *watch = mem_alloc(sizeof *watch);
    char position[PROBES_POSITION_MAX] = "";
    watch->live = live;
    watch->begun_ns = local_boot_ns();
    snprintf(watch->path, sizeof watch->path, "%s/health", live->directory);
    load(watch, position);
    struct probes_options probes = {
        .root = options->probes_root, .settings = options->probe_settings, .resume = position};
    watch->probes = probes_new(&probes, error);
    if (!watch->probes) {
        forget_before(watch);
        mem_free(watch);
        return ERROR_INVALID;
    }
    uv_timer_init(host->loop, &watch->timer);
    CHECK(uv_poll_init(host->loop, &watch->poll, probes_fd(watch->probes)) == 0);
    watch->timer.data = watch->poll.data = watch;
    watch->open_handles = 2;
    uv_poll_start(&watch->poll, UV_READABLE, on_readable);
    uv_timer_start(&watch->timer, on_due, 0, 0);
    live->health = watch;
    host->open_parts++;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct health_watch *watch = handle->data;
    if (--watch->open_handles > 0)
        return;
    struct agent_host *host = watch->live->machine->host;
    probes_free(watch->probes); /* its descriptor was polled until now */
    forget_before(watch);
    buf_done(&watch->written);
    mem_free(watch);
    local_part_closed(host);
}

const struct probes *local_health_probes(const struct live *live)
{
    return live->health ? live->health->probes : NULL;
}

void local_health_close(struct live *live)
{
    struct health_watch *watch = live->health;
    if (!watch)
        return;
    live->health = NULL;
    uv_close((uv_handle_t *)&watch->poll, on_closed);
    uv_close((uv_handle_t *)&watch->timer, on_closed);
}
