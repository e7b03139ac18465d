/* Declarations of shared objects. */
#include "flow/ir/user.h"

#include "base/check.h"

static struct str user_blank(struct str text)
{
    while (text.len && (*text.data == ' ' || *text.data == '\n' || *text.data == '\t' || *text.data == '\r'))
        text = (struct str){text.data + 1, text.len - 1};
    return text;
}

static bool user_take(struct str *text, struct str word)
{
    *text = user_blank(*text);
    if (!str_starts(*text, word))
        return false;
    *text = (struct str){text->data + word.len, text->len - word.len};
    return true;
}

bool ir_is_user(struct str text)
{
    return user_take(&text, STR("user "));
}

static bool user_take_type(struct str *text, struct ir_type *ret)
{
    struct ir_type type = {0};
    int64_t elements = 1, size;
    if (!user_take(text, STR("tensor<")))
        return false;
    for (;;) {
        struct str head, tail;
        if (str_cut(*text, 'x', &head, &tail) && str_to_i64(head, 0, IR_ELEMENTS_MAX, &size)) {
            if (type.rank == IR_RANK_MAX || (size > 0 && elements > IR_ELEMENTS_MAX / size))
                return false;
            type.dims[type.rank++] = size;
            elements *= size;
            *text = tail;
            continue;
        }
        for (int e = 0; e < IR_TOKEN; e++) {
            struct str rest = *text, name = str_from(ir_element_name(e));
            type.element = e;
            if (user_take(&rest, name) && user_take(&rest, STR(">"))) {
                *text = rest;
                *ret = type;
                return true;
            }
        }
        return false;
    }
}

/* Parses "(type, type)" into an array of IR_OPERANDS_MAX types. */
static bool user_take_types(struct str *text, struct ir_type *types, uint32_t *ret_count)
{
    uint32_t count = 0;
    if (!user_take(text, STR("(")))
        return false;
    if (user_take(text, STR(")"))) {
        *ret_count = 0;
        return true;
    }
    do {
        if (count == IR_OPERANDS_MAX || !user_take_type(text, &types[count]))
            return false;
        count++;
    } while (user_take(text, STR(",")));
    *ret_count = count;
    return user_take(text, STR(")"));
}

static bool user_take_function(struct str *text, struct ir_module *module)
{
    struct str name;
    struct ir_type *types = ARENA_ARRAY(&module->arena, struct ir_type, IR_OPERANDS_MAX);
    if (!user_take(text, STR("@")) || !memchr(text->data, '(', text->len))
        return false;
    name = (struct str){text->data, (size_t)((char *)memchr(text->data, '(', text->len) - text->data)};
    *text = (struct str){text->data + name.len, text->len - name.len};
    struct ir_function *function = ARENA_NEW(&module->arena, struct ir_function);
    function->name = arena_str(&module->arena, str_trim(name));
    if (!user_take_types(text, types, &function->body.arg_count))
        return false;
    function->body.args = ARENA_ARRAY(&module->arena, struct ir_value, function->body.arg_count);
    for (uint32_t i = 0; i < function->body.arg_count; i++)
        function->body.args[i] = (struct ir_value){.type = types[i], .number = i};
    function->value_count = function->body.arg_count;
    function->results = ARENA_ARRAY(&module->arena, struct ir_type, IR_OPERANDS_MAX);
    function->next = module->functions;
    module->functions = function;
    return user_take(text, STR("->")) && user_take_types(text, function->results, &function->result_count);
}

int ir_parse_user(struct str text, struct ir_module **ret_module, struct error *error)
{
    struct str name, rest = text;
    if (!user_take(&rest, STR("user ")) || !user_take(&rest, STR("\"")) ||
        !str_cut(rest, '"', &name, &rest) || name.len == 0 || name.len > 255)
        return error_set(error, ERROR_INVALID, "1:1: expected user \"FILE.so\"");
    struct ir_module *module = mem_alloc(sizeof *module);
    module->file = arena_str(&module->arena, name);
    module->name = STR("user");
    module->replicas = module->partitions = 1;
    while (user_take(&rest, STR("func ")))
        if (!user_take_function(&rest, module))
            break;
    rest = user_blank(rest);
    if (rest.len == 0 && module->functions) {
        *ret_module = module;
        return 0;
    }
    unsigned line = 1;
    for (size_t i = 0; i < text.len - rest.len; i++)
        line += text.data[i] == '\n';
    ir_module_free(module);
    return error_set(error, ERROR_INVALID, "line %u: expected func @NAME(TYPE, ...) -> (TYPE, ...)", line);
}
