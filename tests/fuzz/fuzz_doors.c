/* Bytes of strangers that are not known yet: the headers by which a browser's requests are told apart, the
 * first bytes of a connection, a namespace's range of users, and text on its way to a terminal. */
#include <netinet/in.h>

#include "cmd/client.h"
#include "core/spec/spec.h"
#include "host/api/origin.h"
#include "host/wire/internal.h"

/* Cuts a line off `rest`; .data NULL: the header is absent. */
static struct str header(struct str *rest)
{
    struct str line;
    if (!str_cut(*rest, '\n', &line, rest))
        return (struct str){0};
    return line;
}

static void fuzz_origin(struct str text)
{
    static const char *const names[] = {"phalanx.example"};
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_port = htons(7070)};
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int tls = 0; tls < 2; tls++) {
        struct str rest = text;
        struct error error = {0};
        struct origin_headers headers = {
            .body = text.len & 1, .upgrade = text.len & 2, .token = text.len & 4};
        headers.host = header(&rest);
        headers.origin = header(&rest);
        headers.fetch_site = header(&rest);
        headers.content_type = header(&rest);
        const struct origin_server server = {
            .tls = tls, .address = (const struct sockaddr *)&loopback, .names = names, .name_count = 1};
        int status = origin_check(&headers, &server, &error);
        CHECK(status == 0 || (status >= 400 && status < 500 && error.text[0]));
        if (headers.fetch_site.data && str_is(headers.fetch_site, "cross-site"))
            CHECK(status != 0);
        if (!tls && headers.upgrade && headers.origin.data && !headers.token)
            CHECK(status != 0);
    }
}

static void fuzz_first(struct str text)
{
    static struct wire_conn plain, secure;
    enum wire_reason reason;
    const char *why = NULL;
    if (text.len == 0)
        return;
    if (wire_first_wrong(&plain, text, &reason, &why))
        CHECK(why && why[0]);
    if (wire_last_wrong(&plain, text, &reason, &why))
        CHECK(why && reason == WIRE_PEER_TLS);
    secure.tls = (struct conn_tls *)(void *)&plain; /* that it is there is all that counts */
    bool record = text.data[0] == 22 && (text.len < 2 || text.data[1] == 3);
    if (wire_first_wrong(&secure, text, &reason, &why))
        CHECK(!record && (reason == WIRE_PEER_PLAIN || reason == WIRE_PEER_HTTP) &&
              wire_first_answer(reason).len < 32);
    CHECK(!wire_last_wrong(&secure, text, &reason, &why));
}

/* Does a terminal find an order in it, other than the end of a line or a tab? */
static bool has_order(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        unsigned char next = i + 1 < text.len ? (unsigned char)text.data[i + 1] : 0;
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f ||
            (byte == 0xc2 && next >= 0x80 && next < 0xa0))
            return true;
    }
    return false;
}

/* Cleaned text has no order and as many bytes. What was escaped has only those that JSON escapes itself, and
 * cleaning leaves it as it is where JSON did so. */
static void fuzz_output(struct str text)
{
    struct buf clean BUF_CLEANUP = {0}, escaped BUF_CLEANUP = {0}, colored BUF_CLEANUP = {0};
    buf_add_str(&clean, text);
    output_clean(&clean, false);
    CHECK(clean.len == text.len && !has_order(buf_str(&clean)));
    buf_add_str(&colored, text);
    output_clean(&colored, true);
    CHECK(colored.len == text.len);
    buf_add_str(&escaped, text);
    output_escape(&escaped);
    CHECK(escaped.len >= text.len);
    for (size_t i = 0; i < escaped.len; i++) {
        unsigned char byte = (unsigned char)escaped.data[i];
        unsigned char next = i + 1 < escaped.len ? (unsigned char)escaped.data[i + 1] : 0;
        CHECK(byte != 0x7f && (byte != 0xc2 || next < 0x80 || next >= 0xa0));
    }
}

static void fuzz_range(struct str text)
{
    struct uid_range range;
    if (uid_range_read(text, &range))
        CHECK(range.count > 0 && (uint64_t)range.from + range.count <= (uint64_t)UINT32_MAX + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    fuzz_origin(text);
    fuzz_first(text);
    fuzz_range(text);
    fuzz_output(text);
    return 0;
}
