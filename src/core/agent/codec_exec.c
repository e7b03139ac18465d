#include "base/check.h"
#include "core/agent/codec_pb.h"

/* A bound on one grant of credit, so that the sum of many does not overflow. */
#define CREDIT_MAX (UINT64_C(1) << 40)

void codec_write_exec_data(const struct exec_data *data, Wire__ExecData *ret)
{
    CHECK(data->channel <= EXEC_STDERR);
    wire__exec_data__init(ret);
    ret->stream = data->stream;
    ret->channel = data->channel;
    ret->bytes.data = (uint8_t *)(uintptr_t)data->bytes.data; /* packing only reads */
    ret->bytes.len = data->bytes.len;
    ret->end = data->end;
    ret->credit = data->credit;
}

int codec_read_exec_data(const Wire__ExecData *pb, struct exec_data *ret, struct error *error)
{
    *ret = (struct exec_data){.stream = pb->stream,
                              .channel = pb->channel,
                              .bytes = {(const char *)pb->bytes.data, pb->bytes.len},
                              .end = pb->end,
                              .credit = pb->credit};
    if (ret->channel > EXEC_STDERR || ret->credit > CREDIT_MAX)
        return error_set(error, ERROR_INVALID, "exec: channel %u, credit %llu", ret->channel,
                         (unsigned long long)ret->credit);
    return 0;
}

void codec_write_exec_open(struct arena *arena, const struct exec_open *open, Wire__ExecOpen *ret)
{
    CHECK(open->argv || open->argc == 0);
    wire__exec_open__init(ret);
    ret->stream = open->stream;
    ret->task = open->task;
    ret->container = codec_text(arena, open->container);
    ret->n_argv = open->argc;
    ret->argv = ARENA_ARRAY(arena, char *, open->argc);
    for (size_t i = 0; i < open->argc; i++)
        ret->argv[i] = codec_text(arena, open->argv[i]);
    ret->tty = open->tty;
    ret->input = open->input;
    ret->credit = open->credit;
}

int codec_read_exec_open(struct arena *arena, const Wire__ExecOpen *pb, struct exec_open *ret,
                         struct error *error)
{
    struct exec_open open = {.stream = pb->stream,
                             .task = pb->task,
                             .container = str_from(pb->container),
                             .argc = pb->n_argv,
                             .tty = pb->tty,
                             .input = pb->input,
                             .credit = pb->credit};
    if (open.argc == 0 || open.credit > CREDIT_MAX)
        return error_set(error, ERROR_INVALID, "exec: no command, or a credit of %llu",
                         (unsigned long long)open.credit);
    open.argv = codec_try_array(arena, open.argc, sizeof *open.argv, error);
    if (!open.argv)
        return ERROR_LIMIT;
    for (size_t i = 0; i < open.argc; i++)
        open.argv[i] = str_from(pb->argv[i]);
    *ret = open;
    return 0;
}

int codec_read_exec_resize(const Wire__ExecResize *pb, struct exec_resize *ret, struct error *error)
{
    if (pb->width > UINT16_MAX || pb->height > UINT16_MAX)
        return error_set(error, ERROR_INVALID, "exec: a terminal of %u x %u", pb->width, pb->height);
    *ret = (struct exec_resize){pb->stream, (uint16_t)pb->width, (uint16_t)pb->height};
    return 0;
}
