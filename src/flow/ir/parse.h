/* parse.h - what the files of the parser share. Private to flow/ir.
 *
 * The parser reads one token ahead. Its functions return false after a failure, which parse_fail has left in
 * the caller's error; the rest of the parse is then given up.
 *
 * An operation is read into a draft: operands, result types, regions, and attributes as a list of named
 * values, the same for the custom form ("stablehlo.transpose %0, dims = [1, 0]") and the generic one
 * ("stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0>}>). Then attributes_build (build.c) turns the
 * list into the operation's union.
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
    struct str name; /* in a list of dictionary entries */
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

struct pending_call { /* a function named before it was defined, maybe */
    const struct ir_function **callee;
    struct str name;
    struct ir_place place;
};

struct parser {
    struct ir_module *module;
    struct arena *arena;  /* the module's */
    struct arena scratch; /* until the parse ends */
    struct lexer lexer;
    struct token token;   /* the one read ahead */
    const char *last_end; /* behind the one before it */
    struct error *error;
    int code; /* of the failure */
    struct scope values, functions;
    struct ir_function *last_function;
    VEC(struct pending_call) calls;
    uint32_t depth; /* of nested regions, the function's body included */
    uint32_t attribute_depth;
    uint32_t value_count; /* of the function */
};

/* A growing array in the scratch arena. */
#define DRAFT_LIST(type)                                                                                     \
    struct {                                                                                                 \
        type *items;                                                                                         \
        uint32_t len, cap;                                                                                   \
    }
/* Room for one more item of `size` bytes; returns the array, moved or not. */
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
    DRAFT_LIST(struct ir_type) operand_types; /* as the text says them; empty: it does not */
    DRAFT_LIST(struct ir_type) results;
    DRAFT_LIST(struct ir_block) regions;
    struct attribute *attributes;
    bool is_alias; /* no operation: its result is its operand */
};

/* --- parse.c: tokens */
bool parse_fail(struct parser *parser, enum error_code code, struct ir_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void parse_advance(struct parser *parser); /* to the next token */
bool parse_at(const struct parser *parser, char punctuation);
bool parse_at_word(const struct parser *parser, const char *word);
bool parse_accept(struct parser *parser, char punctuation); /* true: it stood there and is taken */
bool parse_accept_word(struct parser *parser, const char *word);
bool parse_expect(struct parser *parser, char punctuation);
bool parse_expect_word(struct parser *parser, const char *word);
/* "expected `what`, got ..." at the token. */
bool parse_expected(struct parser *parser, const char *what);
/* Goes one level deeper, up to IR_DEPTH_MAX; after success the caller calls parse_leave at its end. */
bool parse_enter(struct parser *parser);
void parse_leave(struct parser *parser);
bool parse_locations(struct parser *parser); /* skips "loc(...)" if there */

/* --- parse.c: operations and blocks */
bool parse_operand(struct parser *parser, struct draft *draft);       /* %x or %x#1 */
bool parse_operands(struct parser *parser, struct draft *draft);      /* (%a, %b) */
bool parse_block_body(struct parser *parser, struct ir_block *block); /* operations and "}" */
bool parse_define(struct parser *parser, struct str name, struct ir_place place, struct ir_value *values,
                  uint32_t count);
/* "%a: type {attributes} loc(...), ..." up to ")", which is taken; the names are the block's arguments. */
bool parse_named_args(struct parser *parser, struct ir_block *block);
/* "{ [^bb0(...):] operations }"; its names are forgotten at the end. */
bool parse_region(struct parser *parser, struct ir_block *block);
/* Gives the block `count` arguments of `types`, without names. */
bool parse_block_args(struct parser *parser, struct ir_block *block, const struct ir_type *types,
                      uint32_t count);
struct ir_block *draft_region(struct parser *parser, struct draft *draft); /* a new, empty one */
/* Makes the operation of a draft and appends it to the block. */
bool draft_finish(struct parser *parser, struct draft *draft, struct ir_block *block);

/* --- parse_type.c */
bool parse_type(struct parser *parser, struct ir_type *type);
/* A list of types up to `close`, which is taken: "tensor<f32>, tensor<i1>)". */
bool parse_types_until(struct parser *parser, char close, struct draft *draft, bool operands);
bool parse_result_types(struct parser *parser, struct draft *draft); /* type or (types) */

/* --- attribute.c */
/* A value, into a zeroed attribute. `typed`: an integer may have ": type" behind it, which is skipped. */
bool parse_attribute(struct parser *parser, struct attribute *attribute, bool typed);
/* "{name = value, ...}" from its brace to `close`; new entries go in front of *list. */
bool parse_attribute_dict(struct parser *parser, char close, struct attribute **list);
/* "[b, 0, f]x[0, i, o]->[b, 0, f]" as a list of three lists; the attribute is zeroed. */
bool parse_conv_dimensions(struct parser *parser, struct attribute *attribute);
/* Skips a bracketed group from its opening token on, whatever is in it. */
bool parse_skip_group(struct parser *parser);
/* A string's text without its escapes, in the module's arena. */
struct str attribute_text(struct parser *parser, struct str text);
const struct attribute *attribute_find(const struct attribute *list, const char *name);
/* Puts a new attribute in front of the draft's. */
struct attribute *draft_attribute(struct parser *parser, struct draft *draft, const char *name);

/* --- literal.c */
/* dense<...> : type, from "dense" on. */
bool parse_literal(struct parser *parser, struct ir_literal *literal);
/* i1, i2 and i4: only the low bits of a byte count, and the sign of i2 and i4 fills the byte. */
void literal_normalise(const struct ir_type *type, unsigned char *data, size_t count);

/* --- parse_op.c, parse_region.c */
/* The custom form behind the operation's name. */
bool parse_custom(struct parser *parser, struct draft *draft);
bool parse_reduce(struct parser *parser, struct draft *draft);
bool parse_while(struct parser *parser, struct draft *draft);
/* Behind the colon: "(types) -> types", or the types that the operation's short form has. */
bool parse_signature(struct parser *parser, struct draft *draft);

/* --- op_name.c */
/* Gives the draft the kind that `name` means in text, and the attributes which the name implies. */
bool draft_name(struct parser *parser, struct draft *draft, struct str name);

/* --- build.c */
/* Fills op->attributes from the list; the operation's operands and results are in place. */
bool attributes_build(struct parser *parser, struct ir_op *op, const struct draft *draft);

/* Turns the bytes of a text that are not printable UTF-8 into "?", for messages. */
void ir_make_printable(char *text, size_t len);
/* Whether a function or module may have that name: printable UTF-8, without quotes and backslashes. */
bool ir_name_is_valid(struct str name);

/* --- number.c */
/* Numbers the values of a function in the order of its text: arguments of a block first, then for each
 * operation its regions, then its results. Returns how many there are. */
uint32_t ir_number(struct ir_function *function);

#endif
