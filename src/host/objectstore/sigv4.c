#include "host/objectstore/sigv4.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/check.h"
#include "base/hash.h"

enum { DIGEST = 32 };

void sigv4_encode(struct buf *out, struct str text, bool path)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '_' || c == '.' || c == '~' || (path && c == '/');
        if (plain)
            buf_add_char(out, c);
        else
            buf_printf(out, "%%%02X", (unsigned char)c);
    }
}

void sigv4_query(struct buf *out, const struct sigv4_pair *query, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(out, '&');
        sigv4_encode(out, str_from(query[i].name), false);
        buf_add_char(out, '=');
        sigv4_encode(out, str_from(query[i].value), false);
    }
}

void sigv4_hash(struct str bytes, char ret_hex[SIGV4_HEX_SIZE])
{
    uint8_t digest[DIGEST];
    int rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.len ? bytes.data : "", bytes.len, digest);
    CHECK(rc == 0);
    hex_encode(digest, DIGEST, ret_hex);
}

static void hmac(const void *key, size_t key_len, struct str text, uint8_t ret_digest[DIGEST])
{
    int rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_len, text.data, text.len, ret_digest);
    CHECK(rc == 0);
}

static void add_signed_names(struct buf *out, const struct sigv4_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        buf_printf(out, "%s%s", i > 0 ? ";" : "", request->headers[i].name);
}

static void canonical(struct buf *out, const struct sigv4_request *request)
{
    buf_printf(out, "%s\n" STR_FORMAT "\n", request->method, STR_ARG(request->path));
    sigv4_query(out, request->query, request->query_count);
    buf_add_char(out, '\n');
    for (size_t i = 0; i < request->header_count; i++) {
        struct str value = str_trim(str_from(request->headers[i].value));
        buf_printf(out, "%s:" STR_FORMAT "\n", request->headers[i].name, STR_ARG(value));
    }
    buf_add_char(out, '\n');
    add_signed_names(out, request);
    buf_printf(out, "\n%s", request->payload);
}

void sigv4_authorization(struct buf *out, const struct sigv4_request *request)
{
    struct buf text BUF_CLEANUP = {0}, key BUF_CLEANUP = {0};
    char hex[SIGV4_HEX_SIZE];
    uint8_t digest[DIGEST];
    canonical(&text, request);
    sigv4_hash(buf_str(&text), hex);
    buf_clear(&text);
    buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", request->date, request->date,
               request->region, request->service, hex);
    buf_printf(&key, "AWS4%s", request->secret_key);
    hmac(key.data, key.len, (struct str){request->date, 8}, digest);
    hmac(digest, DIGEST, str_from(request->region), digest);
    hmac(digest, DIGEST, str_from(request->service), digest);
    hmac(digest, DIGEST, STR("aws4_request"), digest);
    hmac(digest, DIGEST, buf_str(&text), digest);
    hex_encode(digest, DIGEST, hex);
    gnutls_memset(key.data, 0, key.len);
    buf_printf(out,
               "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request,SignedHeaders=", request->access_key,
               request->date, request->region, request->service);
    add_signed_names(out, request);
    buf_printf(out, ",Signature=%s", hex);
}
