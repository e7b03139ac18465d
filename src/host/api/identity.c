#include "host/api/identity.h"

#include <ctype.h>
#include <stdio.h>

#include "host/api/forwarded.h"

/* --- headers ------------------------------------------------------------------------------------------- */

enum { AS_GROUPS_MAX = 256, AS_EXTRAS_MAX = 64 };

/* Returns the key of "Impersonate-Extra-acme.org%2fproject". Header names ignore case, and the key may be
 * escaped. */
static struct str extra_key(struct arena *arena, struct str name)
{
    struct buf key BUF_CLEANUP = {0};
    for (size_t i = 0; i < name.len; i++) {
        unsigned code = (unsigned char)tolower((unsigned char)name.data[i]);
        if (code == '%' && i + 2 < name.len && isxdigit((unsigned char)name.data[i + 1]) &&
            isxdigit((unsigned char)name.data[i + 2])) {
            (void)sscanf(name.data + i + 1, "%2x", &code); /* the header's colon or value ends the text */
            i += 2;
        }
        buf_add_char(&key, (char)code);
    }
    return arena_str(arena, buf_str(&key));
}

static void see_extra(struct guard_headers *headers, struct arena *arena, struct str name, struct str value)
{
    struct access_extra extra = {extra_key(arena, name), arena_str(arena, value)};
    if (headers->as_extra_count == AS_EXTRAS_MAX || !str_is_utf8(extra.key) || !str_is_utf8(extra.value))
        return;
    if (!headers->as_extras)
        headers->as_extras = ARENA_ARRAY(arena, struct access_extra, AS_EXTRAS_MAX);
    headers->as_extras[headers->as_extra_count++] = extra;
}

static void see_header(struct guard_headers *headers, struct arena *arena, struct http_header header)
{
    static const struct str extra = {"Impersonate-Extra-", 18};
    struct str name = header.name, value = header.value;
    if (http_is_word(name, "Authorization"))
        headers->authorization = arena_str(arena, value);
    else if (http_is_word(name, "Impersonate-User"))
        headers->as_user = arena_str(arena, value);
    else if (http_is_word(name, "Impersonate-Uid"))
        headers->as_uid = arena_str(arena, value);
    else if (name.len > extra.len && strncasecmp(name.data, extra.data, extra.len) == 0)
        see_extra(headers, arena, (struct str){name.data + extra.len, name.len - extra.len}, value);
    else if (http_is_word(name, "Impersonate-Group") && headers->as_group_count < AS_GROUPS_MAX) {
        if (!headers->as_groups)
            headers->as_groups = ARENA_ARRAY(arena, struct str, AS_GROUPS_MAX);
        headers->as_groups[headers->as_group_count++] = arena_str(arena, value);
    }
}

/* --- certificates -------------------------------------------------------------------------------------- */

void identity_controllers_done(struct identity_controllers *controllers)
{
    for (unsigned i = 0; i < IDENTITY_CONTROLLERS; i++)
        api_tls_peer_free(controllers->known[i]);
    *controllers = (struct identity_controllers){0};
}

/* Returns whether the connection's certificate is a controller's. */
static bool is_controllers(const struct identity *identity, struct access *access, int64_t now_ns)
{
    struct identity_controllers *controllers = identity->controllers;
    const struct api_tls_chain *chain = api_tls_peer_chain(identity->tls);
    for (unsigned i = 0; i < IDENTITY_CONTROLLERS; i++)
        if (controllers->known[i] && api_tls_chain_equal(api_tls_peer_chain(controllers->known[i]), chain))
            return api_tls_peer_controls(controllers->known[i], access, now_ns);
    /* an unknown certificate must not replace a known one */
    if (!api_tls_peer_controls(identity->tls, access, now_ns))
        return false;
    struct api_tls_chain copy = api_tls_chain_copy(chain);
    struct api_tls_peer **place = &controllers->known[controllers->next++ % IDENTITY_CONTROLLERS];
    api_tls_peer_free(*place);
    *place = api_tls_peer_new(&copy);
    return true;
}

const struct access_user *identity_certificate(const struct identity *identity, struct access *access,
                                               int64_t now_ns, bool *ret_bad)
{
    *ret_bad = false;
    if (!identity->tls)
        return NULL;
    if (!identity->forwards)
        return api_tls_peer_user(identity->tls, access, now_ns, ret_bad);
    *ret_bad = true; /* a forwarded request without a known client has no user */
    return identity->client && is_controllers(identity, access, now_ns)
               ? api_tls_peer_user(identity->client, access, now_ns, ret_bad)
               : NULL;
}

/* Reads the client of a request that a controller forwards, as identity_read(). */
static int see_client(struct identity *identity, struct access *access, int64_t now_ns,
                      const struct http_head *head)
{
    struct api_tls_chain chain;
    if (!is_controllers(identity, access, now_ns))
        return 421;
    if (!forwarded_chain(head, &chain))
        return 400;
    struct str address = forwarded_address(head);
    snprintf(identity->client_address, sizeof identity->client_address, STR_FORMAT, STR_ARG(address));
    if (identity->client && api_tls_chain_equal(api_tls_peer_chain(identity->client), &chain)) {
        api_tls_chain_done(&chain);
        return 0; /* that chain was checked before */
    }
    api_tls_peer_free(identity->client);
    identity->client = api_tls_peer_new(&chain);
    return 0;
}

int identity_read(struct identity *identity, struct access *access, int64_t now_ns,
                  const struct http_head *head, struct arena *arena, struct guard_headers *ret_headers)
{
    int refusal = identity->forwards ? see_client(identity, access, now_ns, head) : 0;
    bool passed_on = identity->forwards && refusal == 0 && identity->client_address[0];
    ret_headers->source =
        arena_str(arena, str_from(passed_on ? identity->client_address : identity->address));
    for (size_t i = 0; refusal == 0 && i < head->header_count; i++)
        see_header(ret_headers, arena, head->headers[i]);
    return refusal;
}

void identity_done(struct identity *identity)
{
    api_tls_peer_free(identity->tls);
    api_tls_peer_free(identity->client);
    identity->tls = identity->client = NULL;
}
