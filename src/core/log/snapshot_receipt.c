#include "core/receipt/receipt.h"
#include "core/log/snapshot.h"

#include "base/check.h"

void snapshot_write_receipts(const struct receipts *receipts,
                             void (*put)(void *context, Snapshot__Record *record), void *context)
{
    for (const struct receipt *receipt = NULL; (receipt = receipts_next(receipts, receipt));) {
        CHECK(receipt->id.len == REQUEST_ID_BYTES);
        Snapshot__Receipt pb = SNAPSHOT__RECEIPT__INIT;
        Snapshot__Record record = SNAPSHOT__RECORD__INIT;
        record.kind_case = SNAPSHOT__RECORD__KIND_RECEIPT;
        record.receipt = &pb;
        pb.id.data = (uint8_t *)(uintptr_t)receipt->id.data; /* only read */
        pb.id.len = receipt->id.len;
        pb.content = receipt->content;
        pb.stamp_ns = receipt->stamp_ns;
        pb.code = receipt->code;
        pb.object = receipt->object;
        pb.name = (char *)(uintptr_t)receipt->name.data; /* only read; NUL-terminated */
        put(context, &record);
    }
}

bool snapshot_read_receipt(struct receipts *receipts, int64_t now_ns, const Snapshot__Receipt *pb)
{
    return receipts_restore(receipts, now_ns,
                            &(struct receipt){.id = {(const char *)pb->id.data, pb->id.len},
                                              .content = pb->content,
                                              .stamp_ns = pb->stamp_ns,
                                              .code = pb->code,
                                              .object = pb->object,
                                              .name = str_from(pb->name)});
}
