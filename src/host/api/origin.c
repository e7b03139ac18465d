#include "host/api/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    HOST_BYTES_MAX = 255 + 6, /* of a DNS name, and a port */
    SHOWN_BYTES_MAX = 128,
};

static bool same_name(struct str a, struct str b)
{
    return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

/* Splits "name:port", "1.2.3.4" or "[::1]:port". Returns false if the text is malformed. */
static bool split_host(struct str text, struct str *ret_name, struct str *ret_port)
{
    int64_t port;
    const char *end = text.len && text.data[0] == '[' ? memchr(text.data, ']', text.len) : NULL;
    if (text.len && text.data[0] == '[' && !end)
        return false;
    size_t len = end ? (size_t)(end + 1 - text.data) : 0;
    while (len < text.len && text.data[len] != ':')
        len++;
    *ret_name =
        end ? (struct str){text.data + 1, (size_t)(end - text.data) - 1} : (struct str){text.data, len};
    *ret_port = (struct str){0};
    if (end && text.data + len != end + 1)
        return false;
    if (len == text.len)
        return ret_name->len > 0;
    *ret_port = (struct str){text.data + len + 1, text.len - len - 1};
    return ret_name->len > 0 && str_to_i64(*ret_port, 0, 65535, &port);
}

/* Parses an address as IPv6, with IPv4 mapped into it. Returns false if `name` is not an address. */
static bool parse_address(struct str name, struct in6_addr *ret)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr v4;
    if (name.len == 0 || name.len >= sizeof text)
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = 0;
    if (inet_pton(AF_INET6, text, ret) == 1)
        return true;
    if (inet_pton(AF_INET, text, &v4) != 1)
        return false;
    memset(ret, 0, sizeof *ret);
    ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
    memcpy(&ret->s6_addr[12], &v4, sizeof v4);
    return true;
}

static bool is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

static bool is_this_end(const struct in6_addr *address, const struct sockaddr *end)
{
    struct in6_addr mapped = {0};
    if (!end)
        return false;
    if (end->sa_family == AF_INET6)
        return memcmp(address, &((const struct sockaddr_in6 *)(const void *)end)->sin6_addr,
                      sizeof *address) == 0;
    mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
    memcpy(&mapped.s6_addr[12], &((const struct sockaddr_in *)(const void *)end)->sin_addr, 4);
    return end->sa_family == AF_INET && memcmp(address, &mapped, sizeof mapped) == 0;
}

static bool is_given(struct str name, const struct origin_server *server)
{
    for (size_t i = 0; i < server->name_count; i++)
        if (same_name(name, str_from(server->names[i])))
            return true;
    return false;
}

static bool is_own_host(struct str name, const struct origin_server *server)
{
    struct in6_addr address;
    if (same_name(name, STR("localhost")) || is_given(name, server))
        return true;
    return parse_address(name, &address) && (is_loopback(&address) || is_this_end(&address, server->address));
}

static struct str port_or(struct str port, const char *standard)
{
    return port.len ? port : str_from(standard);
}

/* Returns whether the origin is the server's own. For a name that the operator gave, scheme and port may be
 * those of a proxy with TLS. */
static bool is_own_origin(const struct origin_headers *headers, const struct origin_server *server)
{
    struct str http = STR("http://"), https = STR("https://"), origin = headers->origin;
    struct str name, port, host, host_port;
    bool tls = str_starts(origin, https);
    if (!tls && !str_starts(origin, http))
        return false;
    size_t skip = tls ? https.len : http.len;
    if (!split_host((struct str){origin.data + skip, origin.len - skip}, &name, &port) ||
        !split_host(headers->host, &host, &host_port) || !same_name(name, host))
        return false;
    if (is_given(name, server))
        return true;
    const char *standard = tls ? "443" : "80";
    return tls == server->tls && str_equal(port_or(port, standard), port_or(host_port, standard));
}

/* Returns a header in a form that a message may show. */
static struct str shown(struct str header)
{
    return header.len <= SHOWN_BYTES_MAX && str_is_utf8(header) ? header : STR("(not shown)");
}

static int check_host(const struct origin_headers *headers, const struct origin_server *server,
                      struct error *error)
{
    struct str name, port;
    if (!headers->host.data) /* HTTP/1.0, which browsers do not use */
        return 0;
    if (headers->host.len > HOST_BYTES_MAX || !split_host(headers->host, &name, &port)) {
        error_set(error, ERROR_INVALID, "the Host header is not NAME or NAME:PORT");
        return 400;
    }
    if (server->tls || is_own_host(name, server))
        return 0;
    error_set(error, ERROR_INVALID,
              "the Host header names \"" STR_FORMAT "\", which is no name of this server: ask for localhost "
              "or the address that it listens on, or start the controller with --api-host NAME",
              STR_ARG(shown(name)));
    return 403;
}

int origin_check(const struct origin_headers *headers, const struct origin_server *server,
                 struct error *error)
{
    struct str site = headers->fetch_site;
    if (headers->repeated) {
        error_set(error, ERROR_INVALID, "the request has more than one Host or Origin header");
        return 400;
    }
    int code = check_host(headers, server, error);
    if (code)
        return code;
    if (headers->origin.data && !is_own_origin(headers, server)) {
        error_set(error, ERROR_INVALID,
                  "the request comes from a web page of another origin, \"" STR_FORMAT
                  "\": only pages of this server may send requests to it",
                  STR_ARG(shown(headers->origin)));
        return 403;
    }
    if (site.data && !str_is(site, "same-origin") && !str_is(site, "none")) {
        error_set(error, ERROR_INVALID,
                  "the request comes from a web page of another site (Sec-Fetch-Site: " STR_FORMAT
                  "): only pages of this server may send requests to it",
                  STR_ARG(shown(site)));
        return 403;
    }
    if (!server->tls && headers->upgrade && headers->origin.data && !headers->token) {
        error_set(
            error, ERROR_INVALID,
            "the request asks for an upgrade over plain HTTP and has an Origin, as web pages' have: ask "
            "over HTTPS, without Origin, or with a bearer token");
        return 403;
    }
    if (!server->tls && headers->body && str_trim(headers->content_type).len == 0) {
        error_set(error, ERROR_INVALID,
                  "the request has a body without Content-Type: send Content-Type: application/json or "
                  "application/yaml");
        return 415;
    }
    return 0;
}
