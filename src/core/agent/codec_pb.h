/* codec_pb.h - converts the parts of messages to and from protobuf-c structs, for codec.c and for records
 * with the same parts (the log's Hello and Reports).
 *
 * The write functions fill *ret from the struct, or return the result. Text is copied to `arena`, which must
 * outlive the packing; its limit does not apply.
 *
 * The read functions take all memory from `arena`, within its limit. Strings stay where protobuf-c put them,
 * so unpack with a codec_memory of the same arena. They return 0, or ERROR_LIMIT, or ERROR_INVALID with the
 * field's name.
 */
#ifndef PHX_CORE_AGENT_CODEC_PB_H
#define PHX_CORE_AGENT_CODEC_PB_H

#include "core/agent/codec.h"
#include "proto/wire.pb-c.h"

/* An allocator for protobuf-c that takes from the arena within its limit and frees nothing. */
struct codec_memory {
    ProtobufCAllocator allocator;
    struct arena *arena;
    bool full; /* the limit was reached */
};
void codec_memory_init(struct codec_memory *memory, struct arena *arena);
/* Returns why an unpack of `len` bytes returned NULL: ERROR_LIMIT or ERROR_CORRUPT, with its message. */
int codec_unpack_error(const struct codec_memory *memory, size_t len, struct error *error);
/* Returns a NUL-terminated copy for a protobuf string field, in `arena`; never NULL. */
char *codec_text(struct arena *arena, struct str s);
/* Allocates a zeroed array. Returns NULL, with `error` set, if it would exceed the arena's limit. */
void *codec_try_array(struct arena *arena, size_t count, size_t size, struct error *error);

void codec_write_hello(struct arena *arena, const struct hello *hello, Wire__Hello *ret);
void codec_write_reports(struct arena *arena, const struct reports *reports, Wire__Reports *ret);
void codec_write_heartbeat(struct arena *arena, const struct heartbeat *heartbeat, Wire__Heartbeat *ret);
void codec_write_launch(struct arena *arena, const struct task_launch *launch, Wire__TaskLaunch *ret);
void codec_write_rejoin(struct arena *arena, const struct task_rejoin *rejoin, Wire__TaskRejoin *ret);
void codec_write_containers(struct arena *arena, const struct task_launch *launch, Wire__TaskLaunch *ret);
Wire__GangRankTable *codec_write_rank_table(struct arena *arena, const struct gang_rank_table *rank_table);
Wire__ContainerStatus **codec_write_statuses(struct arena *arena, const struct container_status *statuses,
                                             size_t count);
Wire__RankRoutes *codec_write_routes(struct arena *arena, const struct rank_routes *routes);
struct rank_routes codec_read_routes(const Wire__RankRoutes *pb); /* zeros if `pb` is NULL */
Wire__EnvVar **codec_write_env(struct arena *arena, const struct env_var *env, size_t count);

Wire__Signal **codec_write_signals(struct arena *arena, const struct signal *signals, size_t count);

void codec_write_errand_start(struct arena *arena, const struct errand_start *start, Wire__ErrandStart *ret);
Wire__ErrandEnd **codec_write_errand_ends(struct arena *arena, const struct errand_end *ends, size_t count);

void codec_write_exec_data(const struct exec_data *data, Wire__ExecData *ret);
void codec_write_exec_open(struct arena *arena, const struct exec_open *open, Wire__ExecOpen *ret);

int codec_read_hello(struct arena *arena, const Wire__Hello *pb, struct hello *ret, struct error *error);
int codec_read_reports(struct arena *arena, const Wire__Reports *pb, struct reports *ret,
                       struct error *error);
int codec_read_heartbeat(struct arena *arena, const Wire__Heartbeat *pb, struct heartbeat *ret,
                         struct error *error);
int codec_read_launch(struct arena *arena, const Wire__TaskLaunch *pb, struct task_launch *ret,
                      struct error *error);
int codec_read_rejoin(const Wire__TaskRejoin *pb, struct task_rejoin *ret, struct error *error);
int codec_read_rank_table(struct arena *arena, const Wire__GangRankTable *pb, struct gang_rank_table *ret,
                          struct error *error);
int codec_read_containers(struct arena *arena, const Wire__TaskLaunch *pb, struct task_launch *ret,
                          struct error *error);
int codec_read_statuses(struct arena *arena, Wire__ContainerStatus *const *pb, size_t count,
                        struct container_status **ret, struct error *error);
int codec_read_env(struct arena *arena, Wire__EnvVar *const *pb, size_t count, struct env_var **ret,
                   struct error *error);
int codec_read_signals(struct arena *arena, Wire__Signal *const *list, size_t count,
                       struct signal **ret_signals, size_t *ret_count, struct error *error);
int codec_read_errand_start(const Wire__ErrandStart *pb, struct errand_start *ret, struct error *error);
int codec_read_errand_ends(struct arena *arena, Wire__ErrandEnd *const *list, size_t count,
                           struct errand_end **ret_ends, size_t *ret_count, struct error *error);
int codec_read_exec_data(const Wire__ExecData *pb, struct exec_data *ret, struct error *error);
int codec_read_exec_open(struct arena *arena, const Wire__ExecOpen *pb, struct exec_open *ret,
                         struct error *error);
int codec_read_exec_resize(const Wire__ExecResize *pb, struct exec_resize *ret, struct error *error);

#endif
