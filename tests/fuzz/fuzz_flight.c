/* Any dumps and logs to a flight: parts between bytes 0xff are, rank by rank, a pickle, a JSON dump, what an
 * agent collected, or a log. No crash; a refusal names its rank; what a dump is summed up to is a dump; what
 * is judged names ranks that exist, and the same again when judged again. */
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "doc/json.h"
#include "doc/pickle.h"
#include "core/diagnose/diagnose.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 16 << 20, PARTS_MAX = 16 };

/* Sums up a dump that was taken. */
static void sum_up(uint32_t rank, const struct doc *dump)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = LIMIT};
    struct buf BUF_CLEANUP text = {0};
    struct error error = {0};
    struct doc *doc = NULL;
    struct flight *whole = flight_new(), *brief = flight_new();
    CHECK(flight_add_dump(whole, rank, dump, &error) == 0);
    flight_summarise(whole, rank, 2048, &text);
    CHECK(json_parse(&arena, buf_str(&text), &doc, &error) == 0);
    CHECK(flight_add_dump(brief, rank, doc, &error) == 0);
    flight_free(whole);
    flight_free(brief);
}

static void take(struct flight *flight, uint32_t rank, struct str part)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = LIMIT};
    struct error error = {0};
    struct doc *doc = NULL;
    char start[24];
    if (flight_add_answer(flight, part, &error) >= 0)
        return;
    error = (struct error){0};
    int code =
        pickle_is(part) ? pickle_parse(&arena, part, &doc, NULL) : json_parse(&arena, part, &doc, NULL);
    if (code < 0) {
        flight_add_log(flight, part);
        return;
    }
    code = flight_add_dump(flight, rank, doc, &error);
    if (code == 0)
        sum_up(rank, doc);
    snprintf(start, sizeof start, "rank %u: ", rank);
    CHECK(code == 0 || (error.code == code && strncmp(error.text, start, strlen(start)) == 0));
}

static void check(const struct diagnosis *diagnosis)
{
    CHECK(diagnosis->hang || (diagnosis->findings.len == 0 && diagnosis->culprits.len == 0));
    for (size_t i = 0; i < diagnosis->findings.len; i++) {
        const struct finding *finding = &diagnosis->findings.items[i];
        CHECK(finding->rank_count > 0 && finding->evidence.len > 0 && finding->advice.len > 0);
        for (size_t k = 0; k < finding->rank_count; k++)
            CHECK(finding->ranks[k] < FLIGHT_RANKS_MAX &&
                  (k == 0 || finding->ranks[k - 1] < finding->ranks[k]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct flight *flight = flight_new();
    struct buf BUF_CLEANUP first = {0}, again = {0};
    size_t from = 0;
    for (uint32_t part = 0; part < PARTS_MAX && from < size; part++) {
        const uint8_t *end = memchr(data + from, 0xff, size - from);
        size_t len = end ? (size_t)(end - data) - from : size - from;
        take(flight, part, (struct str){(const char *)data + from, len});
        from += len + 1;
    }
    for (int round = 0; round < 2; round++) {
        struct diagnosis diagnosis;
        flight_judge(flight, &diagnosis);
        check(&diagnosis);
        diagnosis_write_json(round ? &again : &first, &diagnosis);
        diagnosis_done(&diagnosis);
    }
    CHECK(str_equal(buf_str(&first), buf_str(&again)));
    flight_free(flight);
    return 0;
}
