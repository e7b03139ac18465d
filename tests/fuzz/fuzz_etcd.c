/* Lines and groups of the log on etcd: whatever is accepted is within its limits, and lines are written again
 * as they were read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "host/store/etcd/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size}, bytes;
    struct buf again = {0};
    struct etcd_head head;
    struct etcd_row row;
    struct etcd_replica replica;
    struct etcd_group group;
    uint64_t seq;
    uint32_t part, crc;
    int64_t stamp_ns;
    if (etcd_head_read(text, &head)) {
        etcd_head_write(&head, &again);
        CHECK(str_equal(buf_str(&again), text));
    }
    buf_clear(&again);
    if (etcd_row_read(text, &row)) {
        etcd_row_write(&row, &again);
        CHECK(str_equal(buf_str(&again), text));
    }
    buf_clear(&again);
    if (etcd_replica_read(text, &replica)) {
        etcd_replica_write(&replica, &again);
        CHECK(str_equal(buf_str(&again), text));
    }
    if (etcd_key_read(text, "/p/", ETCD_GROUP, &seq, &part)) {
        struct etcd_key key = etcd_key_of("/p/", ETCD_GROUP, seq, part);
        CHECK(str_equal(etcd_key_str(&key), text));
    }
    if (etcd_group_open(text, &group)) {
        size_t taken = 0;
        CHECK(group.count > 0 && group.first_seq > 0);
        while (etcd_group_next(&group, &stamp_ns, &bytes, &crc))
            taken += ETCD_RECORD_HEAD_BYTES + bytes.len;
        CHECK(taken + group.rest.len + ETCD_GROUP_HEAD_BYTES == size);
    }
    buf_done(&again);
    return 0;
}
