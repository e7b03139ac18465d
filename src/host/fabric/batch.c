#include "host/fabric/batch.h"

#include "host/fabric/line.h"

bool batch_pair_is_possible(struct switch_size size, struct phx_crossconnect pair)
{
    return pair.a >= 1 && pair.a <= size.a_ports && pair.b > size.a_ports &&
           pair.b <= size.a_ports + size.b_ports;
}

int batch_all_statuses(int *statuses, uint32_t count, int status)
{
    for (uint32_t i = 0; i < count; i++)
        statuses[i] = status;
    return status;
}

int batch_check_count(uint32_t count, int *ret_statuses, struct phx_switch_error *error)
{
    if (count <= PHX_SWITCH_PORTS_MAX)
        return PHX_SWITCH_OK;
    switch_fail(error, PHX_SWITCH_INVALID, "%u cross-connects: expected at most %d", count,
                PHX_SWITCH_PORTS_MAX);
    return batch_all_statuses(ret_statuses, count, PHX_SWITCH_INVALID);
}

uint32_t batch_sort_out(struct switch_size size, struct peers *now, const struct phx_crossconnect *pairs,
                        uint32_t count, enum phx_batch_mode mode, int *statuses,
                        struct phx_crossconnect *stolen)
{
    uint32_t stolen_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct phx_crossconnect pair = pairs[i];
        statuses[i] = PHX_SWITCH_NOT_TRIED;
        if (!batch_pair_is_possible(size, pair)) {
            statuses[i] = PHX_SWITCH_INVALID;
        } else if (now->of[pair.a] == pair.b) {
            statuses[i] = PHX_SWITCH_OK;
        } else if (mode == PHX_SWITCH_SAFE && (now->of[pair.a] || now->of[pair.b])) {
            statuses[i] = PHX_SWITCH_BUSY;
        } else {
            uint16_t b = now->of[pair.a], a = now->of[pair.b];
            if (b)
                stolen[stolen_count++] = (struct phx_crossconnect){pair.a, b};
            if (a)
                stolen[stolen_count++] = (struct phx_crossconnect){a, pair.b};
            now->of[b] = now->of[a] = 0;
            now->of[pair.a] = (uint16_t)pair.b;
            now->of[pair.b] = (uint16_t)pair.a;
        }
    }
    for (uint32_t i = 0; i < count; i++) /* a later member steals a port of this one */
        if (statuses[i] == PHX_SWITCH_OK && now->of[pairs[i].a] != pairs[i].b)
            statuses[i] = PHX_SWITCH_FAILED;
    return stolen_count;
}

void batch_sort_out_removal(struct switch_size size, const struct peers *now,
                            const struct phx_crossconnect *pairs, uint32_t count, int *statuses)
{
    for (uint32_t i = 0; i < count; i++) {
        bool possible = batch_pair_is_possible(size, pairs[i]);
        bool joined = possible && now->of[pairs[i].a] == pairs[i].b;
        statuses[i] = joined ? PHX_SWITCH_NOT_TRIED : possible ? PHX_SWITCH_ABSENT : PHX_SWITCH_INVALID;
    }
}

void batch_end_repeats(const struct peers *before, const struct phx_crossconnect *pairs, uint32_t count,
                       int *statuses)
{
    for (uint32_t i = 1; i < count; i++) {
        if (statuses[i] != PHX_SWITCH_OK || before->of[pairs[i].a] == pairs[i].b)
            continue;
        uint32_t j = i;
        while (j > 0 && (pairs[j - 1].a != pairs[i].a || pairs[j - 1].b != pairs[i].b))
            j--;
        if (j > 0)
            statuses[i] = statuses[j - 1];
    }
}
