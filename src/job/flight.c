#include "job/flight.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void job_flight_begin(struct job_flight *flight, uint64_t number)
{
    if (number <= flight->begun)
        return;
    assert(number == flight->begun + 1 && flight->begun == flight->ended);
    flight->begun = number;
    flight->entries[number % JOB_FLIGHT_MAX] = (struct job_flight_entry){.begun_ns = wall_ns()};
}

void job_flight_end(struct job_flight *flight, uint64_t number)
{
    if (number <= flight->ended)
        return;
    assert(number == flight->ended + 1 && number == flight->begun);
    flight->ended = number;
    flight->entries[number % JOB_FLIGHT_MAX].ended_ns = wall_ns();
}

static void put_entry(FILE *file, const struct job_flight *flight, uint64_t number)
{
    const struct job_flight_entry *entry = &flight->entries[number % JOB_FLIGHT_MAX];
    unsigned long long id = (unsigned long long)number;
    fprintf(file,
            "\n{\"record_id\":%llu,\"pg_id\":0,\"process_group\":[\"0\",\"gang\"],\"collective_seq_id\":%llu,"
            "\"p2p_seq_id\":0,\"profiling_name\":\"phalanx:barrier\",\"is_p2p\":false,\"state\":\"%s\","
            "\"time_created_ns\":%lld,\"time_discovered_completed_ns\":",
            id, id, entry->ended_ns != 0 ? "completed" : "started", (long long)entry->begun_ns);
    if (entry->ended_ns != 0)
        fprintf(file, "%lld}", (long long)entry->ended_ns);
    else
        fprintf(file, "null}");
}

static void put_all(FILE *file, const struct job_flight *flight, uint32_t world, uint32_t attempt)
{
    uint64_t first = flight->begun < JOB_FLIGHT_MAX ? 1 : flight->begun + 1 - JOB_FLIGHT_MAX;
    fprintf(file, "{\"version\":\"phalanx " PHX_VERSION "\",\"attempt\":%u,", attempt);
    if (flight->step_known)
        fprintf(file, "\"step\":%llu,", (unsigned long long)flight->step);
    fprintf(file, "\n\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"gang\",\"ranks\":\"[");
    for (uint32_t rank = 0; rank < world; rank++)
        fprintf(file, rank == 0 ? "%u" : ", %u", rank);
    fprintf(
        file,
        "]\"}},\n\"pg_status\":{\"0\":{\"last_enqueued_collective\":%llu,\"last_started_collective\":%llu,"
        "\"last_completed_collective\":%llu}},\n\"entries\":[",
        (unsigned long long)flight->begun, (unsigned long long)flight->begun,
        (unsigned long long)flight->ended);
    for (uint64_t number = first; number <= flight->begun; number++) {
        if (number > first)
            fputc(',', file);
        put_entry(file, flight, number);
    }
    fprintf(file, "]}\n");
}

void job_flight_write(const struct job_flight *flight, const struct job_settings *settings, uint32_t attempt)
{
    char path[sizeof settings->flight_prefix + 16], beside[sizeof path + 32];
    if (settings->flight_prefix[0] == '\0')
        return;
    snprintf(path, sizeof path, "%s%u", settings->flight_prefix, settings->rank);
    snprintf(beside, sizeof beside, "%s.%d.part", path, (int)getpid()); /* no name that ends with a rank */
    FILE *file = fopen(beside, "we");
    if (file == NULL)
        return;
    put_all(file, flight, settings->world, attempt);
    bool whole = ferror(file) == 0;
    if (fclose(file) != 0 || !whole || rename(beside, path) != 0)
        unlink(beside);
}
