#include "host/store/pack.h"

#include <zstd.h>

#include "base/check.h"

enum { PORTION_BYTES = 512 << 10, LEVEL = 1 };

void store_packer_begin(struct store_packer *packer, struct str bytes)
{
    *packer = (struct store_packer){.input = bytes, .context = ZSTD_createCCtx()};
    CHECK(packer->context);
    (void)ZSTD_CCtx_setParameter(packer->context, ZSTD_c_compressionLevel, LEVEL);
    (void)ZSTD_CCtx_setParameter(packer->context, ZSTD_c_checksumFlag, 1);
    (void)ZSTD_CCtx_setPledgedSrcSize(packer->context, bytes.len);
}

void store_packer_step(struct store_packer *packer)
{
    CHECK(!packer->all);
    size_t portion = packer->input.len < PORTION_BYTES ? packer->input.len : PORTION_BYTES;
    bool last = portion == packer->input.len;
    ZSTD_inBuffer in = {packer->input.data, portion, 0};
    size_t left;
    do {
        buf_reserve(&packer->packed, ZSTD_CStreamOutSize());
        ZSTD_outBuffer out = {packer->packed.data, packer->packed.cap - 1, packer->packed.len};
        left = ZSTD_compressStream2(packer->context, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        CHECK(!ZSTD_isError(left));
        packer->packed.len = out.pos;
    } while (last ? left != 0 : in.pos < in.size);
    if (portion > 0)
        packer->input = (struct str){packer->input.data + portion, packer->input.len - portion};
    packer->all = last;
}

void store_packer_done(struct store_packer *packer)
{
    (void)ZSTD_freeCCtx(packer->context);
    buf_done(&packer->packed);
}

void store_unpacker_begin(struct store_unpacker *unpacker, struct buf *out, uint64_t raw_bytes)
{
    *unpacker = (struct store_unpacker){.context = ZSTD_createDCtx(), .out = out, .raw_bytes = raw_bytes};
    CHECK(unpacker->context);
    buf_clear(out);
    buf_reserve(out, raw_bytes + 1);
}

const char *store_unpacker_step(struct store_unpacker *unpacker, struct str bytes)
{
    ZSTD_inBuffer in = {bytes.data, bytes.len, 0};
    while (in.pos < in.size) {
        if (unpacker->whole)
            return "there are bytes behind its end";
        ZSTD_outBuffer out = {unpacker->out->data, unpacker->raw_bytes, unpacker->out->len};
        size_t left = ZSTD_decompressStream(unpacker->context, &out, &in);
        if (ZSTD_isError(left))
            return ZSTD_getErrorName(left);
        unpacker->out->len = out.pos;
        unpacker->whole = left == 0;
        if (left != 0 && out.pos == out.size && in.pos < in.size)
            return "it is longer than its row says";
    }
    return NULL;
}

bool store_unpacker_done(struct store_unpacker *unpacker)
{
    (void)ZSTD_freeDCtx(unpacker->context);
    bool whole = unpacker->whole && unpacker->out->len == unpacker->raw_bytes;
    if (whole)
        unpacker->out->data[unpacker->out->len] = 0;
    return whole;
}
