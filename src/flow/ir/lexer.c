/* lexer.c - StableHLO text to tokens.
 *
 * Source: MLIR's language reference, "Lexical notation".
 */
#include "flow/ir/lexer.h"

static bool char_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool char_is_hex(char c)
{
    return char_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool char_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool char_in_word(char c)
{
    return char_is_letter(c) || char_is_digit(c) || c == '.' || c == '$';
}

int lexer_hex_digit(char c)
{
    if (char_is_digit(c))
        return c - '0';
    return char_is_hex(c) ? (c | 32) - 'a' + 10 : -1;
}

struct lexer lexer_of(struct str text, uint32_t line)
{
    return (struct lexer){text.data, text.data + text.len, text.data, line};
}

struct ir_place lexer_place(const struct lexer *lexer)
{
    return (struct ir_place){lexer->line, (uint32_t)(lexer->at - lexer->line_start) + 1};
}

static void lexer_skip_space(struct lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') {
            lexer->at++;
            lexer->line++;
            lexer->line_start = lexer->at;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lexer->at++;
        } else if (c == '/' && lexer->end - lexer->at > 1 && lexer->at[1] == '/') {
            const char *stop = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
            lexer->at = stop ? stop : lexer->end;
        } else {
            return;
        }
    }
}

static void lexer_word(struct lexer *lexer, struct token *token, enum token_kind kind)
{
    const char *start = lexer->at;
    while (lexer->at < lexer->end && (char_in_word(*lexer->at) || (*lexer->at == '-' && kind == TOKEN_VALUE)))
        lexer->at++;
    token->kind = kind;
    token->text = (struct str){start, (size_t)(lexer->at - start)};
}

/* Reads a string, from its opening quote on. */
static void lexer_string(struct lexer *lexer, struct token *token, enum token_kind kind)
{
    const char *start = ++lexer->at;
    token->kind = TOKEN_BAD;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at += *lexer->at == '\\' && lexer->end - lexer->at > 1 && lexer->at[1] != '\n' ? 2 : 1;
    if (lexer->at >= lexer->end || *lexer->at != '"')
        return;
    token->kind = kind;
    token->text = (struct str){start, (size_t)(lexer->at - start)};
    lexer->at++;
}

static void lexer_number(struct lexer *lexer, struct token *token)
{
    const char *start = lexer->at, *end = lexer->end, *at = start;
    token->kind = TOKEN_INTEGER;
    if (*at == '0' && end - at > 2 && at[1] == 'x' && char_is_hex(at[2])) {
        at += 2;
        while (at < end && char_is_hex(*at))
            at++;
    } else {
        while (at < end && char_is_digit(*at))
            at++;
        if (at < end && *at == '.') {
            token->kind = TOKEN_FLOAT;
            at++;
            while (at < end && char_is_digit(*at))
                at++;
            const char *exponent = at + 1;
            if (exponent < end && (*exponent == '+' || *exponent == '-'))
                exponent++;
            if (at < end && (*at == 'e' || *at == 'E') && exponent < end && char_is_digit(*exponent)) {
                at = exponent;
                while (at < end && char_is_digit(*at))
                    at++;
            }
        }
    }
    token->text = (struct str){start, (size_t)(at - start)};
    lexer->at = at;
}

/* Returns the kind of token that a mark before a name begins, or TOKEN_PUNCTUATION. */
static enum token_kind lexer_mark(char c)
{
    switch (c) {
    case '%':
        return TOKEN_VALUE;
    case '@':
        return TOKEN_SYMBOL;
    case '^':
        return TOKEN_BLOCK;
    case '#':
        return TOKEN_HASH;
    case '!':
        return TOKEN_EXCLAMATION;
    default:
        return TOKEN_PUNCTUATION;
    }
}

struct token lexer_next(struct lexer *lexer)
{
    lexer_skip_space(lexer);
    struct token token = {.kind = TOKEN_END, .place = lexer_place(lexer)};
    if (lexer->at >= lexer->end)
        return token;
    char c = *lexer->at;
    enum token_kind mark = lexer_mark(c);
    if (char_is_letter(c)) {
        lexer_word(lexer, &token, TOKEN_WORD);
    } else if (char_is_digit(c)) {
        lexer_number(lexer, &token);
    } else if (c == '"') {
        lexer_string(lexer, &token, TOKEN_STRING);
    } else if (mark != TOKEN_PUNCTUATION) {
        lexer->at++;
        if (mark == TOKEN_SYMBOL && lexer->at < lexer->end && *lexer->at == '"')
            lexer_string(lexer, &token, TOKEN_SYMBOL);
        else
            lexer_word(lexer, &token, mark);
        if (token.text.len == 0 && mark != TOKEN_HASH)
            token.kind = TOKEN_BAD;
    } else if (c == '-' && lexer->end - lexer->at > 1 && lexer->at[1] == '>') {
        token.kind = TOKEN_ARROW;
        token.text = (struct str){lexer->at, 2};
        lexer->at += 2;
    } else {
        token.kind = strchr("()[]{}<>,=:-+*?/|", c) && c ? TOKEN_PUNCTUATION : TOKEN_BAD;
        token.text = (struct str){lexer->at, 1};
        lexer->at++;
    }
    return token;
}

int lexer_dimension(struct lexer *lexer, int64_t *dimension)
{
    const char *at = lexer->at, *end = lexer->end;
    int64_t value = 0;
    if (at < end && *at == '?') {
        value = -1;
        at++;
    } else {
        if (at >= end || !char_is_digit(*at))
            return 0;
        for (; at < end && char_is_digit(*at); at++) {
            value = value * 10 + (*at - '0');
            if (value > IR_ELEMENTS_MAX)
                return -1;
        }
    }
    if (at >= end || *at != 'x')
        return 0;
    lexer->at = at + 1;
    *dimension = value;
    return 1;
}
