/* sheets.c - rank tables that starts refer to, on a machine's side (agent.h). */
#include "core/agent/codec.h"
#include "core/agent/sheet.h"
#include "drive/agent.h"

struct sheet_reader {
    struct arena arena;
    struct buf bytes; /* `sheet` was read from these; none: nothing was read */
    struct gang_sheet sheet;
    struct str host_names;
};

void machine_sheet_keep(struct machine_sheet *sheet, const struct packed_sheet *packed)
{
    machine_sheet_drop(sheet);
    sheet->number = packed->number;
    buf_add_str(&sheet->bytes, packed->bytes);
}

void machine_sheet_drop(struct machine_sheet *sheet)
{
    sheet->number = 0;
    buf_done(&sheet->bytes);
}

struct sheet_reader *sheet_reader_new(void)
{
    return mem_alloc(sizeof(struct sheet_reader));
}

static void reader_clear(struct sheet_reader *reader)
{
    arena_done(&reader->arena);
    buf_done(&reader->bytes);
    *reader = (struct sheet_reader){0};
}

void sheet_reader_free(struct sheet_reader *reader)
{
    if (!reader)
        return;
    reader_clear(reader);
    mem_free(reader);
}

static int reader_read(struct sheet_reader *reader, struct str bytes, struct error *error)
{
    reader_clear(reader);
    reader->arena.limit_bytes = CODEC_ARENA_BYTES;
    int rc = codec_unpack_sheet(&reader->arena, bytes, &reader->sheet, error);
    if (rc < 0) {
        reader_clear(reader);
        return rc;
    }
    reader->arena.limit_bytes = 0;
    struct buf names BUF_CLEANUP = {0};
    sheet_write_host_names(&names, &reader->sheet);
    reader->host_names = arena_str(&reader->arena, buf_str(&names));
    buf_add_str(&reader->bytes, bytes);
    return 0;
}

int machine_sheet_put_back(const struct machine_sheet *sheet, struct sheet_reader *reader,
                           struct task_launch *launch, struct error *error)
{
    struct str bytes = buf_str(&sheet->bytes);
    if (launch->sheet_number != sheet->number)
        return error_set(error, ERROR_INVALID, "start of task %llu refers to a sheet that was not sent",
                         (unsigned long long)launch->task);
    int rc = str_equal(buf_str(&reader->bytes), bytes) ? 0 : reader_read(reader, bytes, error);
    if (rc < 0)
        return rc;
    sheet_put_back(launch, &reader->sheet, reader->host_names);
    return 0;
}
