#include "host/standby/again.h"

#include <inttypes.h>

#include "base/check.h"
#include "host/standby/rule.h"

bool again_may(const struct http_head *head)
{
    bool posts = str_is(head->method, "POST"), changes = str_is(head->method, "PUT") ||
                                                         str_is(head->method, "PATCH") ||
                                                         str_is(head->method, "DELETE");
    if (!posts && !changes)
        return false;
    if (head->content_length < 0 || head->content_length > AGAIN_BYTES_MAX / 2 || head->continues ||
        http_head_value(head, "Upgrade").data || http_head_value(head, "Phalanx-Resent").data)
        return false;
    struct str path = head->target, query = {0};
    (void)str_cut(head->target, '?', &path, &query);
    enum rule_path names = rule_path_of(path);
    return posts ? names != RULE_NO_OBJECT : names == RULE_OBJECT || names == RULE_SUBRESOURCE;
}

/* Appends the head to `out` with one more line. */
static void add_line(struct buf *out, struct str bytes, const char *name, const char *value)
{
    CHECK(bytes.len > 4 && memcmp(bytes.data + bytes.len - 4, "\r\n\r\n", 4) == 0);
    buf_add(out, bytes.data, bytes.len - 2);
    buf_printf(out, "%s: %s\r\n\r\n", name, value);
}

void again_name(struct buf *out, const struct http_head *head, struct str bytes, const char *key)
{
    if (http_head_value(head, "Idempotency-Key").data)
        buf_add_str(out, bytes);
    else
        add_line(out, bytes, "Idempotency-Key", key);
}

void again_mark(struct buf *out, struct str bytes, uint64_t ms)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, ms);
    add_line(out, bytes, "Phalanx-Resent", text);
}
