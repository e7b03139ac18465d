/* A library with NVML's functions for tests of host/probes. What its GPUs say stands in the file
 * $NVML_STUB, one "GPU NAME NUMBER" a line, read at each call: 0 temperature 45. NAME "init" is what
 * nvmlInit answers, "hang" makes it hang, "crash" crash; "xid" is an event that comes once for each number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
};
struct event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
enum { SUCCESS = 0, NOT_SUPPORTED = 3, TIMEOUT = 10, LOST = 15 };

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci);
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *errors);
int nvmlDeviceGetRemappedRows(void *device, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *up);
int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, int counter, unsigned long long *errors);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperatureThreshold(void *device, int which, unsigned *celsius);
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons);
int nvmlEventSetCreate(void **set);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct event *event, unsigned wait_ms);
const char *nvmlErrorString(int rc);

static unsigned long long told_of(int gpu, const char *name, unsigned long long fallback)
{
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "re") : NULL;
    char line[128], said[64];
    int number;
    unsigned long long value, found = fallback;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%d %63s %llu", &number, said, &value) == 3 && number == gpu &&
            strcmp(said, name) == 0)
            found = value;
    if (file)
        fclose(file);
    return found;
}

static int index_of(void *device)
{
    return (int)(size_t)device - 1;
}

int nvmlInit_v2(void)
{
    while (told_of(0, "hang", 0))
        pause();
    if (told_of(0, "crash", 0))
        _exit(3);
    return (int)told_of(0, "init", SUCCESS);
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)told_of(0, "count", 2);
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    snprintf(pci->address, sizeof pci->address, "00000000:%X:00.0", 0x1a + index_of(device));
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *errors)
{
    *errors = told_of(index_of(device), "ecc", 0);
    return kind == 1 && counter == 0 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed)
{
    *a = *b = 0;
    *pending = (unsigned)told_of(index_of(device), "pending", 0);
    *failed = (unsigned)told_of(index_of(device), "failed", 0);
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *up)
{
    *up = (int)told_of(index_of(device), "link", 1);
    return link < 2 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, int counter, unsigned long long *errors)
{
    *errors = link == 0 && counter == 0 ? told_of(index_of(device), "replay", 0) : 0;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    *celsius = (unsigned)told_of(index_of(device), "temperature", 45);
    return sensor != 0 ? NOT_SUPPORTED : told_of(index_of(device), "lost", 0) ? LOST : SUCCESS;
}

int nvmlDeviceGetTemperatureThreshold(void *device, int which, unsigned *celsius)
{
    (void)device;
    *celsius = 87;
    return which == 1 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
    *reasons = told_of(index_of(device), "clocks", 1);
    return SUCCESS;
}

int nvmlEventSetCreate(void **set)
{
    *set = (void *)1;
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
    (void)device;
    (void)types;
    (void)set;
    return SUCCESS;
}

int nvmlEventSetWait_v2(void *set, struct event *event, unsigned wait_ms)
{
    static unsigned long long seen;
    (void)set;
    (void)wait_ms;
    unsigned long long xid = told_of(1, "xid", 0);
    if (xid == seen)
        return TIMEOUT;
    seen = xid;
    *event = (struct event){.device = (void *)2, .type = 8, .data = xid};
    return SUCCESS;
}

const char *nvmlErrorString(int rc)
{
    return rc == LOST ? "GPU is lost" : rc == 9 ? "Driver Not Loaded" : "some error";
}
