/* Histories of clusters: no text crashes the reader, what it takes is in order, and is written as it was
 * read; a scenario can be made of it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/capacity/capacity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_again(const struct history *history)
{
    struct history again;
    struct error error = {0};
    struct buf first BUF_CLEANUP = {0}, second BUF_CLEANUP = {0};
    history_write(history, &first);
    assert(history_read(&again, buf_str(&first), "again", &error) == 0);
    history_write(&again, &second);
    assert(str_equal(buf_str(&first), buf_str(&second)));
    history_anonymise(&again);
    history_done(&again);
}

static void fuzz_scenario_of(const struct history *history)
{
    struct sim_scenario scenario = {.workload = {.annotations = STR("{}")}};
    struct error error = {0};
    struct buf json BUF_CLEANUP = {0};
    size_t left_out = 0;
    if (sim_scenario_take_history(&scenario, history, "t", &left_out, &error) == 0) {
        assert(left_out + scenario.jobs.len <= history->jobs.len);
        sim_scenario_cluster(&scenario, true, &json);
    }
    sim_scenario_done(&scenario);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct history history;
    struct history_facts facts;
    struct error error = {0};
    if (size > 65536)
        return 0;
    if (history_read(&history, (struct str){(const char *)data, size}, "t", &error) < 0) {
        assert(error.text[0]);
        return 0;
    }
    for (size_t i = 1; i < history.jobs.len; i++)
        assert(history.jobs.items[i - 1].submit_us <= history.jobs.items[i].submit_us);
    for (size_t i = 0; i < history.outages.len; i++)
        assert(history.outages.items[i].machine < history.machines.len);
    history_sum(&history, &facts);
    fuzz_again(&history);
    fuzz_scenario_of(&history);
    history_done(&history);
    return 0;
}
