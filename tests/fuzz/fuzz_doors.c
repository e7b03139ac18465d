/* Bytes of strangers that are not known yet: the headers by which a browser's requests are told apart, the
 * first bytes of a connection, and a namespace's range of users. */
#include <netinet/in.h>

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
        struct origin_headers headers = {.repeated = false, .body = text.len % 2};
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
    }
}

static void fuzz_first(struct str text)
{
    static struct wire_conn plain;
    enum wire_reason reason;
    const char *why = NULL;
    if (text.len == 0)
        return;
    if (wire_first_wrong(&plain, text, &reason, &why))
        CHECK(why && why[0]);
    if (wire_last_wrong(&plain, text, &reason, &why))
        CHECK(why && reason == WIRE_PEER_TLS);
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
    return 0;
}
