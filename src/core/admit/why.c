/* why.c - explains missing quota in numbers. (sched/place_why.c explains missing machines.) */
#include "core/admit/internal.h"

void amount_format(struct buf *out, struct str resource, int64_t amount)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    if (str_is(resource, "cpu")) {
        if (amount % 1000)
            buf_printf(out, "%lldm", (long long)amount);
        else
            buf_printf(out, "%lld", (long long)(amount / 1000));
        return;
    }
    size_t unit = 0;
    bool bytes = str_is(resource, "memory") || str_is(resource, "ephemeral-storage");
    while (bytes && amount && amount % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(*units)) {
        amount /= 1024;
        unit++;
    }
    buf_printf(out, "%lld%s", (long long)amount, units[unit]);
}

static int64_t not_negative(int64_t value)
{
    return value > 0 ? value : 0;
}

/* Appends "ClusterQueue team-a: google.com/tpu in flavor v5e: needs 64, 48 of 128 free, may borrow 0". */
void why_quota(const struct admit *admit, const struct cluster_queue *queue, uint32_t cell, int64_t needs,
               struct buf *out)
{
    CHECK(cell < admit->tree.quota.cell_count && needs >= 0);
    const struct tree *tree = &admit->tree;
    const struct quota_cell *own = &tree->quota.nodes[queue->node].cells[cell];
    struct str resource = tree->cell_resources[cell];
    int64_t free = not_negative(own->subtree - own->usage);
    int64_t borrow = not_negative(quota_available(&tree->quota, queue->node, cell) - free);
    buf_printf(out, "ClusterQueue " STR_FORMAT ": " STR_FORMAT " in flavor " STR_FORMAT ": needs ",
               STR_ARG(queue->name), STR_ARG(resource), STR_ARG(tree->cell_flavors[cell]));
    amount_format(out, resource, needs);
    buf_printf(out, ", ");
    amount_format(out, resource, free);
    buf_printf(out, " of ");
    amount_format(out, resource, own->subtree);
    buf_printf(out, " free, may borrow ");
    amount_format(out, resource, borrow);
}
