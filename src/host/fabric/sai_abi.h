/* sai_abi.h - the part of the binary interface of SAI that the driver `sai` calls: the Switch Abstraction
 * Interface of the Open Compute Project, and its API of optical circuit switches.
 *
 * The declarations are our own. Numbers, sizes and the order of functions are those of SAI 1.14 to 1.18
 * (folder inc of opencomputeproject/SAI); for optical switches, those of its pull request 2229 as of
 * 2026-07-23 (module saiexperimentalocs of the folder experimental). That API is a draft: a library that was
 * built from an earlier revision has other offsets in the table of functions.
 *
 * A library exports sai_api_initialize, sai_api_query and sai_get_object_key. Objects are named by ids of 64
 * bits; attributes are read and written by number. A list attribute has a count and the address of its
 * elements. The caller provides the memory and its capacity as the count, and the library returns the count
 * of elements that it wrote.
 */
#ifndef PHX_HOST_FABRIC_SAI_ABI_H
#define PHX_HOST_FABRIC_SAI_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t sai_id; /* 0: none */
typedef int32_t sai_status;

enum {
    SAI_OK = 0,
    SAI_FAILURE = -1,
    SAI_NOT_SUPPORTED = -2,
    SAI_INVALID_PARAMETER = -5,
    SAI_ALREADY_EXISTS = -6,
    SAI_NOT_FOUND = -7,
    SAI_BUFFER_OVERFLOW = -8,
    SAI_INVALID_PORT = -9,
    SAI_UNINITIALIZED = -12,
    SAI_NOT_IMPLEMENTED = -15,
    SAI_IN_USE = -17,
    SAI_INVALID_OBJECT = -19,
    SAI_NOT_EXECUTED = -23,
    /* bases of ranges: a status is minus the base, minus the index of the attribute */
    SAI_BASE_INVALID_ATTRIBUTE = 0x10000,
    SAI_BASE_INVALID_VALUE = 0x20000,
    SAI_BASE_NOT_IMPLEMENTED = 0x30000,
    SAI_BASE_UNKNOWN_ATTRIBUTE = 0x40000,
    SAI_BASE_NOT_SUPPORTED = 0x50000,
    SAI_BASE_END = 0x60000,
};

enum { SAI_TABLE_SWITCH = 1, SAI_TABLE_OCS = 0x20000013 }; /* for sai_api_query */

enum sai_object_kind { /* for sai_get_object_key */
                       SAI_OBJECT_CROSS_CONNECT = 0x20000022,
                       SAI_OBJECT_PORT = 0x20000023,
                       SAI_OBJECT_FACTORY_DATA = 0x20000024,
};

enum { /* attributes of a switch */
       SAI_SWITCH_PROFILE = 0x71,
       SAI_SWITCH_HARDWARE = 0x72, /* list of bytes, including the NUL */
       SAI_SWITCH_INIT = 0x74,     /* bool: initialise the switch; else only connect to it */
       SAI_SWITCH_FIRMWARE_MAJOR = 0xab,
       SAI_SWITCH_FIRMWARE_MINOR = 0xac,
};
enum { SAI_CROSS_CONNECT_A = 0, SAI_CROSS_CONNECT_B = 1 }; /* ids of ports */
enum {                                                     /* attributes of a port */
       SAI_PORT_NAME = 0,                                  /* list of bytes, such as "1A" */
       SAI_PORT_OVERRIDE = 1,
       SAI_PORT_STATUS = 2,
};
enum { SAI_OVERRIDE_NORMAL = 0, SAI_OVERRIDE_BLOCKED = 1 };
enum { SAI_PORT_BLOCKED = 0, SAI_PORT_TUNING = 1, SAI_PORT_TUNED = 2, SAI_PORT_FAILED = 3 };
enum {                       /* attributes of factory data */
       SAI_FACTORY_A = 0,    /* lists of bytes: names of ports */
       SAI_FACTORY_B = 1,    /* */
       SAI_FACTORY_GHZ = 2,  /* lists of int32: THz with 3 decimals */
       SAI_FACTORY_CDEG = 3, /* degrees Celsius with 2 decimals */
       SAI_FACTORY_LOSS = 4, /* dB with 2 decimals */
       SAI_FACTORY_ACCURACY = 5,
};

enum { SAI_VALUE_BYTES = 40, SAI_KEY_BYTES = 64 };

struct sai_attribute {
    uint32_t number;
    union {
        bool truth;
        uint32_t u32;
        int32_t s32;
        sai_id id;
        struct {
            uint32_t count;
            void *at;
        } list;
        uint64_t room[SAI_VALUE_BYTES / 8];
    };
};

union sai_key {
    sai_id id;
    uint64_t room[SAI_KEY_BYTES / 8];
};

_Static_assert(sizeof(struct sai_attribute) == 48 && offsetof(struct sai_attribute, id) == 8,
               "attributes stand in arrays");
_Static_assert(sizeof(union sai_key) == SAI_KEY_BYTES, "keys stand in arrays");

struct sai_services {
    const char *(*value)(uint32_t profile, const char *name);
    /* returns 0 with a setting, or -1 at the end */
    int (*next)(uint32_t profile, const char **name, const char **value);
};

typedef sai_status sai_initialize_fn(uint64_t flags, const struct sai_services *services);
typedef sai_status sai_query_fn(int32_t table, void **ret_table);
typedef sai_status sai_keys_fn(sai_id device, int32_t kind, uint32_t *count, union sai_key *keys);

typedef sai_status sai_create_fn(sai_id *ret_id, sai_id device, uint32_t count,
                                 const struct sai_attribute *attributes);
typedef sai_status sai_remove_fn(sai_id id);
typedef sai_status sai_set_fn(sai_id id, const struct sai_attribute *attribute);
typedef sai_status sai_get_fn(sai_id id, uint32_t count, struct sai_attribute *attributes);

enum sai_bulk_mode { SAI_BULK_STOP = 0, SAI_BULK_GO_ON = 1 }; /* after a member that fails */
typedef sai_status sai_bulk_create_fn(sai_id device, uint32_t members, const uint32_t *counts,
                                      const struct sai_attribute **attributes, enum sai_bulk_mode mode,
                                      sai_id *ret_ids, sai_status *ret_statuses);
typedef sai_status sai_bulk_remove_fn(uint32_t members, const sai_id *ids, enum sai_bulk_mode mode,
                                      sai_status *ret_statuses);

typedef void sai_other_fn(void); /* a function that the driver does not call */

struct sai_switch_table {
    sai_status (*create)(sai_id *ret_device, uint32_t count, const struct sai_attribute *attributes);
    sai_remove_fn *remove;
    sai_set_fn *set;
    sai_get_fn *get;
    sai_other_fn *others[11];
};

struct sai_ocs_table {
    sai_create_fn *create_port;
    sai_remove_fn *remove_port;
    sai_set_fn *set_port;
    sai_get_fn *get_port;
    sai_bulk_create_fn *create_ports;
    sai_bulk_remove_fn *remove_ports;
    sai_other_fn *set_ports, *get_ports;
    sai_other_fn *port_statistics[3];
    sai_create_fn *create_cross_connect;
    sai_remove_fn *remove_cross_connect;
    sai_set_fn *set_cross_connect;
    sai_get_fn *get_cross_connect;
    sai_other_fn *cross_connect_statistics[3];
    sai_bulk_create_fn *create_cross_connects;
    sai_bulk_remove_fn *remove_cross_connects;
    sai_other_fn *set_cross_connects, *get_cross_connects;
    sai_create_fn *create_factory_data;
    sai_remove_fn *remove_factory_data;
    sai_set_fn *set_factory_data;
    sai_get_fn *get_factory_data;
    sai_other_fn *bulk_factory_data[4];
};

#endif
