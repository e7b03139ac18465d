#include "job/link/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096

static uint64_t hash(uint64_t hash, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static uint64_t hash_text(uint64_t start, const char *text)
{
    return hash(start, text, strlen(text) + 1);
}

/* Adds the id of this boot to a hash; without /proc, returns the hash unchanged. */
static uint64_t hash_boot(uint64_t start)
{
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    return hash(start, text, len > 0 ? (size_t)len : 0);
}

/* Adds device and inode of the parent folder to a hash. The folder itself may not exist yet. */
static uint64_t hash_parent(uint64_t start, const char *path)
{
    char parent[PATH_SIZE];
    struct stat info;
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    if (len >= sizeof parent)
        return start;
    memcpy(parent, slash == NULL ? "." : path, len);
    parent[len] = '\0';
    if (stat(parent, &info) != 0)
        return start;
    uint64_t numbers[2] = {(uint64_t)info.st_dev, (uint64_t)info.st_ino};
    return hash(start, numbers, sizeof numbers);
}

struct machine machine_of(const char *memory_dir, const char *name)
{
    static const uint64_t start = 0xcbf29ce484222325u;
    const char *rack = getenv("PHX_RACK");
    uint64_t id = hash_boot(start);
    if (memory_dir[0] != '\0')
        id = hash_parent(hash_text(id, memory_dir), memory_dir);
    else
        id = hash_text(id, name);
    uint64_t rack_id = rack != NULL && *rack != '\0' ? hash_text(start, rack) : 0;
    return (struct machine){id != 0 ? id : 1, rack_id};
}

/* ---- buddies ---- */

/* A machine, by its first rank. */
struct place {
    uint64_t rack, id;
    uint32_t first, count; /* ranks of the machine; the first decides its place in the ring */
};

static int by_id(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static int by_rack_and_first(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->rack != b->rack)
        return a->rack < b->rack ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Makes one entry for each machine; returns how many. */
static uint32_t gather(struct place *places, const struct machine *machines, uint32_t world, bool by_rack)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world; i++)
        places[i] = (struct place){by_rack ? machines[i].rack : 0, machines[i].id, i, 1};
    qsort(places, world, sizeof *places, by_id);
    for (uint32_t i = 0; i < world; i++) {
        if (count > 0 && places[count - 1].id == places[i].id)
            places[count - 1].count++;
        else
            places[count++] = places[i];
    }
    qsort(places, count, sizeof *places, by_rack_and_first);
    return count;
}

/* Returns the distance along the ring at which every machine is in another rack. */
static uint32_t largest_rack(const struct place *places, uint32_t count)
{
    uint32_t largest = 0, size = 0;
    for (uint32_t i = 0; i < count; i++) {
        size = i > 0 && places[i].rack == places[i - 1].rack ? size + 1 : 1;
        largest = size > largest ? size : largest;
    }
    return largest;
}

static uint32_t nth_rank(const struct machine *machines, uint32_t world, uint64_t id, uint32_t wanted)
{
    uint32_t seen = 0;
    for (uint32_t rank = 0; rank < world; rank++)
        if (machines[rank].id == id && seen++ == wanted)
            return rank;
    return MACHINE_NONE;
}

uint32_t machine_buddy(const struct machine *machines, uint32_t world, uint32_t rank, bool by_rack)
{
    struct place *places = malloc(world * sizeof *places);
    uint32_t own = 0, place = 0, buddy = MACHINE_NONE;
    if (places == NULL)
        return MACHINE_NONE;
    uint32_t count = gather(places, machines, world, by_rack);
    uint32_t shift = by_rack ? largest_rack(places, count) : 1;
    if (shift >= count)
        shift = 1; /* all machines are in one rack */
    while (places[own].id != machines[rank].id)
        own++;
    for (uint32_t i = 0; i < rank; i++)
        place += machines[i].id == machines[rank].id;
    const struct place *other = &places[(own + shift) % count];
    if (count > 1)
        buddy = nth_rank(machines, world, other->id, place % other->count);
    free(places);
    return buddy;
}
