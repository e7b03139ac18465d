/* nvml_look.c - the child that uses NVML (libnvidia-ml.so.1, loaded at run time: its header is not needed).
 *
 * Only functions of libraries since 2020 are needed; a missing one is skipped.
 */
#include "host/probes/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    NVML_SUCCESS = 0,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    UNCORRECTED = 1,     /* nvmlMemoryErrorType_t */
    VOLATILE_COUNTS = 0, /* since the driver was loaded */
    THRESHOLD_SLOWDOWN = 1,
    LINKS_MAX = 18,
    LINK_COUNTERS = 4, /* replay, recovery, CRC of flits, CRC of data */
    GPUS_MAX = 64,
};
#define EVENT_XID UINT64_C(8)

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
};
struct nvml_event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

struct nvml_api {
    int (*init)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, void **);
    int (*pci)(void *, struct nvml_pci *);
    int (*ecc)(void *, int, int, unsigned long long *);
    int (*remapped)(void *, unsigned *, unsigned *, unsigned *, unsigned *);
    int (*link_state)(void *, unsigned, int *);
    int (*link_errors)(void *, unsigned, int, unsigned long long *);
    int (*temperature)(void *, int, unsigned *);
    int (*threshold)(void *, int, unsigned *);
    int (*reasons)(void *, unsigned long long *);
    int (*set_create)(void **);
    int (*set_register)(void *, unsigned long long, void *);
    int (*set_wait)(void *, struct nvml_event *, unsigned);
    const char *(*text)(int);
};

static bool load(struct nvml_api *api, const char *library, struct buf *facts)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fact_put(facts, "", "error", "no %s", library);
        return false;
    }
    *(void **)&api->init = dlsym(handle, "nvmlInit_v2");
    *(void **)&api->count = dlsym(handle, "nvmlDeviceGetCount_v2");
    *(void **)&api->handle = dlsym(handle, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&api->pci = dlsym(handle, "nvmlDeviceGetPciInfo_v3");
    *(void **)&api->ecc = dlsym(handle, "nvmlDeviceGetTotalEccErrors");
    *(void **)&api->remapped = dlsym(handle, "nvmlDeviceGetRemappedRows");
    *(void **)&api->link_state = dlsym(handle, "nvmlDeviceGetNvLinkState");
    *(void **)&api->link_errors = dlsym(handle, "nvmlDeviceGetNvLinkErrorCounter");
    *(void **)&api->temperature = dlsym(handle, "nvmlDeviceGetTemperature");
    *(void **)&api->threshold = dlsym(handle, "nvmlDeviceGetTemperatureThreshold");
    *(void **)&api->reasons = dlsym(handle, "nvmlDeviceGetCurrentClocksEventReasons");
    if (!api->reasons)
        *(void **)&api->reasons = dlsym(handle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    *(void **)&api->set_create = dlsym(handle, "nvmlEventSetCreate");
    *(void **)&api->set_register = dlsym(handle, "nvmlDeviceRegisterEvents");
    *(void **)&api->set_wait = dlsym(handle, "nvmlEventSetWait_v2");
    *(void **)&api->text = dlsym(handle, "nvmlErrorString");
    if (!api->init || !api->count || !api->handle || !api->pci) {
        fact_put(facts, "", "error", "%s is not NVML", library);
        return false;
    }
    return true;
}

static const char *text_of(const struct nvml_api *api, int rc)
{
    const char *text = api->text ? api->text(rc) : NULL;
    return text ? text : "error";
}

static void look_links(const struct nvml_api *api, void *device, const char *place, struct buf *facts)
{
    static const char *const names[LINK_COUNTERS] = {"replay", "recovery", "crc-flit", "crc-data"};
    for (unsigned link = 0; api->link_state && link < LINKS_MAX; link++) {
        int up = 0;
        char name[40];
        if (api->link_state(device, link, &up) != NVML_SUCCESS)
            continue;
        snprintf(name, sizeof name, "link state %u", link);
        fact_put(facts, place, name, "%d", up != 0);
        for (int k = 0; api->link_errors && k < LINK_COUNTERS; k++) {
            unsigned long long errors;
            snprintf(name, sizeof name, "link %u %s", link, names[k]);
            if (api->link_errors(device, link, k, &errors) == NVML_SUCCESS)
                fact_put(facts, place, name, "%llu", errors);
        }
    }
}

static void look_gpu(const struct nvml_api *api, void *device, const char *place, struct buf *facts)
{
    unsigned long long wide;
    unsigned n[4], limit = 0;
    int rc = 0;
    if (api->temperature && (rc = api->temperature(device, 0, &n[0])) == NVML_SUCCESS) {
        if (api->threshold)
            api->threshold(device, THRESHOLD_SLOWDOWN, &limit);
        fact_put(facts, place, "temperature", "%u %u", n[0], limit);
    }
    if (rc == NVML_GPU_IS_LOST) {
        fact_put(facts, place, "lost", "%s", text_of(api, rc));
        return;
    }
    if (api->ecc && api->ecc(device, UNCORRECTED, VOLATILE_COUNTS, &wide) == NVML_SUCCESS)
        fact_put(facts, place, "ecc", "%llu", wide);
    if (api->remapped && api->remapped(device, &n[0], &n[1], &n[2], &n[3]) == NVML_SUCCESS)
        fact_put(facts, place, "remap", "%u %u %u %u", n[0], n[1], n[2], n[3]);
    if (api->reasons && api->reasons(device, &wide) == NVML_SUCCESS)
        fact_put(facts, place, "clocks", "%llu", wide);
    look_links(api, device, place, facts);
}

static int64_t mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Waits for the time of the next block; sends each XID at once. */
static void wait_until(const struct nvml_api *api, void *set, int64_t until_ns, struct buf *facts)
{
    for (int64_t left_ns; (left_ns = until_ns - mono_ns()) > 0;) {
        struct nvml_event event = {0};
        unsigned wait_ms = (unsigned)(left_ns / NS_PER_MS) + 1;
        int rc = set ? api->set_wait(set, &event, wait_ms) : NVML_TIMEOUT;
        if (rc == NVML_SUCCESS && event.type == EVENT_XID) {
            struct nvml_pci pci = {0};
            api->pci(event.device, &pci);
            pci.address[sizeof pci.address - 1] = 0;
            fact_put(facts, pci.address, "xid", "%llu", event.data);
            child_say_block(facts);
        } else if (rc != NVML_SUCCESS) { /* also if the error is immediate: avoid a busy loop */
            left_ns = until_ns - mono_ns();
            if (left_ns > 0)
                usleep((useconds_t)(left_ns < NS_PER_SECOND ? left_ns / 1000 + 1 : 1000000));
        }
    }
}

void nvml_live(const struct probe *probe, const char *library, int64_t period_ns, struct buf *facts)
{
    struct nvml_api api = {0};
    struct nvml_pci pci[GPUS_MAX];
    void *devices[GPUS_MAX] = {0}, *set = NULL;
    unsigned count = 0;
    (void)probe;
    if (!load(&api, library, facts))
        return;
    int rc = api.init();
    if (rc == NVML_SUCCESS)
        rc = api.count(&count);
    if (rc != NVML_SUCCESS) {
        fact_put(facts, "", "error", "%s", text_of(&api, rc));
        return;
    }
    count = count < GPUS_MAX ? count : GPUS_MAX;
    if (api.set_create && api.set_register && api.set_wait && api.set_create(&set) != NVML_SUCCESS)
        set = NULL;
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
        memset(&pci[found], 0, sizeof pci[found]);
        if (api.handle(i, &devices[found]) != NVML_SUCCESS ||
            api.pci(devices[found], &pci[found]) != NVML_SUCCESS)
            continue;
        pci[found].address[sizeof pci[found].address - 1] = 0;
        if (set)
            api.set_register(devices[found], EVENT_XID, set);
        found++;
    }
    for (int64_t next_ns = mono_ns();;) {
        fact_put(facts, "", "count", "%u", found);
        for (unsigned i = 0; i < found; i++)
            look_gpu(&api, devices[i], pci[i].address, facts);
        child_say_block(facts);
        next_ns += period_ns;
        if (next_ns < mono_ns())
            next_ns = mono_ns() + period_ns;
        wait_until(&api, set, next_ns, facts);
    }
}
