/* parse.h - declarations shared by the files of the parser. Private to flow/ir.
 *
 * The parser reads one token ahead. Its functions return false after a failure, which parse_fail has stored
 * in the caller's error; the whole parse is then abandoned.
 *
 * An operation is first read into a draft: operands, result types, regions, and attributes as a list of named
 * values. The draft is the same for the custom form ("stablehlo.transpose %0, dims = [1, 0]") and the generic
 * one ("stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0>}>). Then attributes_build (build.c)
 * converts the list to the operation's union.
 */
#ifndef PHX_FLOW_IR_PARSE_H
#define PHX_FLOW_IR_PARSE_H

#include "base/vec.h"
#include "flow/ir/ir.h"
#include "flow/ir/lexer.h"
#include "flow/ir/scope.h"

enum attribute_kind {
    ATTRIBUTE_UNIT,
    ATTRIBUTE_INTEGER,
    ATTRIBUTE_FLOAT,
    ATTRIBUTE_BOOL,
    ATTRIBUTE_STRING,  /* `text` between its quotes */
    ATTRIBUTE_SYMBOL,  /* @text */
    ATTRIBUTE_WORD,    /* an enumerator: DEFAULT, LT, b */
    ATTRIBUTE_LIST,    /* [a, b], array<i64: a, b> */
    ATTRIBUTE_DICT,    /* {a = 1}, #stablehlo.gather<a = [1]>; `text` is its source */
    ATTRIBUTE_LITERAL, /* dense<...> : type */
    ATTRIBUTE_OPAQUE,  /* skipped: types, locations, other dialects' attributes */
};

struct attribute {
    struct str name; /* the key, if the attribute is an entry of a dictionary */
    enum attribute_kind kind;
    struct ir_place place;
    struct str text;
    int64_t integer;         /* INTEGER and BOOL */
    double real;             /* FLOAT */
    struct attribute *items; /* LIST and DICT */
    uint32_t count;          /* of items */
    const struct ir_literal *literal;
    struct attribute *next;
};

struct pending_call { /* a call whose function may be defined later in the text */
    const struct ir_function **callee;
    struct str name;
    struct ir_place place;
};

struct parser {
    struct ir_module *module;
    struct arena *arena;  /* the module's */
    struct arena scratch; /* freed when the parse ends */
    struct lexer lexer;
    struct token token;   /* the token read ahead */
    const char *last_end; /* end of the token before it */
    struct error *error;
    int code; /* the code of the failure */
    struct scope values, functions;
    struct ir_function *last_function;
    VEC(struct pending_call) calls;
    uint32_t depth; /* nested regions, including the function's body */
    uint32_t attribute_depth;
    uint32_t value_count; /* of the current function */
};

/* A growing array in the scratch arena. */
#define DRAFT_LIST(type)                                                                                     \
    struct {                                                                                                 \
        type *items;                                                                                         \
        uint32_t len, cap;                                                                                   \
    }
/* Ensures space for one more item of `size` bytes, and returns the array, which may have moved. */
void *draft_room(struct parser *parser, void *items, uint32_t len, uint32_t *cap, size_t size);
#define draft_push(parser, list, item)                                                                       \
    ((list)->items = draft_room((parser), (list)->items, (list)->len, &(list)->cap, sizeof *(list)->items),  \
     (void)((list)->items[(list)->len++] = (item)))

struct draft_result { /* %name:count */
    struct str name;
    uint32_t count;
    struct ir_place place;
};
struct draft {
    enum ir_op_kind kind;
    struct str name; /* as in the text */
    struct ir_place place;
    DRAFT_LIST(struct draft_result) names;
    DRAFT_LIST(struct ir_value *) operands;
    DRAFT_LIST(struct ir_type) operand_types; /* as in the text; empty: the text has none */
    DRAFT_LIST(struct ir_type) results;
    DRAFT_LIST(struct ir_block) regions;
    struct attribute *attributes;
    bool is_alias; /* not an operation: its result is its operand */
};

/* --- parse.c: tokens */
/* Sets the error to file:line:column and the message, and returns false. */
bool parse_fail(struct parser *parser, enum error_code code, struct ir_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void parse_advance(struct parser *parser); /* to the next token */
bool parse_at(const struct parser *parser, char punctuation);
bool parse_at_word(const struct parser *parser, const char *word);
/* Take the next token if it is the given one; parse_accept returns whether it was, parse_expect fails if
 * not. */
bool parse_accept(struct parser *parser, char punctuation);
bool parse_accept_word(struct parser *parser, const char *word);
bool parse_expect(struct parser *parser, char punctuation);
bool parse_expect_word(struct parser *parser, const char *word);
/* Fails with "expected `what`, got ..." at the token. */
bool parse_expected(struct parser *parser, const char *what);
/* Enters one level of nesting, at most IR_DEPTH_MAX. After success the caller calls parse_leave at the
 * level's end. */
bool parse_enter(struct parser *parser);
void parse_leave(struct parser *parser);
bool parse_locations(struct parser *parser); /* skips "loc(...)" if the text has it */

/* --- parse.c: operations and blocks */
bool parse_operand(struct parser *parser, struct draft *draft);       /* %x or %x#1 */
bool parse_operands(struct parser *parser, struct draft *draft);      /* (%a, %b) */
bool parse_block_body(struct parser *parser, struct ir_block *block); /* operations and "}" */
/* Defines a name in the current scope for `count` values. */
bool parse_define(struct parser *parser, struct str name, struct ir_place place, struct ir_value *values,
                  uint32_t count);
/* Parses "%a: type {attributes} loc(...), ..." and the ")" after it. The names become the block's
 * arguments. */
bool parse_named_args(struct parser *parser, struct ir_block *block);
/* Parses "{ [^bb0(...):] operations }". Its names go out of scope at the end. */
bool parse_region(struct parser *parser, struct ir_block *block);
/* Gives the block `count` arguments of `types`, without names. */
bool parse_block_args(struct parser *parser, struct ir_block *block, const struct ir_type *types,
                      uint32_t count);
struct ir_block *draft_region(struct parser *parser, struct draft *draft); /* adds an empty region */
/* Converts a draft to an operation and appends it to the block. */
bool draft_finish(struct parser *parser, struct draft *draft, struct ir_block *block);

/* --- parse_type.c */
bool parse_type(struct parser *parser, struct ir_type *type);
/* Parses a list of types and the `close` after it: "tensor<f32>, tensor<i1>)". */
bool parse_types_until(struct parser *parser, char close, struct draft *draft, bool operands);
bool parse_result_types(struct parser *parser, struct draft *draft); /* type or (types) */

/* --- attribute.c */
/* Parses a value into a zeroed attribute. `typed`: skips a ": type" after an integer. */
bool parse_attribute(struct parser *parser, struct attribute *attribute, bool typed);
/* Parses "{name = value, ...}" from its opening brace to `close`. New entries are prepended to *list. */
bool parse_attribute_dict(struct parser *parser, char close, struct attribute **list);
/* Parses "[b, 0, f]x[0, i, o]->[b, 0, f]" into a zeroed attribute, as a list of three lists. */
bool parse_conv_dimensions(struct parser *parser, struct attribute *attribute);
/* Skips a bracketed group from its opening token on, whatever it contains. */
bool parse_skip_group(struct parser *parser);
/* Returns a string's text with its escapes resolved, in the module's arena. */
struct str attribute_text(struct parser *parser, struct str text);
const struct attribute *attribute_find(const struct attribute *list, const char *name); /* NULL: none */
/* Prepends a new attribute to those of the draft, and returns it. */
struct attribute *draft_attribute(struct parser *parser, struct draft *draft, const char *name);

/* --- literal.c */
/* Parses dense<...> : type, from "dense" on. */
bool parse_literal(struct parser *parser, struct ir_literal *literal);
/* Normalises elements of i1, i2 and i4: only the low bits of a byte count, and i2 and i4 are
 * sign-extended. */
void literal_normalise(const struct ir_type *type, unsigned char *data, size_t count);

/* --- parse_op.c, parse_region.c */
/* Parse the custom form after the operation's name. */
bool parse_custom(struct parser *parser, struct draft *draft);
bool parse_reduce(struct parser *parser, struct draft *draft);
bool parse_while(struct parser *parser, struct draft *draft);
/* Parses, after the colon, "(types) -> types" or the short form of the operation's types. */
bool parse_signature(struct parser *parser, struct draft *draft);

/* --- op_name.c */
/* Sets the kind of the draft from an operation's name in text, and adds the attributes that the name
 * implies. */
bool draft_name(struct parser *parser, struct draft *draft, struct str name);

/* --- build.c */
/* Fills op->attributes from the draft's list. The operation's operands and results are already set. */
bool attributes_build(struct parser *parser, struct ir_op *op, const struct draft *draft);

/* Replaces the bytes of a text that are not printable UTF-8 by "?", for messages. */
void ir_make_printable(char *text, size_t len);
/* Returns whether a function or module may have that name: printable UTF-8, without quotes and
 * backslashes. */
bool ir_name_is_valid(struct str name);

/* --- number.c */
/* Numbers the values of a function in the order of its text: a block's arguments first, then for each
 * operation its regions, then its results. Returns the number of values. */
uint32_t ir_number(struct ir_function *function);

#endif
