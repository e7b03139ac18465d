/* sai_library.h - SAI libraries of this process, and the switches that they hold.
 *
 *     struct sai_device *device;
 *     sai_attach("/usr/lib/libsai.so?ocs0", 2000, &device, &error)      loads, initialises, creates: once
 *     sai_enter(device, 2000, &error)
 *     ... device->ocs->create_cross_connects(...)
 *     sai_leave(device)
 *
 * An address is PATH[?HARDWARE[&NAME=VALUE]...]. HARDWARE names the switch to the library, as SAI's hardware
 * info does, and has no '='; without it the library has one switch. `init=false` connects to a switch that
 * another process has initialised. Every other NAME is a setting that the library asks for, such as
 * SAI_INIT_CONFIG_FILE or SAI_BOOT_TYPE; while a library initialises itself it gets the settings of its first
 * switch.
 *
 * SAI initialises a library once for a process, and is not thread-safe: one call at a time runs in a library.
 * Libraries stay loaded, and their switches created, until the process ends, because removing a switch would
 * part what it joins. A call that a library does not return from cannot be broken off; other threads that
 * wait for the library give up after their timeout.
 */
#ifndef PHX_HOST_FABRIC_SAI_LIBRARY_H
#define PHX_HOST_FABRIC_SAI_LIBRARY_H

#include "host/fabric/sai_abi.h"
#include "phalanx/driver.h"

enum { SAI_ADDRESS_MAX = 256 };

struct sai_library;
struct sai_device {
    struct sai_library *library;
    struct sai_device *next; /* of the library */
    char settings
        [SAI_ADDRESS_MAX]; /* of the address: HARDWARE, NAME=VALUE ..., a NUL after each, and one more */
    uint32_t profile;
    sai_id id; /* 0: not created yet */
    const struct sai_ocs_table *ocs;
    const struct sai_switch_table *table;
    sai_keys_fn *keys;
};

/* The switch of an address; it is valid until the process ends. INVALID if the address has another
 * form or names no library, UNSUPPORTED if the library lacks what the driver needs, TIMEOUT while another
 * thread has the library. */
int sai_attach(const char *address, uint32_t timeout_ms, struct sai_device **ret_device,
               struct phx_switch_error *error);

/* Begins and ends calls to the library of a switch. */
int sai_enter(struct sai_device *device, uint32_t timeout_ms, struct phx_switch_error *error);
void sai_leave(struct sai_device *device);

const char *sai_hardware(const struct sai_device *device); /* "": the address has none */
const char *sai_file(const struct sai_device *device);     /* name of the library's file */

/* The phx_switch_status that a status of SAI means. */
enum phx_switch_status sai_meaning(sai_status status);
/* Describes a failed call, `what` being the port or pair ("": none); returns sai_meaning(status). */
int sai_fail(struct phx_switch_error *error, const struct sai_device *device, const char *call,
             const char *what, sai_status status);
/* GARBLED, for an answer of the library that makes no sense. */
int sai_garbled(struct phx_switch_error *error, const struct sai_device *device, const char *call,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
