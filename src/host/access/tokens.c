#include "host/access/tokens.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/vec.h"

enum { DIGEST_BYTES = 32, COLUMNS = 4, GROUPS_MAX = 256 };

struct token {
    uint8_t digest[DIGEST_BYTES];
    struct access_user user;
};
struct tokens {
    struct arena arena;
    VEC(struct token) list;
};

void tokens_free(struct tokens *tokens)
{
    if (!tokens)
        return;
    vec_done(&tokens->list);
    arena_done(&tokens->arena);
    mem_free(tokens);
}

size_t tokens_count(const struct tokens *tokens)
{
    return tokens ? tokens->list.len : 0;
}

/* --- the file ------------------------------------------------------------------------------------------- */

/* Takes the next field off the line. Returns false if a quote is not closed, or if text follows one. */
static bool next_field(struct str *line, struct buf *ret_field, bool *ret_more)
{
    size_t at = 0;
    bool quoted = line->len && line->data[0] == '"';
    buf_clear(ret_field);
    if (quoted) {
        for (at = 1;; at++) {
            if (at == line->len)
                return false;
            if (line->data[at] != '"')
                buf_add_char(ret_field, line->data[at]);
            else if (at + 1 < line->len && line->data[at + 1] == '"')
                buf_add_char(ret_field, line->data[at++]);
            else
                break;
        }
        at++;
    } else {
        while (at < line->len && line->data[at] != ',')
            buf_add_char(ret_field, line->data[at++]);
    }
    if (at < line->len && line->data[at] != ',')
        return false;
    *ret_more = at < line->len;
    at += *ret_more;
    *line = (struct str){line->data + at, line->len - at};
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

static bool read_digest(struct str token, uint8_t ret_digest[DIGEST_BYTES])
{
    if (!str_starts(token, STR("sha256:"))) {
        sha256(token.data, token.len, ret_digest);
        return token.len >= TOKEN_BYTES_MIN;
    }
    if (token.len != 7 + 2 * DIGEST_BYTES)
        return false;
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        int high = hex_value(token.data[7 + 2 * i]), low = hex_value(token.data[8 + 2 * i]);
        if (high < 0 || low < 0)
            return false;
        ret_digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool read_groups(struct arena *arena, struct str text, struct access_user *user)
{
    user->groups = ARENA_ARRAY(arena, struct str, GROUPS_MAX);
    while (text.len) {
        struct str group = text, rest = {0};
        str_cut(text, ',', &group, &rest);
        text = rest;
        group = str_trim(group);
        if (group.len == 0)
            continue;
        if (user->group_count == GROUPS_MAX - 1) /* authentication adds one more */
            return false;
        user->groups[user->group_count++] = arena_str(arena, group);
    }
    return true;
}

static const char *read_line(struct tokens *tokens, struct str line)
{
    struct arena *arena = &tokens->arena;
    struct buf field BUF_CLEANUP = {0};
    struct token token = {0};
    bool more = true;
    int column = 0;
    for (; more; column++) {
        if (column == COLUMNS)
            return "more than four columns: put the groups into double quotes";
        if (!next_field(&line, &field, &more))
            return "a double quote is not where it may be";
        struct str text = str_trim(buf_str(&field));
        if (!str_is_utf8(text) || (text.len && memchr(text.data, 0, text.len)))
            return "not UTF-8";
        if (column == 0 && !read_digest(text, token.digest))
            return "a token has 8 characters or more, a digest is \"sha256:\" and 64 lower-case digits";
        if (column == 1)
            token.user.name = arena_str(arena, text);
        if (column == 2)
            token.user.uid = arena_str(arena, text);
        if (column == 3 && !read_groups(arena, text, &token.user))
            return "more than 255 groups";
    }
    if (column < 3 || token.user.name.len == 0)
        return "expected token,user,uid[,\"groups\"]";
    for (size_t i = 0; i < tokens->list.len && tokens->list.len < 4096; i++)
        if (memcmp(tokens->list.items[i].digest, token.digest, DIGEST_BYTES) == 0)
            return "the token is in the file twice";
    vec_push(&tokens->list, token);
    return NULL;
}

int tokens_parse(struct str text, struct tokens **ret_tokens, struct error *error)
{
    struct tokens *tokens = mem_alloc(sizeof *tokens);
    for (int64_t number = 1; text.len; number++) {
        struct str line = text, rest = {0};
        str_cut(text, '\n', &line, &rest);
        text = rest;
        line = str_trim(line);
        if (line.len == 0 || line.data[0] == '#')
            continue;
        const char *why = tokens->list.len == TOKENS_MAX ? "too many tokens" : read_line(tokens, line);
        if (why) {
            tokens_free(tokens);
            return error_set(error, ERROR_INVALID, "line %lld: %s", (long long)number, why);
        }
    }
    *ret_tokens = tokens;
    return 0;
}

/* --- looking up ----------------------------------------------------------------------------------------- */

const struct access_user *tokens_find(const struct tokens *tokens, struct str token)
{
    uint8_t digest[DIGEST_BYTES];
    size_t found = SIZE_MAX;
    sha256(token.data, token.len, digest);
    for (size_t i = 0; tokens && i < tokens->list.len; i++) {
        uint8_t differs = 0;
        for (size_t k = 0; k < DIGEST_BYTES; k++)
            differs |= (uint8_t)(tokens->list.items[i].digest[k] ^ digest[k]);
        size_t same = (size_t)0 - (size_t)(differs == 0);
        found = (i & same) | (found & ~same);
    }
    return found == SIZE_MAX ? NULL : &tokens->list.items[found].user;
}
