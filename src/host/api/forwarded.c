#include "host/api/forwarded.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/base64.h"
#include "base/check.h"

static const char leaf_name[] = "Client-Cert", chain_name[] = "Client-Cert-Chain",
                  from_name[] = "X-Forwarded-For";

/* --- writing ------------------------------------------------------------------------------------------- */

static bool is_ours(struct str line)
{
    struct str name, value;
    return str_cut(line, ':', &name, &value) &&
           (http_is_word(name, leaf_name) || http_is_word(name, chain_name) || http_is_word(name, from_name));
}

static void put_cert(struct buf *out, const struct buf *cert)
{
    buf_add_char(out, ':');
    base64_encode(buf_str(cert), out);
    buf_add_char(out, ':');
}

static void put_chain(struct buf *out, const struct api_tls_chain *chain)
{
    if (chain->count > 0) {
        buf_printf(out, "%s: ", leaf_name);
        put_cert(out, &chain->certs[0]);
        buf_add_str(out, STR("\r\n"));
    }
    for (unsigned i = 1; i < chain->count; i++) {
        if (i == 1)
            buf_printf(out, "%s: ", chain_name);
        else
            buf_add_str(out, STR(", "));
        put_cert(out, &chain->certs[i]);
    }
    if (chain->count > 1)
        buf_add_str(out, STR("\r\n"));
}

static void put_address(struct buf *out, const struct sockaddr_storage *from)
{
    const void *bytes = from->ss_family == AF_INET
                            ? (const void *)&((const struct sockaddr_in *)from)->sin_addr
                            : &((const struct sockaddr_in6 *)from)->sin6_addr;
    char text[INET6_ADDRSTRLEN];
    if ((from->ss_family == AF_INET || from->ss_family == AF_INET6) &&
        inet_ntop(from->ss_family, bytes, text, sizeof text))
        buf_printf(out, "%s: %s\r\n", from_name, text);
}

void forwarded_put(struct buf *out, struct str head, const struct api_tls_chain *chain,
                   const struct sockaddr_storage *from)
{
    struct str line, rest;
    CHECK(head.len > 4 && memcmp(head.data + head.len - 4, "\r\n\r\n", 4) == 0);
    head.len -= 2; /* the empty line follows our lines */
    for (bool first = true; str_cut(head, '\n', &line, &rest); first = first && line.len <= 1, head = rest)
        if (first || !is_ours(line)) /* the request line, and empty lines before it, are not headers */
            buf_add(out, line.data, line.len + 1);
    put_chain(out, chain);
    put_address(out, from);
    buf_add_str(out, STR("\r\n"));
}

/* --- reading ------------------------------------------------------------------------------------------- */

/* Parses ":BASE64:" as the next certificate of the chain. */
static bool take_cert(struct str text, struct api_tls_chain *chain)
{
    text = str_trim(text);
    if (chain->count == PKI_CHAIN_MAX || text.len < 3 || text.data[0] != ':' ||
        text.data[text.len - 1] != ':')
        return false;
    struct buf *cert = &chain->certs[chain->count++];
    return base64_decode((struct str){text.data + 1, text.len - 2}, cert) && cert->len > 0;
}

static bool take_certs(struct str text, struct api_tls_chain *chain)
{
    struct str item, rest;
    while (str_cut(text, ',', &item, &rest)) {
        if (!take_cert(item, chain))
            return false;
        text = rest;
    }
    return take_cert(text, chain);
}

/* Returns whether at most one line has this name, and sets *ret_value to its value (.data NULL: absent). */
static bool take_only(const struct http_head *head, const char *name, struct str *ret_value)
{
    size_t count = 0;
    for (size_t i = 0; i < head->header_count; i++)
        count += http_is_word(head->headers[i].name, name);
    *ret_value = http_head_value(head, name);
    return count <= 1;
}

bool forwarded_chain(const struct http_head *head, struct api_tls_chain *ret_chain)
{
    struct str leaf, others;
    *ret_chain = (struct api_tls_chain){0};
    bool good = take_only(head, leaf_name, &leaf) && take_only(head, chain_name, &others) &&
                (leaf.data || !others.data);
    good =
        good && (!leaf.data || take_cert(leaf, ret_chain)) && (!others.data || take_certs(others, ret_chain));
    if (!good)
        api_tls_chain_done(ret_chain);
    return good;
}

struct str forwarded_address(const struct http_head *head)
{
    struct str value = http_head_value(head, from_name);
    char text[INET6_ADDRSTRLEN];
    uint8_t bytes[sizeof(struct in6_addr)];
    if (!value.data || value.len >= sizeof text)
        return (struct str){0};
    memcpy(text, value.data, value.len);
    text[value.len] = 0;
    bool good = inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
    return good ? value : (struct str){0};
}
