/* Any bytes as the answer of an S3 server, as the address of a store and as a file of credentials: nothing
 * outside is read, and what is taken is within its limits. */
#include <stdlib.h>

#include "host/objectstore/answer.h"
#include "host/objectstore/secrets.h"
#include "host/objectstore/transfer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(struct str text)
{
    struct arena arena = {0};
    struct object_list list = {0};
    struct answer_page page;
    uint64_t step;
    uint32_t attempt, rank;
    (void)answer_list(text, &arena, &list, &page);
    for (size_t i = 0; i < list.entries.len; i++) {
        if (list.entries.items[i].key.len == 0 || list.entries.items[i].bytes > INT64_MAX)
            abort();
        (void)shard_key_parse(list.entries.items[i].key, &step, &attempt, &rank);
    }
    vec_done(&list.entries);
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct answer_error error;
    struct store_secrets secrets;
    struct store_place place;
    char id[STORE_ID_MAX];
    check_list(text);
    answer_error(text, &error);
    if (strlen(error.code) >= sizeof error.code || strlen(error.message) >= sizeof error.message)
        abort();
    if (answer_upload_id(text, id) && (id[0] == 0 || strlen(id) >= sizeof id))
        abort();
    (void)secrets_read(text, "default", &secrets);
    struct buf address BUF_CLEANUP = {0};
    buf_printf(&address, "s3://bucket/" STR_FORMAT, STR_ARG(text));
    if (store_place_parse(address.data, &place, NULL) == 0 && (place.parallel == 0 || place.part_bytes == 0))
        abort();
    return 0;
}
