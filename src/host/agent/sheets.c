/* sheets.c - the sheets of gangs that starts refer to. Each machine keeps the bytes of its newest, which are
 * few; what they say of thousands of ranks is read once for all machines and starts of this process. */
#include "core/agent/codec.h"
#include "core/agent/sheet.h"
#include "host/agent/internal.h"

/* The sheet that was read last. */
struct local_sheet {
    struct arena arena;
    struct buf bytes; /* it was read from these */
    struct gang_sheet sheet;
    struct str host_names;
};

void local_sheet_keep(struct local_machine *machine, const struct packed_sheet *sheet)
{
    local_sheet_drop(machine);
    machine->sheet_number = sheet->number;
    buf_add_str(&machine->sheet_bytes, sheet->bytes);
}

void local_sheet_drop(struct local_machine *machine)
{
    machine->sheet_number = 0;
    buf_done(&machine->sheet_bytes);
}

static void sheet_free(struct local_sheet *read)
{
    if (!read)
        return;
    arena_done(&read->arena);
    buf_done(&read->bytes);
    mem_free(read);
}

static int sheet_read(struct str bytes, struct local_sheet **ret_read, struct error *error)
{
    struct local_sheet *read = mem_alloc(sizeof *read);
    read->arena.limit_bytes = CODEC_ARENA_BYTES;
    int rc = codec_unpack_sheet(&read->arena, bytes, &read->sheet, error);
    if (rc < 0) {
        sheet_free(read);
        return rc;
    }
    read->arena.limit_bytes = 0;
    struct buf names BUF_CLEANUP = {0};
    sheet_write_host_names(&names, &read->sheet);
    read->host_names = arena_str(&read->arena, buf_str(&names));
    buf_add_str(&read->bytes, bytes);
    *ret_read = read;
    return 0;
}

int local_sheet_put_back(struct local_machine *machine, struct task_launch *launch, struct error *error)
{
    struct agent_host *host = machine->host;
    struct str bytes = buf_str(&machine->sheet_bytes);
    if (launch->sheet_number != machine->sheet_number)
        return error_set(error, ERROR_INVALID, "start of task %llu refers to a sheet that was not sent",
                         (unsigned long long)launch->task);
    if (!host->sheet || !str_equal(buf_str(&host->sheet->bytes), bytes)) {
        struct local_sheet *read;
        int rc = sheet_read(bytes, &read, error);
        if (rc < 0)
            return rc;
        sheet_free(host->sheet);
        host->sheet = read;
    }
    sheet_put_back(launch, &host->sheet->sheet, host->sheet->host_names);
    return 0;
}

void local_sheets_free(struct agent_host *host)
{
    sheet_free(host->sheet);
    host->sheet = NULL;
}
