#include "job/loop/flight.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool job_flight_open(struct job_flight *flight)
{
    size_t size = sizeof *flight->record;
    flight->fd = memfd_create(JOBWIRE_FLIGHT_NAME, MFD_CLOEXEC);
    void *memory = MAP_FAILED;
    if (flight->fd >= 0 && ftruncate(flight->fd, (off_t)size) == 0)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, flight->fd, 0);
    if (memory == MAP_FAILED) {
        if (flight->fd >= 0)
            close(flight->fd);
        flight->fd = -1;
        memory = calloc(1, size);
    }
    flight->record = memory;
    return memory != NULL;
}

void job_flight_close(struct job_flight *flight)
{
    if (flight->record != NULL && flight->fd >= 0) {
        munmap(flight->record, sizeof *flight->record);
        close(flight->fd);
    } else {
        free(flight->record);
    }
    flight->record = NULL;
}

void job_flight_show(struct job_flight *flight, const struct job_settings *settings, uint32_t attempt)
{
    __atomic_store_n(&flight->record->magic, 0, __ATOMIC_RELEASE);
    memset(flight->record, 0, sizeof *flight->record);
    flight->record->rank = settings->rank;
    flight->record->world = settings->world;
    flight->record->attempt = attempt;
    flight->record->pid = (uint32_t)getpid();
    __atomic_store_n(&flight->record->magic, JOBWIRE_FLIGHT_MAGIC, __ATOMIC_RELEASE);
}

void job_flight_begin(struct job_flight *flight, uint64_t number)
{
    struct jobwire_flight *record = flight->record;
    if (number <= record->begun)
        return;
    assert(number == record->begun + 1 && record->begun == record->ended);
    record->entries[number % JOBWIRE_FLIGHT_ENTRIES] = (struct jobwire_flight_entry){.begun_ns = wall_ns()};
    record->begun = number;
}

void job_flight_end(struct job_flight *flight, uint64_t number)
{
    struct jobwire_flight *record = flight->record;
    if (number <= record->ended)
        return;
    assert(number == record->ended + 1 && number == record->begun);
    record->entries[number % JOBWIRE_FLIGHT_ENTRIES].ended_ns = wall_ns();
    record->ended = number;
}

void job_flight_step(struct job_flight *flight, uint64_t step)
{
    flight->record->step = step;
    flight->record->step_ns = wall_ns();
}

static void put_entry(FILE *file, const struct jobwire_flight *record, uint64_t number)
{
    const struct jobwire_flight_entry *entry = &record->entries[number % JOBWIRE_FLIGHT_ENTRIES];
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

static void put_all(FILE *file, const struct jobwire_flight *record)
{
    uint64_t first = record->begun < JOBWIRE_FLIGHT_ENTRIES ? 1 : record->begun + 1 - JOBWIRE_FLIGHT_ENTRIES;
    fprintf(file, "{\"version\":\"phalanx " PHX_VERSION "\",\"attempt\":%u,", record->attempt);
    if (record->step_ns != 0)
        fprintf(file, "\"step\":%llu,", (unsigned long long)record->step);
    fprintf(file, "\n\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"gang\",\"ranks\":\"[");
    fprintf(file, record->world > 1 ? "0-%u" : "%u", record->world - 1);
    fprintf(
        file,
        "]\"}},\n\"pg_status\":{\"0\":{\"last_enqueued_collective\":%llu,\"last_started_collective\":%llu,"
        "\"last_completed_collective\":%llu}},\n\"entries\":[",
        (unsigned long long)record->begun, (unsigned long long)record->begun,
        (unsigned long long)record->ended);
    for (uint64_t number = first; number <= record->begun; number++) {
        if (number > first)
            fputc(',', file);
        put_entry(file, record, number);
    }
    fprintf(file, "]}\n");
}

void job_flight_write(const struct jobwire_flight *record, const struct job_settings *settings)
{
    char path[sizeof settings->flight_prefix + 16], beside[sizeof path + 32];
    if (settings->flight_prefix[0] == '\0')
        return;
    snprintf(path, sizeof path, "%s%u", settings->flight_prefix, settings->rank);
    /* must not end in a number, as the files of ranks do */
    snprintf(beside, sizeof beside, "%s.%d.part", path, (int)getpid());
    FILE *file = fopen(beside, "we");
    if (file == NULL)
        return;
    put_all(file, record);
    bool whole = ferror(file) == 0;
    if (fclose(file) != 0 || !whole || rename(beside, path) != 0)
        unlink(beside);
}
