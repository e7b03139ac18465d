#include "cmd/loglines.h"

#include <stdio.h>
#include <stdlib.h>

void log_restarts_read(struct log_restarts *restarts, const struct doc *jobset)
{
    const struct doc *phalanx = doc_dotted(jobset, "status.phalanx"), *list = doc_get(phalanx, "restarts");
    vec_clear(&restarts->list);
    restarts->attempt = doc_number(phalanx, "attempt", 0);
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *record = doc_at(list, i);
        struct log_restart restart = {.attempt = doc_number(record, "attempt", 0)};
        if (time_parse(doc_text(record, "startedTime"), &restart.began_ns) ||
            time_parse(doc_text(record, "faultTime"), &restart.began_ns))
            vec_push(&restarts->list, restart);
    }
}

int64_t log_attempt_at(const struct log_restarts *restarts, int64_t time_ns, int64_t began_attempt)
{
    int64_t attempt = began_attempt;
    for (size_t i = 0; i < restarts->list.len; i++) {
        const struct log_restart *restart = &restarts->list.items[i];
        if (restart->attempt > attempt && restart->began_ns <= time_ns)
            attempt = restart->attempt;
    }
    return attempt;
}

int64_t log_line_time(struct str *line)
{
    struct str time, rest;
    int64_t time_ns;
    if (!str_cut(*line, ' ', &time, &rest) || !time_parse(time, &time_ns))
        return 0;
    *line = rest;
    return time_ns;
}

void log_merge_add(struct log_merge *merge, int64_t time_ns, struct str prefix, struct str line)
{
    struct log_line entry = {time_ns, merge->text.len, prefix.len + line.len + 1};
    buf_add_str(&merge->text, prefix);
    buf_add_str(&merge->text, line);
    buf_add_char(&merge->text, '\n');
    vec_push(&merge->list, entry);
    if (merge->text.len > LOG_MERGE_BYTES)
        log_merge_print(merge);
}

static int by_time(const void *a, const void *b)
{
    const struct log_line *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
    return (x->offset > y->offset) - (x->offset < y->offset);
}

void log_merge_print(struct log_merge *merge)
{
    if (merge->list.len > 1)
        qsort(merge->list.items, merge->list.len, sizeof *merge->list.items, by_time);
    for (size_t i = 0; i < merge->list.len; i++)
        fwrite(merge->text.data + merge->list.items[i].offset, 1, merge->list.items[i].len, stdout);
    fflush(stdout);
    vec_clear(&merge->list);
    buf_clear(&merge->text);
}

void log_merge_done(struct log_merge *merge)
{
    vec_done(&merge->list);
    buf_done(&merge->text);
}
