/* parse_module.c - functions and modules, in MLIR's grammar as far as StableHLO's text uses it:
 *
 *     text       = { alias | module | function }
 *     module     = "module" [@name] ["attributes" {...}] "{" { function } "}"
 *     function   = "func.func" ["public" | "private"] @name "(" arguments ")" ["->" results]
 *                  ["attributes" {...}] "{" { operation } "}"
 *
 * and both in the generic form, as operations "builtin.module" and "func.func" with a region.
 */
#include "flow/ir/parse.h"

static bool function_name(struct parser *parser, struct ir_function *function, struct str name,
                          struct ir_place place)
{
    function->place = place;
    if (!ir_name_is_valid(name))
        return parse_fail(parser, ERROR_UNSUPPORTED, place,
                          "names with quotes, backslashes or control characters are not supported");
    function->name = arena_str(parser->arena, name);
    return !scope_find(&parser->functions, name) ||
           parse_fail(parser, ERROR_INVALID, place, "function @" STR_FORMAT " is defined already",
                      STR_ARG(function->name));
}

static bool parse_function_head(struct parser *parser, struct ir_function *function)
{
    struct draft results = {0};
    struct attribute *ignored = NULL;
    if (!parse_accept_word(parser, "public") && !parse_accept_word(parser, "private"))
        parse_accept_word(parser, "nested");
    if (parser->token.kind != TOKEN_SYMBOL)
        return parse_expected(parser, "the function's name");
    if (!function_name(parser, function, parser->token.text, parser->token.place))
        return false;
    parse_advance(parser);
    if (!parse_expect(parser, '(') || !parse_named_args(parser, &function->body))
        return false;
    if (parser->token.kind == TOKEN_ARROW) {
        parse_advance(parser);
        if (!parse_result_types(parser, &results))
            return false;
    }
    function->result_count = results.results.len;
    function->results = ARENA_ARRAY(parser->arena, struct ir_type, function->result_count);
    mem_copy(function->results, results.results.items, function->result_count * sizeof *function->results);
    return !parse_accept_word(parser, "attributes") ||
           (parse_at(parser, '{') ? parse_attribute_dict(parser, '}', &ignored)
                                  : parse_expected(parser, "'{'"));
}

/* Appends a function whose body has been read to the module. */
static bool function_finish(struct parser *parser, struct ir_function *function)
{
    struct ir_function **end = &parser->module->functions;
    scope_cut(&parser->values, 0);
    function->value_count = ir_number(function);
    scope_push(&parser->functions, function->name, function, 1);
    if (parser->last_function)
        end = &parser->last_function->next;
    *end = parser->last_function = function;
    return parse_locations(parser);
}

static bool parse_function(struct parser *parser)
{
    struct ir_function *function = ARENA_NEW(parser->arena, struct ir_function);
    parser->value_count = 0;
    if (!parse_function_head(parser, function))
        return false;
    if (!parse_at(parser, '{'))
        return parse_fail(parser, ERROR_UNSUPPORTED, function->place,
                          "function @" STR_FORMAT " has no body: external functions are not supported",
                          STR_ARG(function->name));
    parse_advance(parser);
    if (!parse_enter(parser) || !parse_block_body(parser, &function->body))
        return false;
    parse_leave(parser);
    return function_finish(parser, function);
}

static bool module_count(struct parser *parser, const struct attribute *list, const char *name,
                         uint32_t *count)
{
    const struct attribute *found = attribute_find(list, name);
    if (!found)
        return true;
    if (found->kind != ATTRIBUTE_INTEGER || found->integer < 1 || found->integer > 1 << 20)
        return parse_fail(parser, ERROR_INVALID, found->place, "%s: expected a number from 1 to 1048576",
                          name);
    *count = (uint32_t)found->integer;
    return true;
}

static bool module_counts(struct parser *parser, const struct attribute *list)
{
    return module_count(parser, list, "mhlo.num_replicas", &parser->module->replicas) &&
           module_count(parser, list, "mhlo.num_partitions", &parser->module->partitions);
}

static bool parse_module_head(struct parser *parser)
{
    struct attribute *list = NULL;
    if (parser->token.kind == TOKEN_SYMBOL) {
        if (!ir_name_is_valid(parser->token.text))
            return parse_expected(parser, "a plain name");
        parser->module->name = arena_str(parser->arena, parser->token.text);
        parse_advance(parser);
    }
    if (parse_accept_word(parser, "attributes")) {
        if (!parse_at(parser, '{'))
            return parse_expected(parser, "'{'");
        if (!parse_attribute_dict(parser, '}', &list))
            return false;
    }
    return module_counts(parser, list) && parse_expect(parser, '{');
}

/* --- the generic form */

/* Parses "() <{properties}> (" before a region. */
static bool parse_outer_begin(struct parser *parser, struct attribute **list)
{
    parse_advance(parser); /* the name */
    if (!parse_expect(parser, '(') || !parse_expect(parser, ')'))
        return false;
    if (parse_accept(parser, '<')) {
        if (!parse_at(parser, '{'))
            return parse_expected(parser, "'{'");
        if (!parse_attribute_dict(parser, '}', list) || !parse_expect(parser, '>'))
            return false;
    }
    return parse_expect(parser, '(');
}

/* Parses ") {attributes} : () -> ()" after the region. */
static bool parse_outer_end(struct parser *parser, struct attribute **list)
{
    if (!parse_expect(parser, ')'))
        return false;
    if (parse_at(parser, '{') && !parse_attribute_dict(parser, '}', list))
        return false;
    if (!parse_expect(parser, ':') || !parse_expect(parser, '(') || !parse_expect(parser, ')'))
        return false;
    if (parser->token.kind != TOKEN_ARROW)
        return parse_expected(parser, "'->'");
    parse_advance(parser);
    return parse_expect(parser, '(') && parse_expect(parser, ')');
}

/* Parses "func.func"() <{sym_name = "main", ...}> ({...}) : () -> (). The results are those of the return. */
static bool parse_generic_function(struct parser *parser)
{
    struct ir_function *function = ARENA_NEW(parser->arena, struct ir_function);
    struct attribute *list = NULL;
    struct ir_place place = parser->token.place;
    parser->value_count = 0;
    if (!parse_outer_begin(parser, &list) || !parse_region(parser, &function->body) ||
        !parse_outer_end(parser, &list))
        return false;
    const struct attribute *name = attribute_find(list, "sym_name");
    if (!name || name->kind != ATTRIBUTE_STRING)
        return parse_fail(parser, ERROR_INVALID, place, "func.func: attribute sym_name: expected a name");
    if (!function_name(parser, function, name->text, place))
        return false;
    const struct ir_op *last = function->body.last;
    if (!last || last->kind != IR_OP_RETURN)
        return parse_fail(parser, ERROR_INVALID, place, "function @" STR_FORMAT " does not end with a return",
                          STR_ARG(function->name));
    function->result_count = last->operand_count;
    function->results = ARENA_ARRAY(parser->arena, struct ir_type, function->result_count);
    for (uint32_t i = 0; i < function->result_count; i++)
        function->results[i] = last->operands[i]->type;
    return function_finish(parser, function);
}

static bool parse_items(struct parser *parser, bool inside);

static bool parse_generic_module(struct parser *parser)
{
    struct attribute *list = NULL;
    if (!parse_outer_begin(parser, &list) || !parse_expect(parser, '{') || !parse_items(parser, true) ||
        !parse_outer_end(parser, &list))
        return false;
    const struct attribute *name = attribute_find(list, "sym_name");
    if (name && !ir_name_is_valid(name->text))
        return parse_fail(parser, ERROR_INVALID, name->place,
                          "builtin.module: attribute sym_name: expected a name");
    if (name)
        parser->module->name = arena_str(parser->arena, name->text);
    return module_counts(parser, list);
}

/* --- items of texts and modules */

/* Parses #loc = loc(...), !type = ..., sdy.mesh @mesh = <...> */
static bool parse_alias_definition(struct parser *parser)
{
    struct attribute ignored = {0};
    if (parse_accept_word(parser, "sdy.mesh") && parser->token.kind != TOKEN_SYMBOL)
        return parse_expected(parser, "@ and a name");
    parse_advance(parser);
    return parse_expect(parser, '=') && parse_attribute(parser, &ignored, true) && parse_locations(parser);
}

static bool parse_at_name(const struct parser *parser, const char *name)
{
    return (parser->token.kind == TOKEN_WORD || parser->token.kind == TOKEN_STRING) &&
           str_is(parser->token.text, name);
}

static bool parse_item(struct parser *parser, bool *seen_module)
{
    struct token token = parser->token;
    bool generic = token.kind == TOKEN_STRING;
    if (parse_at_name(parser, "func.func")) {
        if (generic)
            return parse_generic_function(parser);
        parse_advance(parser);
        return parse_function(parser);
    }
    if (parse_at_word(parser, "module") || parse_at_name(parser, "builtin.module")) {
        if (*seen_module || parser->module->functions)
            return parse_fail(parser, ERROR_UNSUPPORTED, token.place,
                              "more than one module: separate them by lines of \"// -----\"");
        *seen_module = true;
        if (generic)
            return parse_generic_module(parser);
        parse_advance(parser);
        return parse_module_head(parser) && parse_items(parser, true);
    }
    if (token.kind == TOKEN_HASH || token.kind == TOKEN_EXCLAMATION || parse_at_word(parser, "sdy.mesh"))
        return parse_alias_definition(parser);
    if (token.kind == TOKEN_WORD || generic)
        return parse_fail(parser, ERROR_UNSUPPORTED, token.place,
                          STR_FORMAT " outside of a function is not supported",
                          STR_ARG(str_head_utf8(token.text, 60)));
    return parse_expected(parser, "module or func.func");
}

/* Parses functions, aliases and meshes, up to "}" inside a module and to the end of the text outside. */
static bool parse_items(struct parser *parser, bool inside)
{
    bool seen_module = inside;
    while (inside ? !parse_at(parser, '}') : parser->token.kind != TOKEN_END) {
        if (!parse_item(parser, &seen_module))
            return false;
    }
    if (inside)
        parse_advance(parser);
    return parse_locations(parser);
}

static bool parse_resolve_calls(struct parser *parser)
{
    for (size_t i = 0; i < parser->calls.len; i++) {
        const struct pending_call *call = &parser->calls.items[i];
        const struct scope_name *name = scope_find(&parser->functions, call->name);
        if (!name)
            return parse_fail(parser, ERROR_INVALID, call->place, "function @" STR_FORMAT " is not defined",
                              STR_ARG(call->name));
        *call->callee = name->value;
    }
    return true;
}

static int parse_part(struct str text, const char *file, uint32_t line, struct ir_module **ret_module,
                      struct error *error)
{
    struct ir_module *module = mem_alloc(sizeof *module);
    struct parser parser = {.module = module, .arena = &module->arena, .error = error};
    module->replicas = module->partitions = 1;
    char *name = arena_strdup(&module->arena, str_from(file));
    ir_make_printable(name, strlen(name));
    module->file = str_from(name);
    parser.lexer = lexer_of(text, line);
    bool ok = text.len <= IR_TEXT_MAX || parse_fail(&parser, ERROR_LIMIT, (struct ir_place){1, 1},
                                                    "the text is longer than %d bytes", IR_TEXT_MAX);
    if (ok) {
        parse_advance(&parser);
        ok = parse_items(&parser, false) && parse_resolve_calls(&parser);
    }
    arena_done(&parser.scratch);
    scope_done(&parser.values);
    scope_done(&parser.functions);
    vec_done(&parser.calls);
    if (!ok) {
        ir_module_free(module);
        return parser.code;
    }
    *ret_module = module;
    return 0;
}

int ir_parse(struct str text, const char *file, struct ir_module **module, struct error *error)
{
    return parse_part(text, file, 1, module, error);
}

/* Returns the length of the text before a line that begins with "// -----". Adds the lines in it to
 * *lines. */
static size_t split_length(struct str text, uint32_t *lines)
{
    size_t at = 0;
    while (at < text.len) {
        struct str rest = {text.data + at, text.len - at};
        if (at > 0 && str_starts(rest, STR("// -----")))
            return at;
        const char *newline = memchr(rest.data, '\n', rest.len);
        if (!newline)
            break;
        at += (size_t)(newline - rest.data) + 1;
        ++*lines;
    }
    return text.len;
}

/* Whether a part has no tokens. */
static bool split_is_empty(struct str text)
{
    struct lexer lexer = lexer_of(text, 1);
    return lexer_next(&lexer).kind == TOKEN_END;
}

int ir_parse_split(struct str text, const char *file, int (*each)(struct ir_module *module, void *arg),
                   void *arg, struct error *error)
{
    uint32_t line = 1;
    while (text.len > 0) {
        uint32_t lines = 0;
        size_t len = split_length(text, &lines);
        struct str part = {text.data, len};
        if (!split_is_empty(part)) {
            struct ir_module *module = NULL;
            int result = parse_part(part, file, line, &module, error);
            if (result < 0)
                return result;
            result = each(module, arg);
            ir_module_free(module);
            if (result != 0)
                return result;
        }
        line += lines;
        text.data += len;
        text.len -= len;
    }
    return 0;
}

void ir_module_free(struct ir_module *module)
{
    if (!module)
        return;
    arena_done(&module->arena);
    mem_free(module);
}

const struct ir_function *ir_function(const struct ir_module *module, struct str name)
{
    const struct ir_function *function = module->functions;
    while (function && !str_equal(function->name, name))
        function = function->next;
    return function;
}
