/* rank_tables.c - the rank tables to which starts refer, on a machine's side (agent.h). */
#include "core/agent/codec.h"
#include "core/agent/rank_table.h"
#include "drive/agent.h"

struct rank_table_reader {
    struct arena arena;
    struct buf bytes; /* the bytes from which `rank_table` was read; empty: nothing was read */
    struct gang_rank_table rank_table;
    struct str host_names;
};

void machine_rank_table_keep(struct machine_rank_table *rank_table, const struct packed_rank_table *packed)
{
    machine_rank_table_drop(rank_table);
    rank_table->number = packed->number;
    buf_add_str(&rank_table->bytes, packed->bytes);
}

void machine_rank_table_drop(struct machine_rank_table *rank_table)
{
    rank_table->number = 0;
    buf_done(&rank_table->bytes);
}

struct rank_table_reader *rank_table_reader_new(void)
{
    return mem_alloc(sizeof(struct rank_table_reader));
}

static void reader_clear(struct rank_table_reader *reader)
{
    arena_done(&reader->arena);
    buf_done(&reader->bytes);
    *reader = (struct rank_table_reader){0};
}

void rank_table_reader_free(struct rank_table_reader *reader)
{
    if (!reader)
        return;
    reader_clear(reader);
    mem_free(reader);
}

static int reader_read(struct rank_table_reader *reader, struct str bytes, struct error *error)
{
    reader_clear(reader);
    reader->arena.limit_bytes = CODEC_ARENA_BYTES;
    int rc = codec_unpack_rank_table(&reader->arena, bytes, &reader->rank_table, error);
    if (rc < 0) {
        reader_clear(reader);
        return rc;
    }
    reader->arena.limit_bytes = 0;
    struct buf names BUF_CLEANUP = {0};
    rank_table_write_host_names(&names, &reader->rank_table);
    reader->host_names = arena_str(&reader->arena, buf_str(&names));
    buf_add_str(&reader->bytes, bytes);
    return 0;
}

int machine_rank_table_put_back(const struct machine_rank_table *rank_table, struct rank_table_reader *reader,
                                struct task_launch *launch, struct error *error)
{
    struct str bytes = buf_str(&rank_table->bytes);
    if (launch->rank_table_number != rank_table->number)
        return error_set(error, ERROR_INVALID, "start of task %llu refers to a rank table that was not sent",
                         (unsigned long long)launch->task);
    int rc = str_equal(buf_str(&reader->bytes), bytes) ? 0 : reader_read(reader, bytes, error);
    if (rc < 0)
        return rc;
    rank_table_put_back(launch, &reader->rank_table, reader->host_names);
    return 0;
}
