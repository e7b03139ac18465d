/* names.c - the name rules of Kubernetes (RFC 1035, RFC 1123, qualified names), and the names that a
 * JobSet generates. */
#include "core/words/limits.h"
#include "core/spec/spec.h"

enum { LABEL_BYTES_MAX = 63, SUBDOMAIN_BYTES_MAX = 253 };
_Static_assert((int)SUBDOMAIN_BYTES_MAX == (int)NAME_MAX_BYTES, "names are DNS-1123 subdomains");

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z');
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_dns_part(struct str s)
{
    if (s.len == 0 || s.data[0] == '-' || s.data[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_lower(s.data[i]) && !is_digit(s.data[i]) && s.data[i] != '-')
            return false;
    }
    return true;
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] */
static bool is_name_part(struct str s)
{
    if (s.len == 0 || s.len > LABEL_BYTES_MAX || !is_alnum(s.data[0]) || !is_alnum(s.data[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (!is_alnum(c) && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

bool name_is_dns1035_label(struct str name)
{
    return name.len <= LABEL_BYTES_MAX && is_dns_part(name) && is_lower(name.data[0]);
}

bool name_is_dns1123_label(struct str name)
{
    return name.len <= LABEL_BYTES_MAX && is_dns_part(name);
}

bool name_is_dns1123_subdomain(struct str name)
{
    if (name.len > SUBDOMAIN_BYTES_MAX)
        return false;
    struct str part;
    while (str_cut(name, '.', &part, &name)) {
        if (!is_dns_part(part))
            return false;
    }
    return is_dns_part(name);
}

bool name_is_label_key(struct str key)
{
    struct str prefix, name;
    if (!str_cut(key, '/', &prefix, &name))
        return is_name_part(key);
    return name_is_dns1123_subdomain(prefix) && is_name_part(name);
}

bool name_is_label_value(struct str value)
{
    return value.len == 0 || is_name_part(value);
}

struct str job_name(struct arena *arena, struct str jobset, struct str rjob, int32_t index)
{
    char digits[DECIMAL_TEXT_MAX];
    return ARENA_CONCAT(arena, jobset, STR("-"), rjob, STR("-"), str_decimal(index, digits));
}

struct str pod_hostname(struct arena *arena, struct str job, int32_t index)
{
    char digits[DECIMAL_TEXT_MAX];
    return ARENA_CONCAT(arena, job, STR("-"), str_decimal(index, digits));
}

struct str labels_get(const struct labels *labels, struct str key, struct str fallback)
{
    CHECK(labels->items || labels->len == 0);
    for (size_t i = 0; i < labels->len; i++) {
        if (str_equal(labels->items[i].key, key))
            return labels->items[i].value;
    }
    return fallback;
}
