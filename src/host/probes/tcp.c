/* tcp.c - the share of TCP segments that had to be retransmitted: /proc/net/snmp (RFC 4022: tcpRetransSegs
 * beside tcpOutSegs, which does not count them).
 *
 * A cable, port or switch that drops packets makes every collective slow, and shows nowhere else if its own
 * counters do not. A window ends with the first look at which it has enough segments to judge; the condition
 * begins with a window at or above the limit and ends with one below half of it.
 */
#include "host/probes/internal.h"

struct tcp {
    int64_t percent, segments;
    uint64_t sent, again; /* in this window */
};

static int start(struct probe *probe, struct error *error)
{
    struct tcp *tcp = probe->state = mem_alloc(sizeof *tcp);
    int rc = probe_setting(probe, "retransmitPercent", 1, 100, 5, &tcp->percent, error);
    return rc < 0 ? rc : probe_setting(probe, "minSegments", 1, 1000000000, 1000, &tcp->segments, error);
}

/* Takes the next line that begins with "Tcp: ", and returns its words after that. */
static bool take_line(struct str *rest, struct str *ret_words)
{
    for (struct str line, tail; str_cut(*rest, '\n', &line, &tail);) {
        *rest = tail;
        if (!str_starts(line, STR("Tcp: ")))
            continue;
        *ret_words = (struct str){line.data + 5, line.len - 5};
        return true;
    }
    return false;
}

static struct str take_word(struct str *rest)
{
    struct str word = *rest, tail = {0};
    str_cut(*rest, ' ', &word, &tail);
    *rest = tail;
    return word;
}

/* Finds a number by its name in two lines, one of names and one of numbers. */
static bool number_of(struct str names, struct str numbers, const char *wanted, uint64_t *ret_value)
{
    while (names.len > 0) {
        struct str name = take_word(&names), number = take_word(&numbers);
        if (str_is(name, wanted))
            return str_to_u64(number, ret_value);
    }
    return false;
}

static void run(struct probe *probe)
{
    struct tcp *tcp = probe->state;
    struct buf text BUF_CLEANUP = {0};
    uint64_t out, again;
    if (!file_read_all(probe->all, &text, 1 << 16, "/proc/net/snmp"))
        return;
    struct str rest = buf_str(&text), names, numbers;
    if (!take_line(&rest, &names) || !take_line(&rest, &numbers) ||
        !number_of(names, numbers, "OutSegs", &out) || !number_of(names, numbers, "RetransSegs", &again))
        return;
    tcp->sent += probe_delta(probe, "", "sent", out);
    tcp->again += probe_delta(probe, "", "again", again);
    double all = (double)tcp->sent + (double)tcp->again;
    if (all < (double)tcp->segments)
        return;
    double percent = 100.0 * (double)tcp->again / all;
    bool on = percent >= (double)tcp->percent ||
              (probe_is_on(probe, "net/retransmits", "") && percent * 2 >= (double)tcp->percent);
    probe_condition(probe, "net/retransmits", "", on, SEVERITY_MINOR,
                    "%.1f %% of %.0f TCP segments were sent again", percent, all);
    tcp->sent = tcp->again = 0;
}

const struct probe_kind probe_tcp = {.name = "tcp",
                                     .period_ns = 10 * NS_PER_SECOND,
                                     .cost_ns = 20 * NS_PER_MS,
                                     .keys = " retransmitPercent minSegments ",
                                     .start = start,
                                     .run = run};
