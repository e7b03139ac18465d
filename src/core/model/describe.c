#include "core/model/model.h"

#include "base/vec.h"

/* A row of the table: adjacent like blocks of one pod. */
struct row {
    uint32_t first, blocks; /* in cluster->blocks */
    uint64_t machines, chips, spares;
};
enum { COLUMNS = 7, NAMES_SHOWN = 8 };
struct line {
    struct str cells[COLUMNS];
};

static struct row row_of(const struct cluster *cluster, uint32_t index)
{
    CHECK(index < cluster->block_count);
    const struct block *block = &cluster->blocks[index];
    struct row row = {.first = index, .blocks = 1, .machines = block->count};
    CHECK(block->count > 0 && block->first + block->count <= cluster->machine_count);
    for (machine_id i = block->first; i < block->first + block->count; i++) {
        row.chips += cluster->machines[i].chip_count;
        row.spares += cluster->machines[i].spare;
    }
    return row;
}

static bool alike(const struct cluster *cluster, const struct row *run, const struct row *next)
{
    const struct block *a = &cluster->blocks[run->first], *b = &cluster->blocks[next->first];
    return a->pod == b->pod && a->kind == b->kind && run->machines == next->machines * run->blocks &&
           run->chips == next->chips * run->blocks && run->spares == next->spares * run->blocks;
}

static struct str span(struct arena *arena, struct str first, struct str last)
{
    return str_equal(first, last)
               ? first
               : arena_printf(arena, STR_FORMAT " .. " STR_FORMAT, STR_ARG(first), STR_ARG(last));
}

static struct str number(struct arena *arena, uint64_t value)
{
    return arena_printf(arena, "%llu", (unsigned long long)value);
}

static struct line line_of(const struct cluster *cluster, struct arena *arena, const struct row *row)
{
    CHECK(row->blocks > 0 && row->first + row->blocks <= cluster->block_count);
    const struct block *first = &cluster->blocks[row->first],
                       *last = &cluster->blocks[row->first + row->blocks - 1];
    const struct machine *from = &cluster->machines[first->first];
    const struct machine *to = &cluster->machines[last->first + last->count - 1];
    const char *kind = first->kind == BLOCK_CUBE ? "cube" : "rack";
    struct str what = row->blocks == 1 ? str_from(kind) : arena_printf(arena, "%u %ss", row->blocks, kind);
    struct str block = arena_printf(arena, STR_FORMAT " (" STR_FORMAT ")",
                                    STR_ARG(span(arena, first->name, last->name)), STR_ARG(what));
    return (struct line){{cluster->pods[first->pod].name, block, number(arena, row->machines),
                          number(arena, row->chips), number(arena, row->spares),
                          span(arena, from->name, to->name), span(arena, from->address, to->address)}};
}

static void print_table(const struct line *lines, size_t count, struct buf *out)
{
    static const bool right[COLUMNS] = {false, false, true, true, true, false, false};
    size_t width[COLUMNS] = {0};
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            width[c] = lines[i].cells[c].len > width[c] ? lines[i].cells[c].len : width[c];
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < COLUMNS; c++) {
            struct str cell = lines[i].cells[c];
            CHECK(cell.len <= width[c] && width[c] <= INT32_MAX);
            int pad = (int)(width[c] - cell.len);
            if (right[c])
                buf_printf(out, "%*s", pad, "");
            buf_add_str(out, cell);
            if (c + 1 == COLUMNS)
                buf_add_char(out, '\n');
            else
                buf_printf(out, "%*s", right[c] ? 3 : pad + 3, "");
        }
}

static void describe_blocks(const struct cluster *cluster, struct buf *out)
{
    struct arena arena ARENA_CLEANUP = {0};
    VEC(struct line) lines = {0};
    struct line head = {{STR("POD"), STR("BLOCK"), STR("MACHINES"), STR("CHIPS"), STR("SPARES"), STR("NAMES"),
                         STR("ADDRESSES")}};
    struct row run = {0};
    vec_push(&lines, head);
    for (uint32_t b = 0; b < cluster->block_count; b++) {
        struct row row = row_of(cluster, b);
        if (run.blocks && alike(cluster, &run, &row)) {
            run.blocks++;
            run.machines += row.machines;
            run.chips += row.chips;
            run.spares += row.spares;
            continue;
        }
        if (run.blocks)
            vec_push(&lines, line_of(cluster, &arena, &run));
        run = row;
    }
    if (run.blocks)
        vec_push(&lines, line_of(cluster, &arena, &run));
    print_table(lines.items, lines.len, out);
    vec_done(&lines);
}

/* Appends a line such as "spares: m-6, m-12 and 14 more" for the machines for which `chosen` returns true.
 * Appends nothing if there are none. */
static void describe_some(const struct cluster *cluster, const char *title,
                          bool (*chosen)(const struct machine *), struct buf *out)
{
    size_t count = 0;
    for (size_t i = 0; i < cluster->machine_count; i++) {
        const struct machine *machine = &cluster->machines[i];
        if (!chosen(machine))
            continue;
        if (count < NAMES_SHOWN)
            buf_printf(out, "%s%s" STR_FORMAT, count ? "" : title, count ? ", " : ": ",
                       STR_ARG(machine->name));
        count++;
    }
    if (count > NAMES_SHOWN)
        buf_printf(out, " and %zu more", count - NAMES_SHOWN);
    if (count)
        buf_add_char(out, '\n');
}

static bool is_spare(const struct machine *machine)
{
    return machine->spare;
}

static bool is_cordoned(const struct machine *machine)
{
    return machine->cordoned;
}

static void count_of(struct buf *out, const char *before, uint64_t count, const char *thing)
{
    buf_printf(out, "%s%llu %s%s", before, (unsigned long long)count, thing, count == 1 ? "" : "s");
}

static void describe_settings(const struct cluster *cluster, struct buf *out)
{
    char lease[24], heartbeat[24], window[24];
    duration_format(cluster->policy.lease_ns, lease);
    duration_format(cluster->policy.heartbeat_ns, heartbeat);
    duration_format(cluster->policy.backfill_window_ns, window);
    buf_printf(out, "lease %s, heartbeat %s, backfill window %s, chips are " STR_FORMAT "\n", lease,
               heartbeat, window, STR_ARG(cluster->chip_resource));
    if (cluster->checkpoint_dir.len)
        buf_printf(out, "checkpoints in " STR_FORMAT "\n", STR_ARG(cluster->checkpoint_dir));
    for (size_t i = 0; i < cluster->priority_classes.len; i++)
        buf_printf(out, "%s" STR_FORMAT " " STR_FORMAT "%s",
                   i ? ", " : "priority classes: ", STR_ARG(cluster->priority_classes.items[i].key),
                   STR_ARG(cluster->priority_classes.items[i].value),
                   i + 1 == cluster->priority_classes.len ? "\n" : "");
}

void cluster_describe(const struct cluster *cluster, struct buf *out)
{
    uint64_t spares = 0, cubes = 0;
    for (size_t i = 0; i < cluster->machine_count; i++)
        spares += cluster->machines[i].spare;
    for (size_t i = 0; i < cluster->block_count; i++)
        cubes += cluster->blocks[i].kind == BLOCK_CUBE;
    buf_printf(out, "cluster " STR_FORMAT, STR_ARG(cluster->name));
    count_of(out, ": ", cluster->machine_count, "machine");
    count_of(out, ", ", cluster->chip_count, "chip");
    count_of(out, ", ", spares, "spare");
    count_of(out, "; ", cluster->pod_count, "pod");
    if (cubes)
        count_of(out, ", ", cubes, "cube");
    if (cluster->block_count > cubes)
        count_of(out, ", ", cluster->block_count - cubes, "rack");
    buf_add_char(out, '\n');
    describe_settings(cluster, out);
    buf_add_char(out, '\n');
    describe_blocks(cluster, out);
    if (spares)
        buf_add_char(out, '\n');
    describe_some(cluster, "spares", is_spare, out);
    describe_some(cluster, "cordoned", is_cordoned, out);
}
