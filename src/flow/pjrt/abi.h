/* abi.h - the part of the PJRT C API that flow's host and plugin use: sizes, order and numbers of its
 * structures.
 *
 * The interface is XLA's (https://github.com/openxla/xla, xla/pjrt/c/pjrt_c_api.h). Both sides must share its
 * layout, which is declared here independently. A plugin exports GetPjrtApi(), which returns a table of
 * functions. Each function takes one structure of arguments and results. The structure begins with its size,
 * so that either side may be older than the other: within a major version (now 0), fields and functions are
 * only added at the end. Version 0.57 changed the order of the table; older plugins are refused.
 *
 * A function returns NULL or an error, which its caller destroys. An event signals the end of asynchronous
 * work; its receiver destroys it. Texts have a length and no terminating zero.
 */
#ifndef PHX_FLOW_PJRT_ABI_H
#define PHX_FLOW_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PJRT_ENTRY "GetPjrtApi"
enum { PJRT_MAJOR = 0, PJRT_MINOR = 90, PJRT_MINOR_LEAST = 57 };

struct pjrt_error;
struct pjrt_event;
struct pjrt_client;
struct pjrt_device;
struct pjrt_memory;
struct pjrt_executable;
struct pjrt_loaded;
struct pjrt_buffer;

enum pjrt_code {
    PJRT_CODE_CANCELLED = 1,
    PJRT_CODE_UNKNOWN = 2,
    PJRT_CODE_INVALID_ARGUMENT = 3,
    PJRT_CODE_NOT_FOUND = 5,
    PJRT_CODE_PERMISSION_DENIED = 7,
    PJRT_CODE_RESOURCE_EXHAUSTED = 8,
    PJRT_CODE_UNIMPLEMENTED = 12,
    PJRT_CODE_INTERNAL = 13,
    PJRT_CODE_UNAVAILABLE = 14,
};

/* Element types. */
enum pjrt_type {
    PJRT_TYPE_INVALID,
    PJRT_TYPE_PRED,
    PJRT_TYPE_S8,
    PJRT_TYPE_S16,
    PJRT_TYPE_S32,
    PJRT_TYPE_S64,
    PJRT_TYPE_U8,
    PJRT_TYPE_U16,
    PJRT_TYPE_U32,
    PJRT_TYPE_U64,
    PJRT_TYPE_F16,
    PJRT_TYPE_F32,
    PJRT_TYPE_F64,
    PJRT_TYPE_BF16,
    PJRT_TYPE_C64,
    PJRT_TYPE_C128,
    PJRT_TYPE_F8E5M2,
    PJRT_TYPE_F8E4M3FN,
};

/* Indexes in the table of functions. */
enum pjrt_slot {
    PJRT_ERROR_DESTROY = 0,
    PJRT_ERROR_MESSAGE = 1,
    PJRT_ERROR_CODE = 2,
    PJRT_PLUGIN_INITIALIZE = 3,
    PJRT_PLUGIN_ATTRIBUTES = 4,
    PJRT_EVENT_DESTROY = 5,
    PJRT_EVENT_IS_READY = 6,
    PJRT_EVENT_ERROR = 7,
    PJRT_EVENT_AWAIT = 8,
    PJRT_EVENT_ON_READY = 9,
    PJRT_CLIENT_CREATE = 10,
    PJRT_CLIENT_DESTROY = 11,
    PJRT_CLIENT_PLATFORM_NAME = 12,
    PJRT_CLIENT_PROCESS_INDEX = 13,
    PJRT_CLIENT_PLATFORM_VERSION = 14,
    PJRT_CLIENT_DEVICES = 15,
    PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
    PJRT_CLIENT_ADDRESSABLE_MEMORIES = 19,
    PJRT_CLIENT_COMPILE = 20,
    PJRT_CLIENT_BUFFER_FROM_HOST = 22,
    PJRT_DESCRIPTION_ID = 23,
    PJRT_DESCRIPTION_PROCESS_INDEX = 24,
    PJRT_DESCRIPTION_KIND = 26,
    PJRT_DESCRIPTION_DEBUG_STRING = 27,
    PJRT_DESCRIPTION_TO_STRING = 28,
    PJRT_DEVICE_DESCRIPTION = 29,
    PJRT_DEVICE_IS_ADDRESSABLE = 30,
    PJRT_DEVICE_LOCAL_HARDWARE_ID = 31,
    PJRT_DEVICE_ADDRESSABLE_MEMORIES = 32,
    PJRT_DEVICE_DEFAULT_MEMORY = 33,
    PJRT_MEMORY_ID = 35,
    PJRT_MEMORY_KIND = 36,
    PJRT_EXECUTABLE_DESTROY = 40,
    PJRT_EXECUTABLE_NAME = 41,
    PJRT_EXECUTABLE_REPLICAS = 42,
    PJRT_EXECUTABLE_PARTITIONS = 43,
    PJRT_EXECUTABLE_OUTPUTS = 44,
    PJRT_LOADED_DESTROY = 50,
    PJRT_LOADED_EXECUTABLE = 51,
    PJRT_LOADED_ADDRESSABLE_DEVICES = 52,
    PJRT_LOADED_DELETE = 53,
    PJRT_LOADED_IS_DELETED = 54,
    PJRT_LOADED_EXECUTE = 55,
    PJRT_BUFFER_DESTROY = 58,
    PJRT_BUFFER_TYPE = 59,
    PJRT_BUFFER_DIMENSIONS = 60,
    PJRT_BUFFER_SIZE = 64,
    PJRT_BUFFER_DEVICE = 65,
    PJRT_BUFFER_MEMORY = 66,
    PJRT_BUFFER_DELETE = 67,
    PJRT_BUFFER_IS_DELETED = 68,
    PJRT_BUFFER_TO_HOST = 70,
    PJRT_BUFFER_IS_ON_CPU = 71,
    PJRT_BUFFER_READY_EVENT = 72,
    PJRT_EXECUTABLE_OUTPUT_TYPES = 90,
    PJRT_EXECUTABLE_OUTPUT_DIMENSIONS = 91,
    PJRT_EXECUTABLE_MEMORY_STATS = 96,
    PJRT_SLOTS = 128, /* of version 0.90 */
};

typedef struct pjrt_error *pjrt_function(void *args); /* args: one of the structures below */

struct pjrt_api {
    size_t size;
    void *extensions;
    struct {
        size_t size;
        void *extensions;
        int major, minor;
    } version;
    pjrt_function *slots[PJRT_SLOTS]; /* as many as `size` covers; NULL: the plugin has no such function */
};
typedef const struct pjrt_api *pjrt_entry(void);

#define PJRT_HEAD                                                                                            \
    size_t size;                                                                                             \
    void *extensions
/* Zeros in place of fields that later versions have added; they select the defaults. XLA's plugins refuse a
 * structure that is smaller than their own. */
#define PJRT_LATER void *later[4]

/* Arguments of several functions: an object as input; a number, a text, an object or a list as output. */
struct pjrt_about {
    PJRT_HEAD;
    void *object;
};
struct pjrt_about_bool {
    PJRT_HEAD;
    void *object;
    bool answer;
};
struct pjrt_about_int {
    PJRT_HEAD;
    void *object;
    int answer;
};
struct pjrt_about_size {
    PJRT_HEAD;
    void *object;
    size_t answer;
};
struct pjrt_about_text {
    PJRT_HEAD;
    void *object;
    const char *text;
    size_t len;
};
struct pjrt_about_object {
    PJRT_HEAD;
    void *object;
    void *answer;
};
struct pjrt_about_list {
    PJRT_HEAD;
    void *object;
    void **items;
    size_t count;
};

struct pjrt_plugin_attributes {
    PJRT_HEAD;
    const void *attributes;
    size_t count;
};
struct pjrt_event_on_ready {
    PJRT_HEAD;
    struct pjrt_event *event;
    void (*callback)(struct pjrt_error *error, void *arg); /* takes the error */
    void *arg;
};
struct pjrt_client_create {
    PJRT_HEAD;
    const void *options;
    size_t option_count;
    void *kv_get, *kv_get_arg, *kv_put, *kv_put_arg;
    struct pjrt_client *client; /* result */
    void *kv_try_get, *kv_try_get_arg;
    PJRT_LATER;
};
struct pjrt_program {
    PJRT_HEAD;
    const char *code;
    size_t code_len;
    const char *format; /* "mlir": StableHLO as text or bytecode */
    size_t format_len;
    PJRT_LATER;
};
struct pjrt_client_compile {
    PJRT_HEAD;
    struct pjrt_client *client;
    const struct pjrt_program *program;
    const char *options; /* CompileOptionsProto */
    size_t options_len;
    struct pjrt_loaded *loaded; /* result */
    PJRT_LATER;
};
enum { PJRT_HOST_UNTIL_TRANSFER_COMPLETES = 1 }; /* how long the host's bytes stay unchanged */
struct pjrt_buffer_from_host {
    PJRT_HEAD;
    struct pjrt_client *client;
    const void *data;
    int type; /* enum pjrt_type */
    const int64_t *dims;
    size_t dim_count;
    const int64_t *byte_strides; /* NULL: dense, row-major */
    size_t byte_stride_count;
    int semantics;
    struct pjrt_device *device;
    struct pjrt_memory *memory; /* NULL: the device's own */
    void *layout;
    struct pjrt_event *done_with_host; /* result */
    struct pjrt_buffer *buffer;        /* result */
    PJRT_LATER;
};
struct pjrt_execute_options {
    PJRT_HEAD;
    void *send_callbacks, *receive_callbacks;
    size_t send_count, receive_count;
    int launch_id;
    const int64_t *not_donatable;
    size_t not_donatable_count;
    void *context;
    const char *call_location;
    size_t task_count;
    int *task_ids;
    int64_t *incarnation_ids;
    PJRT_LATER;
};
struct pjrt_execute {
    PJRT_HEAD;
    struct pjrt_loaded *loaded;
    struct pjrt_execute_options *options;
    struct pjrt_buffer *const *const *arguments; /* [device][argument] */
    size_t device_count, argument_count;
    struct pjrt_buffer **const *outputs; /* [device][output]: results */
    struct pjrt_event **complete;        /* [device], or NULL: results */
    struct pjrt_device *device;          /* NULL: those it was compiled for */
    PJRT_LATER;
};
struct pjrt_output_types {
    PJRT_HEAD;
    struct pjrt_executable *executable;
    const int *types; /* enum pjrt_type; lives with the executable, as do the next */
    size_t count;
};
struct pjrt_output_dimensions {
    PJRT_HEAD;
    struct pjrt_executable *executable;
    size_t count;
    const int64_t *dims;      /* of all outputs, one after another */
    const size_t *dim_counts; /* [count] */
};
struct pjrt_memory_stats {
    PJRT_HEAD;
    struct pjrt_executable *executable;
    int64_t code, arguments, outputs, alias, temporary; /* bytes, of the device */
    int64_t host[5];                                    /* the same, of the host */
    int64_t peak, total;
    PJRT_LATER;
};
struct pjrt_buffer_to_host {
    PJRT_HEAD;
    struct pjrt_buffer *buffer;
    const void *layout; /* NULL: the buffer's own */
    void *to;           /* NULL: only `to_len` is asked for */
    size_t to_len;
    struct pjrt_event *event; /* result */
    PJRT_LATER;
};

#endif
