/* sai_library.h - the SAI libraries loaded in this process, and their switches.
 *
 *     struct sai_device *device;
 *     sai_attach("/usr/lib/libsai.so?ocs0", 2000, &device, &error)      loads, initialises, creates: once
 *     sai_enter(device, 2000, &error)
 *     ... device->ocs->create_cross_connects(...)
 *     sai_leave(device)
 *
 * An address is PATH[?HARDWARE[&NAME=VALUE]...]. HARDWARE names the switch to the library, like SAI's
 * hardware info, and contains no '='. Without it the library has one switch. `init=false` connects to a
 * switch that another process has initialised. Every other NAME is a setting that the library may request,
 * such as SAI_INIT_CONFIG_FILE or SAI_BOOT_TYPE. While a library initialises itself, it gets the settings of
 * its first switch.
 *
 * SAI initialises a library once per process and is not thread-safe, so only one call at a time runs in a
 * library. Libraries stay loaded, and their switches exist, until the process ends, because removing a switch
 * would remove its cross-connects. A call from which a library does not return cannot be interrupted. Other
 * threads that wait for the library give up after their timeout.
 */
#ifndef PHX_HOST_FABRIC_SAI_LIBRARY_H
#define PHX_HOST_FABRIC_SAI_LIBRARY_H

#include "host/fabric/sai_abi.h"
#include "phalanx/driver.h"

enum { SAI_ADDRESS_MAX = 256 };

struct sai_library;
struct sai_device {
    struct sai_library *library;
    struct sai_device *next; /* the library's next switch */
    /* from the address: HARDWARE, NAME=VALUE ..., each followed by a NUL, and one more NUL */
    char settings[SAI_ADDRESS_MAX];
    uint32_t profile;
    sai_id id; /* 0: not created yet */
    const struct sai_ocs_table *ocs;
    const struct sai_switch_table *table;
    sai_keys_fn *keys;
};

/* Finds or creates the switch of an address, which is valid until the process ends. Returns INVALID if the
 * address has another form or names no library, UNSUPPORTED if the library lacks a function that the driver
 * needs, and TIMEOUT if another thread occupies the library. */
int sai_attach(const char *address, uint32_t timeout_ms, struct sai_device **ret_device,
               struct phx_switch_error *error);

/* Begin and end a series of calls to the library of a switch. sai_enter() returns TIMEOUT if another thread
 * occupies the library. */
int sai_enter(struct sai_device *device, uint32_t timeout_ms, struct phx_switch_error *error);
void sai_leave(struct sai_device *device);

const char *sai_hardware(const struct sai_device *device); /* HARDWARE of the address, or "" */
const char *sai_file(const struct sai_device *device);     /* file name of the library */

/* Converts a SAI status to a phx_switch_status. */
enum phx_switch_status sai_meaning(sai_status status);
/* Describes a failed call in *error, and returns sai_meaning(status). `what` is the port or pair, or "". */
int sai_fail(struct phx_switch_error *error, const struct sai_device *device, const char *call,
             const char *what, sai_status status);
/* Describes an answer of the library that makes no sense, and returns GARBLED. */
int sai_garbled(struct phx_switch_error *error, const struct sai_device *device, const char *call,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
