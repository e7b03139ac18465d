/* swf.c - the Standard Workload Format 2.2 (Feitelson): 18 numbers a line; -1 is unknown.
 *
 *   1 job   2 submit s   3 wait s   4 run time s   5 processors   6, 7 use   8 requested processors   9, 10
 *   11 status: 1 completed, 0 failed, 5 cancelled; 2 to 4 are parts of jobs   12 user   13 group: the account
 *   14 program   15 queue   16 partition   17, 18   A number below 0 is no tag. */
#include "sim/trace/internal.h"

enum {
    SWF_FIELDS = 18,
    SWF_SUBMIT = 1,
    SWF_RUNTIME = 3,
    SWF_PROCESSORS = 4,
    SWF_REQUESTED = 7,
    SWF_STATUS = 10,
    SWF_USER = 11,
    SWF_GROUP = 12,
    SWF_QUEUE = 14,
    SWF_PARTITION = 15
};

static bool swf_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes the next word of the line. Returns false if none is left. */
static bool swf_word(struct str *line, struct str *ret)
{
    size_t begin = 0, end;
    while (begin < line->len && swf_is_blank(line->data[begin]))
        begin++;
    for (end = begin; end < line->len && !swf_is_blank(line->data[end]); end++)
        ;
    *ret = (struct str){line->data + begin, end - begin};
    *line = (struct str){line->data + end, line->len - end};
    return ret->len > 0;
}

/* Sets the tags, whose names are numbers in this format. */
static int swf_tags(const struct trace_reader *reader, struct trace_job *job, const struct str *word)
{
    static const struct {
        enum trace_tag tag;
        int field;
    } tags[] = {{TRACE_QUEUE, SWF_QUEUE},
                {TRACE_PARTITION, SWF_PARTITION},
                {TRACE_USER, SWF_USER},
                {TRACE_ACCOUNT, SWF_GROUP}};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        struct str text = word[tags[i].field];
        int rc = trace_tag(reader, job, tags[i].tag, text.data[0] == '-' ? (struct str){0} : text);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int swf_line(struct trace_reader *reader)
{
    static const char *const names[SWF_FIELDS] = {
        "job",    "submit time",      "wait time", "run time",  "processors",    "CPU time",
        "memory", "processors asked", "time",      "memory",    "status",        "user",
        "group",  "program",          "queue",     "partition", "preceding job", "think time"};
    struct str rest = reader->line, word[SWF_FIELDS] = {0};
    double value[SWF_FIELDS];
    for (int i = 0; i < SWF_FIELDS; i++) {
        if (!swf_word(&rest, &word[i]) || !trace_number(word[i], &value[i]))
            return trace_wrong(reader, word[i], names[i], "a number");
    }
    double processors = value[SWF_REQUESTED] > 0 ? value[SWF_REQUESTED] : value[SWF_PROCESSORS];
    int status = (int)(value[SWF_STATUS] >= -1 && value[SWF_STATUS] <= 5 ? value[SWF_STATUS] : -2);
    if (status == -2)
        return trace_wrong(reader, word[SWF_STATUS], names[SWF_STATUS], "a number from -1 to 5");
    if (value[SWF_SUBMIT] < 0)
        return trace_wrong(reader, word[SWF_SUBMIT], names[SWF_SUBMIT], "a number from 0");
    if (processors > TRACE_CHIPS_MAX)
        return trace_wrong(reader, word[value[SWF_REQUESTED] > 0 ? SWF_REQUESTED : SWF_PROCESSORS],
                           names[SWF_PROCESSORS], "at most 16777216");
    if (value[SWF_RUNTIME] <= 0 || processors < 1 || (status >= 2 && status <= 4)) {
        reader->trace->left_out++;
        return 0;
    }
    uint32_t per_chip = reader->terms->processors_per_chip;
    struct trace_job job = {.submit_s = value[SWF_SUBMIT],
                            .runtime_s = value[SWF_RUNTIME],
                            .chips = ((uint32_t)processors + per_chip - 1) / per_chip,
                            .end = status == 0   ? TRACE_FAILED
                                   : status == 5 ? TRACE_CANCELLED
                                                 : TRACE_COMPLETED};
    int rc = swf_tags(reader, &job, word);
    return rc < 0 ? rc : trace_add(reader, &job);
}

int swf_read(struct trace_reader *reader)
{
    while (trace_next_line(reader)) {
        struct str line = str_trim(reader->line);
        int rc = line.len > 0 && line.data[0] != ';' ? swf_line(reader) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}
