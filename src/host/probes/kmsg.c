/* kmsg.c - reads the kernel log: records of /dev/kmsg ("pri,seq,usec,flags;text"), or, below a root, a plain
 * file of such records or of dmesg's lines to which others append.
 *
 * The first start reads from "now" on, later ones from the last position. A reader that is too slow loses the
 * oldest records (EPIPE); "os/log-lost" reports how many, by the gap in the sequence numbers. Any process
 * that may write to /dev/kmsg could pretend to be a driver: the kernel marks such records with a facility
 * other than its own, and they count only with `userspace: true`.
 */
#include "host/probes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_MAX = 16384, RECORDS_PER_RUN = 2000, FILE_BYTES_PER_RUN = 4 * 1024 * 1024 };

struct kmsg {
    int fd; /* -1: none yet */
    bool device, watched, userspace, begun, anchored;
    char boot[40];
    uint64_t next_seq; /* expected; with `begun` */
    int64_t offset;    /* of a file */
    int64_t anchor_ns; /* wall clock at the log's zero */
    struct buf rest;   /* of a file: the line that has no end yet */
};

/* --- lines ---------------------------------------------------------------------------------------- */

enum { LINE_PLAIN, LINE_RECORD, LINE_UPTIME, LINE_DATE };
struct line {
    int form;
    uint64_t priority, seq, usec;
    int64_t wall_ns; /* LINE_DATE */
    struct str text;
};

static bool parse_record(struct str line, struct line *ret)
{
    struct str head, text, fields[3], rest;
    if (!str_cut(line, ';', &head, &text))
        return false;
    for (int i = 0; i < 3; i++) {
        if (!str_cut(head, ',', &fields[i], &rest))
            return false;
        head = rest;
    }
    if (!str_to_u64(fields[0], &ret->priority) || !str_to_u64(fields[1], &ret->seq) ||
        !str_to_u64(fields[2], &ret->usec) || ret->usec > INT64_MAX / 2000)
        return false;
    ret->form = LINE_RECORD;
    str_cut(text, '\n', &text, &rest); /* the device's names follow */
    ret->text = text;
    return true;
}

/* Parses "Sun Feb 23 16:24:18 2025", taken as UTC. */
static bool parse_date(struct str date, int64_t *ret_ns)
{
    char text[40];
    struct tm parts = {0};
    if (date.len >= sizeof text)
        return false;
    memcpy(text, date.data, date.len);
    text[date.len] = 0;
    const char *end = strptime(text, "%a %b %d %H:%M:%S %Y", &parts);
    if (!end || *end || parts.tm_year < 70 || parts.tm_year > 300)
        return false;
    *ret_ns = (int64_t)timegm(&parts) * NS_PER_SECOND;
    return true;
}

/* Parses "[ 12.345678] text" and "[Sun Feb 23 16:24:18 2025] text". */
static bool parse_dmesg(struct str line, struct line *ret)
{
    struct str stamp, text, seconds, fraction;
    uint64_t whole, part;
    if (line.len < 2 || line.data[0] != '[')
        return false;
    line = (struct str){line.data + 1, line.len - 1};
    if (!str_cut(line, ']', &stamp, &text))
        return false;
    ret->text = text;
    ret->form = LINE_DATE;
    if (parse_date(stamp, &ret->wall_ns))
        return true;
    ret->form = LINE_UPTIME;
    if (!str_cut(str_trim(stamp), '.', &seconds, &fraction) || fraction.len != 6 ||
        !str_to_u64(seconds, &whole) || !str_to_u64(fraction, &part) || whole > 10000000000)
        return false;
    ret->usec = whole * 1000000 + part;
    return true;
}

static struct line parse(struct str text)
{
    struct line line = {0};
    if (!parse_record(text, &line) && !parse_dmesg(text, &line))
        line = (struct line){.form = LINE_PLAIN, .text = text};
    return line;
}

/* --- where it stands ------------------------------------------------------------------------------ */

static void watch(struct probe *probe, bool on)
{
    struct kmsg *kmsg = probe->state;
    struct epoll_event event = {.events = EPOLLIN};
    if (kmsg->device && kmsg->fd >= 0 && kmsg->watched != on)
        epoll_ctl(probe->all->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, kmsg->fd, &event);
    kmsg->watched = on;
}

/* Reads to the end of the device, the only way to learn the number of the next record. */
static void pass_over(struct kmsg *kmsg)
{
    char record[RECORD_MAX];
    for (;;) {
        ssize_t len = read(kmsg->fd, record, sizeof record);
        struct line line = {0};
        if (len == 0 || (len < 0 && errno != EPIPE && errno != EINTR))
            return;
        if (len > 0 && parse_record((struct str){record, (size_t)len}, &line)) {
            kmsg->next_seq = line.seq + 1;
            kmsg->begun = true;
        }
    }
}

/* Opens the log. `seek`, at the first start: goes to the end, unless the log is wanted from its start. */
static bool open_log(struct probe *probe, bool seek)
{
    struct kmsg *kmsg = probe->state;
    struct stat about;
    char path[1024];
    if (!file_path(probe->all, path, sizeof path, "/dev/kmsg"))
        return false;
    kmsg->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (kmsg->fd < 0 || fstat(kmsg->fd, &about) < 0) {
        snprintf(probe->note, sizeof probe->note, "/dev/kmsg: %s", strerror(errno));
        return false;
    }
    probe->note[0] = 0;
    kmsg->device = S_ISCHR(about.st_mode);
    if (seek && kmsg->device)
        pass_over(kmsg);
    else if (seek)
        kmsg->offset = about.st_size;
    watch(probe, true);
    probe->all->log_works = true;
    return true;
}

static int start(struct probe *probe, struct error *error)
{
    struct kmsg *kmsg = probe->state = mem_alloc(sizeof *kmsg);
    const struct doc *userspace = doc_get(probe->settings, "userspace");
    const char *resume = probe->all->options.resume;
    struct text boot;
    kmsg->fd = -1;
    if (userspace && userspace->kind != DOC_BOOL)
        return error_set(error, ERROR_INVALID, "userspace: expected true or false");
    kmsg->userspace = doc_bool(userspace, false);
    if (file_read(probe->all, &boot, "/proc/sys/kernel/random/boot_id"))
        snprintf(kmsg->boot, sizeof kmsg->boot, "%.36s", boot.data);
    size_t len = strlen(kmsg->boot);
    bool resumed = resume && len > 0 && strncmp(resume, kmsg->boot, len) == 0 && resume[len] == ' ' &&
                   str_to_u64(str_from(resume + len + 1), &kmsg->next_seq);
    kmsg->begun = resumed;
    if (probe->enabled)
        open_log(probe, !resumed && !probe->all->options.log_from_start);
    return 0;
}

static int64_t mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* --- records and lines ---------------------------------------------------------------------------- */

static void take(struct probe *probe, const struct line *line)
{
    struct kmsg *kmsg = probe->state;
    int64_t at_ns = probe->all->wall_ns;
    if (line->form == LINE_DATE)
        at_ns = line->wall_ns;
    else if (line->form != LINE_PLAIN)
        at_ns = kmsg->anchor_ns + (int64_t)line->usec * NS_PER_US;
    if (kmsg->device && at_ns > probe->all->wall_ns)
        at_ns = probe->all->wall_ns;
    bool kernel = kmsg->userspace || line->form != LINE_RECORD || line->priority >> 3 == 0;
    kmsg_judge(probe, line->text, at_ns, kernel);
}

/* --- the device ----------------------------------------------------------------------------------- */

static void take_record(struct probe *probe, struct str text)
{
    struct kmsg *kmsg = probe->state;
    struct line line = {0};
    if (!parse_record(text, &line) || (kmsg->begun && line.seq < kmsg->next_seq))
        return;
    if (kmsg->begun && line.seq > kmsg->next_seq)
        probe_oncef(probe, "os/log-lost", "", SEVERITY_NOTICE, line.seq - kmsg->next_seq,
                    "%llu records of the kernel log were overwritten before they were read",
                    (unsigned long long)(line.seq - kmsg->next_seq));
    kmsg->begun = true;
    kmsg->next_seq = line.seq + 1;
    take(probe, &line);
}

static void run_device(struct probe *probe)
{
    struct kmsg *kmsg = probe->state;
    char record[RECORD_MAX];
    kmsg->anchor_ns = probe->all->wall_ns - mono_ns();
    for (int i = 0; i < RECORDS_PER_RUN; i++) {
        ssize_t len = read(kmsg->fd, record, sizeof record);
        if (len > 0)
            take_record(probe, (struct str){record, (size_t)len});
        else if (len < 0 && (errno == EPIPE || errno == EINTR || errno == EINVAL))
            continue; /* overwritten: the next record is the oldest one left */
        else
            return;
    }
}

/* --- a file --------------------------------------------------------------------------------------- */

/* Reads the file's new bytes, which follow an unfinished line of the last time. */
static void read_more(struct kmsg *kmsg)
{
    struct stat about;
    if (fstat(kmsg->fd, &about) < 0 || !S_ISREG(about.st_mode))
        return;
    if (about.st_size < kmsg->offset) { /* the file was started again */
        kmsg->offset = 0;
        buf_clear(&kmsg->rest);
    }
    for (size_t taken = 0; taken < FILE_BYTES_PER_RUN;) {
        buf_reserve(&kmsg->rest, RECORD_MAX);
        ssize_t len = pread(kmsg->fd, kmsg->rest.data + kmsg->rest.len, RECORD_MAX, kmsg->offset);
        if (len <= 0)
            break;
        kmsg->rest.len += (size_t)len;
        kmsg->offset += len;
        taken += (size_t)len;
    }
    buf_add_char(&kmsg->rest, 0);
    kmsg->rest.len--;
}

static void run_file(struct probe *probe)
{
    struct kmsg *kmsg = probe->state;
    struct str rest, head, tail;
    read_more(kmsg);
    rest = buf_str(&kmsg->rest);
    /* The newest line of the first read is taken to be of now. */
    while (!kmsg->anchored && str_cut(rest, '\n', &head, &tail)) {
        struct line line = parse(head);
        if (line.form == LINE_RECORD || line.form == LINE_UPTIME)
            kmsg->anchor_ns = probe->all->wall_ns - (int64_t)line.usec * NS_PER_US;
        rest = tail;
    }
    kmsg->anchored = kmsg->anchored || kmsg->anchor_ns != 0;
    for (rest = buf_str(&kmsg->rest); str_cut(rest, '\n', &head, &tail); rest = tail) {
        struct line line = parse(head);
        take(probe, &line);
    }
    buf_drop_front(&kmsg->rest, kmsg->rest.len - rest.len);
    if (kmsg->rest.len > RECORD_MAX)
        buf_clear(&kmsg->rest);
}

/* -------------------------------------------------------------------------------------------------- */

static void run(struct probe *probe)
{
    struct kmsg *kmsg = probe->state;
    if (kmsg->fd < 0 && !open_log(probe, false))
        return;
    watch(probe, true);
    if (kmsg->device)
        run_device(probe);
    else
        run_file(probe);
}

static void paused(struct probe *probe)
{
    watch(probe, false);
}

static void stop(struct probe *probe)
{
    struct kmsg *kmsg = probe->state;
    if (kmsg->fd >= 0)
        close(kmsg->fd);
    buf_done(&kmsg->rest);
}

void kmsg_position(const struct probe *probe, char ret_text[PROBES_POSITION_MAX])
{
    const struct kmsg *kmsg = probe->state;
    ret_text[0] = 0;
    if (kmsg && kmsg->begun)
        snprintf(ret_text, PROBES_POSITION_MAX, "%s %llu", kmsg->boot, (unsigned long long)kmsg->next_seq);
}

const struct probe_kind probe_kmsg = {.name = "kmsg",
                                      .period_ns = 5 * NS_PER_SECOND,
                                      .cost_ns = 200 * NS_PER_MS,
                                      .keys = " userspace ",
                                      .start = start,
                                      .run = run,
                                      .paused = paused,
                                      .stop = stop,
                                      .always = true};
