/* lexer.h - StableHLO text as tokens, one at a time.
 *
 * White space and comments ("//" to the end of the line) are skipped. Tokens point into the text, which the
 * caller keeps alive. Copying a struct lexer saves its position. Private to flow/ir.
 */
#ifndef PHX_FLOW_IR_LEXER_H
#define PHX_FLOW_IR_LEXER_H

#include "flow/ir/ir.h"

enum token_kind {
    TOKEN_END,
    TOKEN_BAD,         /* a character that begins no token, or an unterminated string */
    TOKEN_WORD,        /* stablehlo.add, dense, f32: letters, digits, '_', '.', '$' */
    TOKEN_VALUE,       /* %name: `text` is without the % */
    TOKEN_SYMBOL,      /* @name or @"name": `text` is the name */
    TOKEN_BLOCK,       /* ^bb0 */
    TOKEN_HASH,        /* #stablehlo.gather, #loc3, #1: `text` is without the # */
    TOKEN_EXCLAMATION, /* !stablehlo.token: `text` is without the ! */
    TOKEN_INTEGER,     /* decimal or 0x..., without sign */
    TOKEN_FLOAT,       /* 1.5, 2.0e-7, without sign */
    TOKEN_STRING,      /* `text` is between the quotes, escapes as written */
    TOKEN_ARROW,       /* -> */
    TOKEN_PUNCTUATION, /* one character: `text` is that character */
};

struct token {
    enum token_kind kind;
    struct str text;
    struct ir_place place;
};

struct lexer {
    const char *at, *end;
    const char *line_start;
    uint32_t line;
};

/* Returns a lexer of text whose first line is number `line` of its file. */
struct lexer lexer_of(struct str text, uint32_t line);

/* Returns the next token; TOKEN_END at the end of the text and on every later call. */
struct token lexer_next(struct lexer *lexer);

/* Reads a dimension of a shape ("4x", "?x") at the very next character, where tokens would read "0x3" as a
 * number. Returns 1 with *dimension (-1 for "?"), 0 if no dimension follows, or -1 if the number exceeds
 * IR_ELEMENTS_MAX. */
int lexer_dimension(struct lexer *lexer, int64_t *dimension);

/* Returns the value of a hexadecimal digit, or -1 if the character is not one. */
int lexer_hex_digit(char c);

/* Returns the place of the next character. */
struct ir_place lexer_place(const struct lexer *lexer);

#endif
