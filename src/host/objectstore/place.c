#include <stdio.h>

#include "base/units.h"
#include "host/objectstore/objectstore.h"

enum { PART_DEFAULT = 16 << 20, PARALLEL_DEFAULT = 4, PARALLEL_MAX = 32 };

#define PART_MIN    (INT64_C(5) << 20)
#define PART_MAX    (INT64_C(5) << 30)
#define PATIENCE_NS (300 * NS_PER_SECOND)

static bool percent_decode(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned byte = (unsigned char)text.data[i];
        if (byte == '%') {
            char digits[3] = {0};
            if (text.len - i < 3)
                return false;
            memcpy(digits, text.data + i + 1, 2);
            if (strspn(digits, "0123456789abcdefABCDEF") != 2 || sscanf(digits, "%x", &byte) != 1)
                return false;
            i += 2;
        }
        if (byte < ' ' || byte == 0x7f)
            return false;
        buf_add_char(out, (char)byte);
    }
    return true;
}

static bool copy(char *to, size_t size, struct str text)
{
    if (text.len >= size)
        return false;
    mem_copy(to, text.data, text.len);
    to[text.len] = 0;
    return true;
}

static bool take_size(struct str text, int64_t min, int64_t max, uint64_t *ret_bytes)
{
    int64_t milli;
    if (!quantity_parse_milli(text, &milli) || milli / 1000 < min || milli / 1000 > max)
        return false;
    *ret_bytes = (uint64_t)(milli / 1000);
    return true;
}

static bool take_endpoint(struct store_place *place, struct str value)
{
    bool http = str_starts(value, STR("http://")), https = str_starts(value, STR("https://"));
    while (value.len > 0 && value.data[value.len - 1] == '/')
        value.len--;
    if ((!http && !https) || value.len <= 8)
        return false;
    struct str host = {value.data + (https ? 8 : 7), value.len - (https ? 8 : 7)};
    return !memchr(host.data, '/', host.len) && !memchr(host.data, '@', host.len) &&
           copy(place->endpoint, sizeof place->endpoint, value);
}

/* Takes one option. Returns false if the value is wrong, or if there is no such option (*ret_known). */
static bool take_option(struct store_place *place, struct str name, struct str value, bool *ret_known)
{
    int64_t number;
    *ret_known = true;
    if (str_is(name, "endpoint"))
        return take_endpoint(place, value);
    if (str_is(name, "region"))
        return value.len > 0 && copy(place->region, sizeof place->region, value);
    if (str_is(name, "style")) {
        place->in_path = str_is(value, "path");
        return place->in_path || str_is(value, "host");
    }
    if (str_is(name, "part"))
        return take_size(value, PART_MIN, PART_MAX, &place->part_bytes);
    if (str_is(name, "rate"))
        return take_size(value, 1024, INT64_MAX, &place->rate_bytes);
    if (str_is(name, "patience"))
        return duration_parse(value, &place->patience_ns);
    if (str_is(name, "credentials"))
        return value.len > 0 && copy(place->credentials, sizeof place->credentials, value);
    if (str_is(name, "ca"))
        return value.len > 0 && copy(place->ca, sizeof place->ca, value);
    if (str_is(name, "parallel") && str_to_i64(value, 1, PARALLEL_MAX, &number)) {
        place->parallel = (uint32_t)number;
        return true;
    }
    *ret_known = str_is(name, "parallel");
    return false;
}

static int take_query(struct store_place *place, struct str query, struct error *error)
{
    bool styled = false;
    while (query.len > 0) {
        struct str pair = query, rest = {0}, name, value;
        bool known = false;
        if (str_cut(query, '&', &pair, &rest))
            query = rest;
        else
            query.len = 0;
        struct buf decoded BUF_CLEANUP = {0};
        if (!str_cut(pair, '=', &name, &value) || !percent_decode(value, &decoded))
            return error_set(error, ERROR_INVALID,
                             "address of a store: \"" STR_FORMAT "\" is not OPTION=VALUE", STR_ARG(pair));
        if (!take_option(place, name, buf_str(&decoded), &known))
            return error_set(error, ERROR_INVALID,
                             known ? "address of a store: " STR_FORMAT " cannot be \"" STR_FORMAT "\""
                                   : "address of a store: there is no option " STR_FORMAT " (=" STR_FORMAT
                                     ")",
                             STR_ARG(name), STR_ARG(value));
        styled = styled || str_is(name, "style");
    }
    if (!styled)
        place->in_path = place->endpoint[0] != 0;
    return 0;
}

static int take_bucket(struct store_place *place, struct str where, struct error *error)
{
    struct str bucket = where, prefix = {0};
    (void)str_cut(where, '/', &bucket, &prefix);
    while (prefix.len > 0 && prefix.data[prefix.len - 1] == '/')
        prefix.len--;
    bool valid = bucket.len >= 3 && bucket.len <= 63 && copy(place->bucket, sizeof place->bucket, bucket) &&
                 strspn(place->bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") == bucket.len;
    if (!valid)
        return error_set(error, ERROR_INVALID,
                         "address of a store: \"" STR_FORMAT "\" is not a bucket's name", STR_ARG(bucket));
    if (prefix.len + 2 > sizeof place->prefix)
        return error_set(error, ERROR_LIMIT, "address of a store: its prefix is too long");
    snprintf(place->prefix, sizeof place->prefix, STR_FORMAT "%s", STR_ARG(prefix), prefix.len ? "/" : "");
    return 0;
}

bool store_place_is(const char *url)
{
    return str_starts(str_from(url), STR("s3://")) || str_starts(str_from(url), STR("file://"));
}

int store_place_parse(const char *url, struct store_place *ret_place, struct error *error)
{
    struct store_place place = {.region = "us-east-1",
                                .part_bytes = PART_DEFAULT,
                                .parallel = PARALLEL_DEFAULT,
                                .patience_ns = PATIENCE_NS};
    if (!store_place_is(url))
        return error_set(error, ERROR_INVALID,
                         "address of a store: expected s3://BUCKET/PREFIX or file:///DIRECTORY");
    place.folder = url[0] == 'f';
    struct str where = str_from(url + (place.folder ? 7 : 5)), query = {0};
    struct buf path BUF_CLEANUP = {0};
    (void)str_cut(where, '?', &where, &query);
    if (!percent_decode(where, &path))
        return error_set(error, ERROR_INVALID,
                         "address of a store: \"" STR_FORMAT "\" is not percent-encoded", STR_ARG(where));
    int rc = 0;
    if (!place.folder)
        rc = take_bucket(&place, buf_str(&path), error);
    else if (path.len == 0 || path.data[0] != '/' || !copy(place.bucket, sizeof place.bucket, buf_str(&path)))
        rc = error_set(error, ERROR_INVALID, "address of a store: file:// needs an absolute path");
    if (rc == 0)
        rc = take_query(&place, query, error);
    if (rc == 0)
        *ret_place = place;
    return rc;
}
